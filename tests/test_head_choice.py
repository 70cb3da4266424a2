"""Ditto's head from one pass, against every head run by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from scipy import stats

import whitepool
from whitepool.data import PairSet, Task
from whitepool.data.corpus_config import load_corpus
from whitepool.errors import UserError
from whitepool.head_choice import best_head, dev_set, find_head, wants_choice
from whitepool.pooling import AttentionDiagonal
from whitepool.pseudo_gold import CRITERION, pseudo_gold
from whitepool.unlabelled import sentences

from tiny import WORDS

CONF = Path(__file__).resolve().parents[1] / "conf"


def config(*overrides: str) -> Any:
    given = [
        "trainer=cpu",
        "trainer.enable_progress_bar=false",
        "output_dir=out",
        "batch_tokens=90",
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("train", overrides=[*given, *overrides])


def pairs(split: str, seed: int) -> PairSet:
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(2, 8))) for _ in range(120)]
    gold = np.array([draw.random() for _ in range(60)])
    return PairSet("t", "", split, tuple(texts[:60]), tuple(texts[60:]), gold, "made", "0")


@pytest.mark.parametrize("block", [None, 1])
def test_the_best_head_of_the_dev_split(
    plm: Callable[[str], Any], checkpoint: Callable[[str], Path], tmp_path: Path, block: int | None
) -> None:
    dev = pairs("dev", 1)
    task = Task("t", (pairs("test", 0),), (dev,))
    judged = dev_set([task])
    got = best_head(config(), plm("bert"), [1, -1], judged, 64, block=block, folder=tmp_path)
    scores = {}
    for b in range(3) if block is None else [block]:
        for h in range(4):
            encoder = whitepool.load(
                checkpoint("bert"), pooling="ditto", layers=[1, -1], block=b, head=h
            )
            x, y = encoder.encode(list(dev.first)), encoder.encode(list(dev.second))
            cosines = encoder.similarity_pairwise(x, y)
            scores[b, h] = 100 * stats.spearmanr(cosines, dev.gold).statistic
    assert (got.block, got.head) == max(scores, key=lambda key: scores[key])
    assert got.score == pytest.approx(max(scores.values()), abs=0.05)
    assert got.dev_set == "t dev"


def test_what_asks_for_a_choice() -> None:
    assert not wants_choice(config("pooling=ditto", "model=bert"))
    assert wants_choice(config("pooling=ditto", "pooling.head=auto"))
    assert wants_choice(config("pooling=ditto", "pooling.head=auto", "pooling.block=auto"))
    with pytest.raises(UserError, match=r"leave pooling\.head=3 out"):
        wants_choice(config("pooling=ditto", "pooling.block=auto", "pooling.head=3"))


@pytest.mark.parametrize("block", ["auto", 1.5, True])
def test_a_head_is_a_number(block: Any) -> None:
    with pytest.raises(UserError, match=r"pooling\.block is .*: give a whole number from 0"):
        AttentionDiagonal(block, 0)


@pytest.mark.parametrize("from_corpus", [False, True])
def test_a_head_chosen_without_labels(
    plm: Callable[[str], Any],
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    from_corpus: bool,
) -> None:
    draw = random.Random(5)
    texts = list({" ".join(draw.choices(WORDS, k=draw.randint(2, 8))) for _ in range(70)})
    path = tmp_path / "mine.tsv"
    rows = [f"{a}\t{b}\t{draw.random()}" for a, b in zip(texts[::2], texts[1::2], strict=False)]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "corpus.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    given = config(
        "model=bert",
        f"model.path={checkpoint('bert')}",
        "pooling=ditto",
        "pooling.head=unsupervised",
        "data=pairs",
        f"data.path={path}",
        *(["corpus=text", f"corpus.path={tmp_path}/corpus.txt"] if from_corpus else []),
    )
    corpus = load_corpus(given.corpus)
    found, model, choice = find_head(given, corpus=corpus, folder=tmp_path, logger=False)
    assert choice is not None
    assert model is not None
    judged, on = sentences(instantiate(given.data), corpus)
    assert sorted(judged) == sorted(texts if from_corpus else texts[: 2 * len(rows)])
    mean = whitepool.load(checkpoint("bert"), pooling="first_last_0")
    made = pseudo_gold(judged, mean.encode(judged))
    scores = {}
    for b in range(3):
        for h in range(4):
            encoder = whitepool.load(checkpoint("bert"), pooling="ditto", block=b, head=h)
            x, y = encoder.encode(list(made.first)), encoder.encode(list(made.second))
            cosines = encoder.similarity_pairwise(x, y)
            scores[b, h] = 100 * stats.spearmanr(cosines, made.gold).statistic
    assert (choice.block, choice.head) == max(scores, key=lambda key: scores[key])
    assert choice.score == pytest.approx(max(scores.values()), abs=0.05)
    assert (found.pooling.block, found.pooling.head) == (choice.block, choice.head)
    kept = choice.provenance()
    assert kept["head_chosen_by"] == CRITERION
    assert kept["head_chosen_on"] == on
    assert ("corpus text" in on) == from_corpus


def test_without_labels_gold_scores_are_not_read(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    chosen = []
    for seed in (0, 1):
        draw = random.Random(7)
        lines = [
            f"{' '.join(draw.choices(WORDS, k=6))}\tthe {draw.choice(WORDS)}" for _ in range(60)
        ]
        gold = np.random.default_rng(seed).random(60)
        rows = [f"{line}\t{score}" for line, score in zip(lines, gold, strict=True)]
        path = tmp_path / f"{seed}.tsv"
        path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
        given = config(
            "model=bert", f"model.path={checkpoint('bert')}", "pooling=ditto",
            "pooling.head=unsupervised", "data=pairs", f"data.path={path}",
        )  # fmt: skip
        _, _, choice = find_head(given, folder=tmp_path, logger=False)
        assert choice is not None
        chosen.append((choice.block, choice.head, choice.score))
    assert chosen[0] == chosen[1]


def test_what_asks_for_a_choice_without_labels() -> None:
    assert wants_choice(config("pooling=ditto", "pooling.head=unsupervised"))
    both = ["pooling.head=unsupervised", "pooling.block=unsupervised"]
    assert wants_choice(config("pooling=ditto", *both))
    with pytest.raises(UserError, match=r"pooling\.block=unsupervised chooses a head too"):
        wants_choice(config("pooling=ditto", "pooling.block=unsupervised", "pooling.head=auto"))


def test_a_model_is_refused_before_the_pass(tmp_path: Path) -> None:
    def refuse(given: Any) -> Any:
        raise UserError(f"{given.model.name} will not do.")

    given = config("pooling=ditto", "pooling.head=auto")
    with pytest.raises(UserError, match=r"all_minilm will not do\."):
        find_head(given, load=refuse, folder=tmp_path, logger=False)
