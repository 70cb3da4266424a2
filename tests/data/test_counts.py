from __future__ import annotations

import pytest

from whitepool.data.counts import COUNTS, HUB_COUNTS, check_count, splits, subsets
from whitepool.errors import UserError


@pytest.mark.parametrize(
    ("task", "total"),
    [
        ("sts12", 3108),
        ("sts13", 1500),
        ("sts14", 3750),
        ("sts15", 3000),
        ("sts16", 1186),
        ("stsb", 1379),
        ("sickr", 4927),
    ],
)
def test_known_totals(task: str, total: int) -> None:
    assert sum(n for (_, split), n in COUNTS[task].items() if split == "test") == total
    assert HUB_COUNTS[task]["test"] == (9927 if task == "sickr" else total)


def test_all_test_sets_have_37700_sentences() -> None:
    pairs = [n for sets in COUNTS.values() for (_, split), n in sets.items() if split == "test"]
    assert 2 * sum(pairs) == 37_700


def test_sub_tasks_and_splits() -> None:
    assert subsets("sts13") == ("FNWN", "headlines", "OnWN")
    assert splits("sts13") == ("test",)
    assert subsets("stsb") == ("",)
    assert splits("sickr") == ("train", "dev", "test")


def test_a_wrong_count_names_both_numbers() -> None:
    check_count(3, 3, "a.csv")
    with pytest.raises(UserError) as fault:
        check_count(1119, 1379, "a.csv")
    assert str(fault.value) == (
        "a.csv: 1119 pairs found, 1379 expected; fetch the file again, "
        "or read it with data=pairs if it is meant to differ."
    )
