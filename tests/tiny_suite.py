"""A small suite of two tasks, one of them of three sub-tasks, for tests of whole runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from whitepool.data.pairs import PairSet, Task

from tiny import WORDS

CONF = Path(__file__).resolve().parents[1] / "conf"


def pair_set(task: str, subset: str, n: int, split: str = "test") -> PairSet:
    """Pairs of random words whose score is about their share of common words."""
    draw = random.Random(f"{task} {subset} {split}")
    first, second, gold = [], [], []
    for _ in range(n):
        a = draw.sample(WORDS, draw.randint(1, 6))
        b = draw.sample(a, draw.randint(0, len(a))) + draw.sample(WORDS, 2)
        first.append(" ".join(a))
        second.append(" ".join(b))
        gold.append(len(set(a) & set(b)) + draw.random() // 0.5)
    return PairSet(
        task, subset, split, tuple(first), tuple(second), np.array(gold), "tiny", "0" * 64
    )


def load(odd: bool = True) -> tuple[Task, ...]:
    """The suite; ``odd`` adds equal pairs, swapped pairs and a blank sentence."""
    one, two, three = (pair_set("sts12", name, n) for name, n in (("A", 40), ("B", 60), ("C", 50)))
    if odd:
        extra = (one.first[0], one.first[0], one.second[1], "  ", "a dog")
        other = (one.first[0], one.first[0], one.first[1], "a dog", "a dog")
        gold = np.concatenate([two.gold, [5.0, 3.0, 2.0, 1.0, 4.0]])
        two = PairSet(
            "sts12", "B", "test", two.first + extra, two.second + other, gold, "tiny", "0" * 64
        )
    alone = pair_set("mine", "", 70)
    return (
        Task("sts12", (one, two, three)),
        Task("mine", (alone,), (pair_set("mine", "", 45, "train"),)),
    )


def composed(checkpoint: Path, output: Path, *overrides: str) -> Any:
    """The configuration of a run on the suite with a tiny model."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    chosen = ["model=bert", f"model.path={checkpoint}", "logger=none", "trainer=cpu"]
    chosen += [
        f"output_dir={output}",
        "bootstrap=0",
        "trainer.enable_progress_bar=false",
        "figures=false",
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("evaluate", overrides=[*chosen, *overrides])
    OmegaConf.set_struct(config, False)
    config.data = {"_target_": "tiny_suite.load"}
    return config
