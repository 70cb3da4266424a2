"""`whitepool evaluate` with overrides put together at random: a result, or one plain sentence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from whole import Command

VALUES = (
    "",
    "null",
    "true",
    "0",
    "-1",
    "1",
    "2",
    "3.5",
    "1e999",
    "nan",
    "1_0",
    "9" * 30,
    "x",
    "off",
    "[]",
    "[0]",
    "[1,-1]",
    "[a,b]",
    "{}",
    "{a:1}",
    "'${nowhere}'",
    "'${oc.env:NOT_THERE}'",
    "???",
    "'???'",
    "é",
    "'a b'",
    "auto",
    "pca",
    "cpu",
    "-999999999999",
    "[99]",
    "[[1]]",
    "static",
    "'{text}'",
    "'{text} {text}'",
    "x" * 3000,
)
GROUPS = ("pooling", "whitening", "protocol", "analysis", "cache", "logger", "corpus", "trainer")
OURS = ("batch_tokens", "window", "bootstrap", "seed", "fail_fast", "figures", "recipe")


def settings() -> list[str]:
    """Settings of the groups that shape a run."""
    conf = Path(__file__).resolve().parents[2] / "conf"
    found = list(OURS)
    for group in (
        "pooling",
        "whitening",
        "protocol",
        "model",
        "data",
        "corpus",
        "analysis",
        "trainer",
        "cache",
    ):
        for path in (conf / group).glob("*.yaml"):
            content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
            assert isinstance(content, dict)
            found += [f"{group}.{key}" for key in content if key not in ("_target_", "defaults")]
    schema = OmegaConf.load(conf / "schema" / "whitening.yaml")
    found += [f"whitening.{key}" for key in schema]
    found += [f"pooling.{key}" for key in OmegaConf.load(conf / "schema" / "pooling.yaml")]
    return sorted({key for key in found if not key.endswith(("defaults", "_target_", "devices"))})


@pytest.mark.parametrize(
    ("cases", "seed"), [(6, 0), pytest.param(300, 1, marks=pytest.mark.nightly)]
)
def test_overrides(evaluate: Command, pairs: Path, cases: int, seed: int) -> None:
    draw = random.Random(seed)
    keys = settings()
    conf = Path(__file__).resolve().parents[2] / "conf"
    ended = {0: 0, 1: 0}
    bad: list[str] = []
    for _ in range(cases):
        words = [
            f"{draw.choice(keys)}={draw.choice(VALUES)}" for _ in range(draw.choice((1, 1, 2)))
        ]
        if draw.random() < 0.5:
            group = draw.choice(GROUPS[:4])
            words.append(f"{group}={draw.choice(sorted((conf / group).glob('*.yaml'))).stem}")
        run = evaluate(pairs, *words)
        ended[run.status] += 1
        last = run.err.splitlines()[-1] if run.err else ""
        plain = not run.status or (last.startswith("Error: ") and last.isprintable())
        if not plain or "foreseen" in run.err or "Traceback" in run.err:
            bad.append(f"{words}: {last[:300]}")
    assert not bad, "\n".join(bad)
    assert sum(ended.values()) == cases
