"""All heads by all maps on the STS benchmark, for a masked model, a decoder, and word vectors.

Vectors of all heads that put the same around a text come from one pass. Token weights are counted
on the sentences of the train split, Ditto's head is chosen on the dev split, and maps are fitted on
the sentences they are scored on, as the papers do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import OmegaConf

from benchmarks import show
from benchmarks.models import reads_masks
from whitepool.batches import make_batch, plan_batches
from whitepool.data.corpus import Corpus, Source, Text
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.fitting import FitSets, fit_each
from whitepool.framing import Frame, is_apart
from whitepool.head_choice import best_head, dev_set
from whitepool.longtext import framed
from whitepool.maps import (
    Center,
    RemoveCommon,
    RemoveTop,
    Shrinkage,
    Soft,
    Standardize,
    Tempered,
    Zca,
    Zipfian,
)
from whitepool.plm import FrozenPLM
from whitepool.pooling import (
    Idf,
    LinearPooling,
    Pooling,
    SbertWk,
    Sif,
    StaticRemoveBiases,
    Usif,
)
from whitepool.pooling.binding import bind
from whitepool.pooling.named import frame_of, named
from whitepool.protocol import EvalProtocol
from whitepool.scores import Row, cosines, score
from whitepool.states import Needs
from whitepool.token_counts import with_corpus
from whitepool.whitening import PostProcess, Whitening
from whitepool.word_moments import check_words, moments_of_fit_sets, of_words

PROTOCOL = EvalProtocol("methods", "all", "task")
RAW = "raw"
MAPS: dict[str, PostProcess] = {
    "center": Center(),
    "standardize": Standardize(),
    "remove_top": RemoveTop(),
    "remove_common": RemoveCommon(),
    "remove_common 5": RemoveCommon(remove=5),
    "pca": Whitening(),
    "zca": Zca(),
    "tempered 0.5": Tempered(),
    "soft 0.1": Soft(),
    "shrinkage": Shrinkage(),
    "zipfian": Zipfian(),
}
WORDS = {
    "static": named("static"),
    "static_words": named("static_words"),
    "idf static": LinearPooling(Idf(), ["static"]),
    "sif static": LinearPooling(Sif(), ["static"]),
    "usif static": LinearPooling(Usif(), ["static"]),
    "static_remove_biases": LinearPooling(StaticRemoveBiases(), ["static"]),
}
COUNTED = {
    "idf": LinearPooling(Idf(), [-1]),
    "sif": LinearPooling(Sif(), [-1]),
    "usif": LinearPooling(Usif(), [-1]),
}
PLAIN = ("avg", "first_last", "first_last_0", "top2", "max", "sbert_wk")
MASKED = ("cls", *PLAIN, "prompt", "prompt_debiased")
DECODER = ("last_token", *PLAIN, "weighted_mean", "prompteol", "prompt_cot", "prompt_ke", "echo")
FRAMES = {"static_remove_biases": Frame(" {text}")}
TRAINER = {
    "_target_": "pytorch_lightning.Trainer", "accelerator": "cpu", "devices": 1,
    "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False,
}  # fmt: skip

Vectors = NDArray[np.float32]
Predictions = dict[tuple[str, str], list[NDArray[np.float64]]]


@dataclass(frozen=True)
class Head:
    """A head that is bound to its model, and what it puts around texts."""

    pooling: Pooling
    frame: Frame


def names_of(plm: FrozenPLM) -> list[str]:
    """The heads that suit a model, in the order of the table."""
    return [*(MASKED if reads_masks(plm) else DECODER), "ditto", *COUNTED, *WORDS]


def heads_of(plm: FrozenPLM, task: Task, names: Sequence[str]) -> dict[str, Head]:
    """Heads by name, those left out that the model is too small for or that cannot be counted.

    Args:
        plm: the model.
        task: its train split, if it has one, is what tokens are counted on. Ditto's head is chosen
            on the dev split of the STS benchmark.
        names: of `names_of`.
    """
    found: dict[str, Head] = {}
    corpus = _corpus(task)
    for name in names:
        if name == "ditto":
            block, head = _ditto(plm, task)
            found[name] = Head(named(name, block=block, head=head), Frame())
        elif name == "sbert_wk" and plm.depth < SbertWk().start + 2:
            show.say(f"{name} is left out: it needs 3 layers from 4 on, and there are {plm.depth}")
        elif pooling := (COUNTED | WORDS).get(name):
            frame = FRAMES.get(name, Frame())
            try:
                weighed, _ = with_corpus(pooling, corpus, plm, plm.max_length, 8192, frame)
            except UserError as error:
                show.say(f"{name} is left out: {error}")
            else:
                found[name] = Head(weighed, frame)
        else:
            found[name] = Head(named(name), frame_of(name))
    return {name: replace(h, pooling=bind(h.pooling, plm, h.frame)) for name, h in found.items()}


def _ditto(plm: FrozenPLM, task: Task) -> tuple[int, int]:
    config = OmegaConf.create({"trainer": TRAINER, "batch_tokens": 4096})
    choice = best_head(config, plm, [0, -1], dev_set([task]), plm.max_length, folder=Path())
    show.say(
        f"ditto: block {choice.block} head {choice.head}, {choice.score:.2f} on {choice.dev_set}"
    )
    return choice.block, choice.head


def _corpus(task: Task) -> Corpus:
    sets = [s for s in task.other_splits if s.split == "train"] or list(task.scored)
    texts = [text for s in sets for text in s.first + s.second]

    def read() -> Iterator[Text]:
        return (Text(text, task.name) for text in texts)

    return Corpus(task.name, (Source(task.name, read),))


def groups_of(heads: Mapping[str, Head]) -> list[dict[str, Head]]:
    """Heads that put the same around a text, whose vectors come from one pass."""
    groups: dict[tuple[Frame, bool], dict[str, Head]] = {}
    for name, head in heads.items():
        groups.setdefault((head.frame, is_apart(head.pooling)), {})[name] = head
    return list(groups.values())


def predictions(
    plm: FrozenPLM, group: Mapping[str, Head], tasks: Sequence[Task], batch_tokens: int
) -> Predictions:
    """Cosines of the pairs of each scored set, by head and map, for one of `groups_of`."""
    result: Predictions = {}
    first = next(iter(group.values()))
    tokenize = framed(plm, plm.max_length, first.frame, apart=is_apart(first.pooling))
    table = SentenceTable.build(tasks, tokenize)
    poolings = {name: head.pooling for name, head in group.items()}
    started = time.perf_counter()
    vectors = _encode(plm, table, poolings, batch_tokens)
    seconds = time.perf_counter() - started
    for name, pooling in poolings.items():
        result[name, RAW] = cosines(table, vectors[name], None, PROTOCOL)[RAW]
        for step, post in MAPS.items():
            if values := _mapped(plm, table, pooling, vectors[name], post):
                result[name, step] = values
    score = scorer(tasks[0], table, 0)
    raw = ", ".join(f"{name} {score(result[name, RAW]).value:.1f}" for name in poolings)
    tokens = sum(map(len, table.ids))
    show.say(f"{len(table):,} sentences, {tokens:,} tokens, {seconds:.0f} s; raw: {raw}")
    return result


def _encode(
    plm: FrozenPLM, table: SentenceTable, poolings: Mapping[str, Pooling], batch_tokens: int
) -> dict[str, Vectors]:
    needs = Needs()
    for pooling in poolings.values():
        needs |= pooling.needs
    parts: dict[str, list[Vectors]] = {name: [] for name in poolings}
    order: list[int] = []
    for rows in plan_batches([len(ids) for ids in table.ids], batch_tokens):
        for some, states in plm.states(make_batch(table.ids, rows), needs):
            order += some.tolist()
            for name, pooling in poolings.items():
                parts[name].append(pooling(states).numpy())
    result = {}
    for name, some_vectors in parts.items():
        found = np.concatenate(some_vectors)
        result[name] = np.zeros((len(table), found.shape[1]), dtype=np.float32)
        result[name][order] = found
    return result


def _mapped(
    plm: FrozenPLM, table: SentenceTable, pooling: Pooling, vectors: Vectors, post: PostProcess
) -> list[NDArray[np.float64]]:
    """Cosines through a map; none where it does not go with the head or cannot be fitted."""
    counts = table.fit_sets(PROTOCOL.fit_on)
    try:
        check_words(post, pooling)
        if of_words(post):
            moments = moments_of_fit_sets(plm, table.ids, counts)
        else:
            sets = FitSets(counts)
            sets.update(torch.arange(len(table)), torch.from_numpy(vectors))
            moments = sets.finish()
        maps = fit_each(post, moments, counts)
    except UserError:
        return []
    return cosines(table, vectors, maps, PROTOCOL)["post"]


def scorer(task: Task, table: SentenceTable, samples: int) -> Callable[..., Row]:
    """Scores one list of cosines, or the difference of two, with a 95 % interval."""

    def of(one: list[NDArray[np.float64]], less: list[NDArray[np.float64]] | None = None) -> Row:
        stages = {RAW: one} if less is None else {RAW: less, "post": one}
        stage = RAW if less is None else "difference"
        return score(table.scored, stages, samples=samples).get(task.name, stage=stage)

    return of
