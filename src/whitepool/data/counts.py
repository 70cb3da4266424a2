"""How many judged pairs each published set has, and the check that a reader found them all.

Sources: SemEval 2012 to 2016 task data as SentEval ships it (STS13 without SMT, which is not
distributed), the STS benchmark, SICK; for the hub the data sets that MTEB pins, where a year is
one file and all 9,927 pairs of SICK that MTEB uses are called test.
"""

from __future__ import annotations

from whitepool.errors import UserError

COUNTS: dict[str, dict[tuple[str, str], int]] = {
    "stsb": {("", "train"): 5749, ("", "dev"): 1500, ("", "test"): 1379},
    "sickr": {("", "train"): 4500, ("", "dev"): 500, ("", "test"): 4927},
    "sts12": {
        ("MSRpar", "test"): 750,
        ("MSRvid", "test"): 750,
        ("SMTeuroparl", "test"): 459,
        ("surprise.OnWN", "test"): 750,
        ("surprise.SMTnews", "test"): 399,
        ("MSRpar", "train"): 750,
        ("MSRvid", "train"): 750,
        ("SMTeuroparl", "train"): 734,
    },
    "sts13": {("FNWN", "test"): 189, ("headlines", "test"): 750, ("OnWN", "test"): 561},
    "sts14": {
        ("deft-forum", "test"): 450,
        ("deft-news", "test"): 300,
        ("headlines", "test"): 750,
        ("images", "test"): 750,
        ("OnWN", "test"): 750,
        ("tweet-news", "test"): 750,
    },
    "sts15": {
        ("answers-forums", "test"): 375,
        ("answers-students", "test"): 750,
        ("belief", "test"): 375,
        ("headlines", "test"): 750,
        ("images", "test"): 750,
    },
    "sts16": {
        ("answer-answer", "test"): 254,
        ("headlines", "test"): 249,
        ("plagiarism", "test"): 230,
        ("postediting", "test"): 244,
        ("question-question", "test"): 209,
    },
}
HUB_COUNTS: dict[str, dict[str, int]] = {
    "stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "sickr": {"test": 9927},
    "sts12": {"test": 3108, "train": 2234},
    "sts13": {"test": 1500},
    "sts14": {"test": 3750},
    "sts15": {"test": 3000},
    "sts16": {"test": 1186},
}


def subsets(task: str, split: str = "test") -> tuple[str, ...]:
    """Names of a split's sub-tasks, in order; ``("",)`` where the task is one file."""
    return tuple(subset for subset, own in COUNTS[task] if own == split)


def splits(task: str) -> tuple[str, ...]:
    """Splits that a task has."""
    return tuple(dict.fromkeys(split for _, split in COUNTS[task]))


def check_count(found: int, expected: int, source: str) -> None:
    """Refuse a file that does not hold the pairs it is known to hold.

    Raises:
        UserError: the numbers differ.
    """
    if found != expected:
        raise UserError(
            f"{source}: {found} pairs found, {expected} expected; fetch the file again, "
            "or read it with data=pairs if it is meant to differ."
        )
