"""Ditto's head from one pass, against every head run by itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from scipy import stats

import whitepool
from whitepool.data import PairSet, Task
from whitepool.errors import UserError
from whitepool.head_choice import select_head, wants_choice
from whitepool.pooling import AttentionDiagonal

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
    got = select_head(config(), plm("bert"), [1, -1], [task], 64, block=block, folder=tmp_path)
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
