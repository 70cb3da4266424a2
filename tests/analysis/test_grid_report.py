"""Which rows of a grid compete: those of the split that is scored."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from whitepool.data.pairs import PairSet, Task
from whitepool.evaluation import evaluate
from whitepool.jobs import read_job
from whitepool.page import tables

import tiny_suite


def load(split: str) -> tuple[Task, ...]:
    """A task whose test scores mean nothing, so that every head is better on dev."""
    test = tiny_suite.pair_set("stsb", "", 50)
    test = replace(test, gold=np.random.default_rng(0).permutation(test.gold))
    sets: dict[str, PairSet] = {"test": test, "dev": tiny_suite.pair_set("stsb", "", 40, "dev")}
    scored = sets.pop(split)
    return (Task("stsb", (scored,), tuple(sets.values())),)


@pytest.mark.parametrize("split", ["test", "dev"])
def test_heads_are_ranked_on_the_split_that_is_scored(
    split: str, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    config = tiny_suite.composed(checkpoint("bert"), tmp_path, "analysis=heads")
    config.data = {"_target_": "test_grid_report.load", "split": split}
    score = evaluate(config)
    with (tmp_path / "heads.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["aggregate"] == "all"]
    own = [float(row["value"]) for row in rows if row["split"] == split]
    content = json.loads((tmp_path / "results.json").read_text())
    assert score == content["headline"]["value"] == max(own)
    assert {row["split"] for row in content["best"]["heads"]} == {split}
    if split == "test":
        assert max(own) < max(float(row["value"]) for row in rows if row["split"] == "dev")

    table = tables.analysis(read_job(tmp_path), 0, "heads")
    tasks = [name for name in table.columns if name.startswith("stsb")]
    assert tasks == (["stsb", "stsb dev"] if split == "test" else ["stsb"])
    assert table.lines[0].cells[table.columns.index("stsb")].value == pytest.approx(score)
