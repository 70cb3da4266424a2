"""What a row of scores.csv says of sub-tasks that were not there."""

from __future__ import annotations

import math

from whitepool.data.pairs import Task
from whitepool.report import COLUMNS, missing
from whitepool.scores import Row

TASKS = (
    Task("sts12", (), missing=("MSRvid", "MSRpar")),
    Task("stsb", ()),
    Task("sts13", (), (), ("FNWN",)),
)


def row(task: str, subset: str = "") -> Row:
    aggregate = "" if subset else "all"
    return Row(task, subset, aggregate, "raw", "spearman", 1.0, math.nan, math.nan, 9)


def test_an_aggregate_names_what_it_lacks() -> None:
    assert missing(TASKS, row("sts12")) == "MSRvid MSRpar"
    assert missing(TASKS, row("stsb")) == ""
    assert missing(TASKS, row("sts12", "OnWN")) == ""
    assert missing(TASKS, row("avg")) == "sts12/MSRvid sts12/MSRpar sts13/FNWN"
    assert COLUMNS[-4:] == ["n", "missing", "published", "difference"]
