from __future__ import annotations

import csv
from pathlib import Path

import pytest

from whitepool.data import whiteningbert
from whitepool.data.counts import COUNTS

TESTS = [
    (t, s, n) for t, sets in COUNTS.items() for (s, split), n in sets.items() if split == "test"
]


@pytest.mark.parametrize(
    ("task", "subset", "name"),
    [
        ("stsb", "", "sts-b-test.csv"),
        ("sickr", "", "sickr-test.csv"),
        ("sts12", "surprise.OnWN", "sts12.surprise.OnWN-test.csv"),
    ],
)
def test_file_names(task: str, subset: str, name: str) -> None:
    assert whiteningbert.file_name(task, subset, "test") == name


def test_recognised_by_any_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "sts-test.csv").touch()
    assert not whiteningbert.recognise(tmp_path)
    (tmp_path / "sts16.headlines-test.csv").touch()
    assert whiteningbert.recognise(tmp_path)


@pytest.mark.parametrize(("task", "subset", "pairs"), TESTS)
def test_real_files(shared: Path, task: str, subset: str, pairs: int) -> None:
    got = whiteningbert.read(shared / "whiteningbert", task, subset, "test")
    assert len(got) == pairs
    assert (got.task, got.subset, got.unjudged) == (task, subset, 0)
    assert all(got.first)
    assert all(got.second)


@pytest.mark.parametrize(
    ("task", "subset", "kept"),
    [
        ("sts12", "MSRpar", 706),
        ("sts14", "deft-forum", 447),
        ("sts16", "postediting", 192),
    ],
)
def test_csv_defaults_would_lose_rows(shared: Path, task: str, subset: str, kept: int) -> None:
    path = shared / "whiteningbert" / whiteningbert.file_name(task, subset, "test")
    with path.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file, delimiter="\t"))) == kept
    got = whiteningbert.read(path.parent, task, subset, "test")
    assert len(got) == COUNTS[task][subset, "test"] > kept


def test_all_sets_hold_26083_distinct_sentences(shared: Path) -> None:
    sets = [whiteningbert.read(shared / "whiteningbert", t, s, "test") for t, s, _ in TESTS]
    sentences = [sentence for s in sets for sentence in s.first + s.second]
    assert (len(sentences), len(set(sentences))) == (37_700, 26_083)


def test_real_checksum(shared: Path) -> None:
    got = whiteningbert.read(shared / "whiteningbert", "stsb", "", "test")
    assert got.sha256 == "175ac723be4e4e47b88b8fe2ab1dadab1ea28ec7e3f893b1d95b04e5bffba250"
