"""Which pairs choose for which task."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from whitepool.analysis.grid_scores import GridScore
from whitepool.analysis.head_tables import Recipe, best, contenders
from whitepool.analysis.selection import DevSplits, ranks
from whitepool.data import PairSet, Task
from whitepool.errors import UserError


def made(task: str, split: str) -> PairSet:
    return PairSet(task, "", split, ("a", "b"), ("b", "c"), np.array([1.0, 2.0]), "made", "0")


STSB = Task("stsb", (made("stsb", "test"),), (made("stsb", "train"), made("stsb", "dev")))
SICKR = Task("sickr", (made("sickr", "test"),), (made("sickr", "dev"),))
STS12 = Task("sts12", (made("sts12", "test"),))


def names(sets: tuple[PairSet, ...]) -> list[tuple[str, str]]:
    return [(s.task, s.split) for s in sets]


def test_a_task_is_chosen_for_by_its_own_dev_split(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    dev = DevSplits()
    assert names(dev.read([STSB])) == [("stsb", "dev")]
    assert names(dev.read([SICKR])) == [("sickr", "dev")]
    assert names(dev.read([SICKR, STSB])) == [("sickr", "dev"), ("stsb", "dev")]
    assert not caplog.messages
    choices = ["sickr", "stsb"]
    assert [dev.of(t, choices) for t in ("sickr", "stsb", "sts12", "avg")] == [
        "sickr",
        "stsb",
        "stsb",
        "stsb",
    ]
    assert names(dev.read([STS12, STSB, Task("sts13", (), missing=("FNWN",))])) == [("stsb", "dev")]
    assert caplog.messages == ["No dev split of sts12: chosen on STS-B's dev split."]


def test_scoring_the_dev_split_is_said(caplog: pytest.LogCaptureFixture) -> None:
    task = replace(STSB, scored=(made("stsb", "dev"),), other_splits=(made("stsb", "test"),))
    assert DevSplits().read([task]) == ()
    assert caplog.messages == [
        "The dev split is scored: recipes are chosen on the pairs they score."
    ]


def test_a_file_chooses_for_all(tmp_path: Path) -> None:
    path = tmp_path / "stsb.tsv"
    path.write_text("sentence1\tsentence2\tscore\na\tb\t1\nb\tc\t2\n")
    dev = DevSplits(str(path))
    (read,) = dev.read([STSB, STS12])
    assert (read.task, read.split, len(read)) == ("stsb.tsv", "dev", 2)
    assert {dev.of(t, ["stsb.tsv", "stsb"]) for t in ("stsb", "sts12", "avg")} == {"stsb.tsv"}


def test_what_cannot_choose_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as fault:
        DevSplits("stsbb")
    assert str(fault.value) == (
        "analysis.select_on is 'stsbb': give stsb, or a file of sentence pairs that exists "
        "(.tsv, .csv, .jsonl or .parquet)."
    )


@pytest.mark.slow
def test_stsb_is_embedded() -> None:
    (read,) = DevSplits().read([STS12])
    assert (read.task, read.split, len(read)) == ("stsb", "dev", 1500)


def test_ranks() -> None:
    values = np.array([3.0, np.nan, 5.0, 3.0, -1.0])
    assert ranks(values).tolist() == [2, 5, 1, 2, 4]


def test_the_test_score_never_chooses() -> None:
    recipes = [Recipe(0, head, layers) for layers in ((-1,), (0, -1)) for head in range(8)]
    dev_values = np.array([1.0, 9, 3, 4, 5, 6, 7, 8, 9, 1, 3, 4, 5, 6, 7, np.nan])
    values = np.array([90.0, *range(7), *range(7), 80.0])
    reported = {"t": GridScore("test", "t", "", "all", values, 5)}
    dev = {"t": GridScore("dev", "stsb", "", "all", dev_values, 6)}
    rows = best(recipes, reported, dev, (0, 3), "float32")
    assert [(r["choice"], r["layers"], r["head"]) for r in rows] == [
        ("selected", "[-1]", 1),
        ("published", "[-1]", 3),
        ("selected", "[0,-1]", 0),
        ("published", "[0,-1]", 3),
    ]
    first = rows[0]
    assert (first["dev"], first["dev_rank"], first["value"], first["dev_set"]) == (
        9.0,
        1,
        0.0,
        "stsb dev",
    )
    assert (first["oracle_value_not_for_selection"], rows[2]["oracle_head_not_for_selection"]) == (
        90.0,
        7,
    )
    close = contenders(recipes, reported, dev, (0, 3))
    # published; the five best of each list on dev; the best of each on test
    assert set(close) == {(0, h) for h in (3, 1, 7, 6, 5, 4, 0)}
