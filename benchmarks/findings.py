"""What the papers claim and what chooses without labels, on a model and STS-B in a language.

One pass over the pairs of a dev and a test set gives the cosines of every head of Ditto and of
means of layers, raw and whitened, and what would have chosen among them: the dev set's labels, or
its sentences alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.head_criteria import HeadCriteria, tfidf_cosines
from benchmarks.models import is_decoder
from whitepool.analysis.head_cosines import HeadCosines
from whitepool.analysis.tfidf import TokenStatistics
from whitepool.batches import make_batch, plan_batches
from whitepool.correlation import spearman_many
from whitepool.data import load_chinese, load_sts, load_stsb_multi
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.errors import UserError
from whitepool.geometry import Floats, anisotropy
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling
from whitepool.pooling.tokens import FirstToken, LastToken, Uniform
from whitepool.pseudo_gold import CRITERION, neighbours, whitened_cosines
from whitepool.similarity import cosine
from whitepool.states import BlockHead, Layer, Needs, resolve_layer
from whitepool.tokenizing import Tokenized
from whitepool.unlabelled import as_task, sentences
from whitepool.whitening import Whitening

DITTO: tuple[Layer, ...] = (0, -1)
DEV, TEST = "dev", "test"


@dataclass(frozen=True, eq=False)
class Heads:
    """Every head of Ditto, (head,) each, x100.

    Attributes:
        names: (block, head) pairs.
        dev: Spearman with the labels of the dev pairs.
        test: the same of the test pairs.
        criteria: what judges without labels, from the dev pairs' sentences.
        cosines: of the test pairs, (head, pair).
    """

    names: tuple[BlockHead, ...]
    dev: Floats
    test: Floats
    criteria: dict[str, Floats]
    cosines: Floats


@dataclass(frozen=True, eq=False)
class Vectors:
    """A head without choice, raw and whitened on the sentences of both sets.

    Attributes:
        mean_cosine: of two different dev sentences, raw.
        dev: cosines of the dev pairs: raw, whitened; (2, pair).
        test: of the test pairs: raw, whitened, whitened to a third of the dimensions; (3, pair).
    """

    mean_cosine: float
    dev: Floats
    test: Floats


@dataclass(frozen=True, eq=False)
class Found:
    """A model on a language; `dev` and `test` have the gold scores."""

    heads: Heads
    vectors: dict[str, Vectors]
    dev: ScoredSet
    test: ScoredSet


def pairs_of(language: str, root: Path | None, count: int) -> tuple[PairSet, PairSet]:
    """A dev and a test set of STS-B in a language, ``count`` pairs of each, drawn at random.

    English is embedded. Of the languages of ``multilingual`` one half of the dev split is the dev
    set and the other the test set.

    Args:
        language: en, zh, or two letters that `load_stsb_multi` knows.
        root: has the folders ``zh`` and ``multilingual``.
        count: all, where there are fewer.

    Raises:
        UserError: another language than English without a root, or a file that is not there.
    """
    draw = np.random.default_rng(0)
    if language == "en":
        (task,) = load_sts(["stsb"])
    elif root is None:
        raise UserError(f"{language} is not embedded: give --root FOLDER with zh and multilingual.")
    elif language == "zh":
        (task,) = load_chinese(["stsb_zh"], TEST, root / "zh")
    else:
        (task,) = load_stsb_multi(language, DEV, root / "multilingual")
        (whole,) = task.scored
        order = draw.permutation(len(whole))
        half = min(count, len(whole) // 2)
        return _some(whole, order[:half], DEV), _some(whole, order[half : 2 * half], TEST)
    (test,) = task.scored
    dev = next(s for s in task.other_splits if s.split == DEV)
    return (
        _some(dev, draw.permutation(len(dev))[:count], DEV),
        _some(test, draw.permutation(len(test))[:count], TEST),
    )


def _some(s: PairSet, rows: NDArray[np.int64], split: str) -> PairSet:
    first, second = (tuple(texts[row] for row in rows) for texts in (s.first, s.second))
    return replace(s, task=split, split=split, first=first, second=second, gold=s.gold[rows])


@torch.inference_mode()
def measure(plm: FrozenPLM, dev: PairSet, test: PairSet, batch_tokens: int) -> Found:
    """Everything, from one pass over the sentences of both sets."""

    def tokenize(texts: Sequence[str]) -> Tokenized:
        return plm.tokenize(texts, plm.max_length)

    texts, _ = sentences([Task(DEV, (dev,))])
    alone = replace(as_task(texts).scored[0], split=DEV)
    table = SentenceTable.build([Task(TEST, (test,))], tokenize, select=[dev, alone])
    sets = [*table.scored, *table.select[:1]]
    rows_of = table.select[1].pairs[:, 0]
    layers = tuple(resolve_layer(layer, plm.depth) for layer in DITTO)
    heads = tuple((block, head) for block in range(plm.depth) for head in range(plm.heads))
    kept = HeadCosines([len(ids) for ids in table.ids], [layers], heads)
    judged = np.isin(np.arange(len(table)), rows_of) & ~table.is_blank
    statistics = TokenStatistics(plm, SentenceTable.build([as_task(texts)], tokenize))
    criteria = HeadCriteria(statistics, layers, heads, judged)

    last = is_decoder(plm)  # whose first token has seen nothing
    single = "last token" if last else "CLS"
    poolings = {
        single: LinearPooling(LastToken() if last else FirstToken(), [-1]),
        "means": LinearPooling(Uniform(), range(plm.depth + 1)),
    }
    needs = Needs((), heads) | poolings["means"].needs
    parts: dict[str, list[NDArray[np.float32]]] = {name: [] for name in poolings}
    order: list[int] = []
    for rows in plan_batches([len(ids) for ids in table.ids], batch_tokens):
        for some, states in plm.states(make_batch(table.ids, rows), needs):
            kept.put(some, states)
            criteria.update(some, states)
            order += some.tolist()
            for name, pooling in poolings.items():
                parts[name].append(pooling.by_layer(states).numpy())

    by_layer = {name: _in_order(some, order, len(table)) for name, some in parts.items()}
    ditto = by_layer["means"][:, np.array(layers, dtype=int)].mean(1)
    teachers = {
        CRITERION: whitened_cosines(ditto[rows_of]),
        "tf-idf cosines": tfidf_cosines([table.ids[row] for row in rows_of], statistics),
    }
    draw = np.random.default_rng(0)
    local = {name: neighbours(made, draw) for name, made in teachers.items()}
    golds = [s.gold for s in sets] + [
        made[pairs[:, 0], pairs[:, 1]]
        for made, pairs in zip(teachers.values(), local.values(), strict=True)
    ]
    pairs = [s.pairs for s in sets] + [rows_of[pairs] for pairs in local.values()]
    cosines = np.split(
        kept.of(np.concatenate(pairs)), np.cumsum(list(map(len, pairs)))[:-1], axis=1
    )
    scores = [100 * spearman_many(x, gold) for x, gold in zip(cosines, golds, strict=True)]
    by = dict(zip(teachers, scores[2:], strict=True)) | criteria.values()
    vectors = {
        name: _scored(x.mean(1), sets[1], sets[0])
        for name, x in {
            single: by_layer[single],
            **{f"layer {i}": by_layer["means"][:, [i]] for i in range(plm.depth + 1)},
            "layers 1, last": by_layer["means"][:, [1, -1]],
            "layers 0, last": by_layer["means"][:, [0, -1]],
        }.items()
    }
    return Found(Heads(heads, scores[1], scores[0], by, cosines[0]), vectors, sets[1], sets[0])


def _in_order(parts: Sequence[NDArray[np.float32]], rows: Sequence[int], n: int) -> Floats:
    found = np.concatenate(parts)
    result = np.zeros((n, *found.shape[1:]))
    result[list(rows)] = found
    return result


def _scored(x: Floats, dev: ScoredSet, test: ScoredSet) -> Vectors:
    """Cosines of the pairs, whitening fitted on the sentences of both sets."""
    rows = np.unique(np.concatenate([dev.rows, test.rows]))
    some = torch.from_numpy(x[rows])
    moments = Moments(x.shape[1]).update(some)
    steps = [Whitening(), Whitening(k=x.shape[1] // 3)]
    stages = [x[rows], *(step.fit(moments)(some).numpy() for step in steps)]
    own, other = (
        np.stack([cosine(z, np.searchsorted(rows, s.pairs)) for z in stages]) for s in (dev, test)
    )
    return Vectors(anisotropy(x[np.unique(dev.pairs)]), own[:2], other)
