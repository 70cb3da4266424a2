"""Sentences and pairs to time with: published STS sets, or made-up ones for a smoke test."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from whitepool.data import load_sts
from whitepool.data.pairs import PairSet, Task
from whitepool.errors import UserError

SEVEN = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
SUBJECTS = "a man,the woman,two dogs,a small cat,the old guitar player,a child in a red coat"
VERBS = "eats,plays music,runs,looks at the sea,is not asleep,sits in the park and waits for a bus"
WHERE = ",today,at home,in the rain,on a very long and quiet road near the station"


def load(root: Path | None, *, quick: bool, names: Sequence[str] = SEVEN) -> tuple[Task, ...]:
    """Tasks: published ones from ``root``, else the embedded STS-B; made-up ones if ``quick``.

    Raises:
        UserError: the root cannot be read, or a task other than stsb is asked for without one.
    """
    if quick:
        return (made_up(),)
    if root is not None:
        return load_sts(names, root=root)
    if set(names) not in ({*SEVEN}, {"stsb"}):
        raise UserError("only stsb is embedded: give --root FOLDER for other tasks.")
    return load_sts(["stsb"])


def made_up() -> Task:
    """Sentences of 2 to 20 words put together at random, in 60 pairs with random gold scores."""
    draw = random.Random(0)
    parts = [text.split(",") for text in (SUBJECTS, VERBS, WHERE)]
    texts = [" ".join(words).strip() for words in itertools.product(*parts)]
    draw.shuffle(texts)
    first, second = tuple(texts[:60]), tuple(texts[60:120])
    gold = np.array([draw.random() for _ in first])
    return Task("made_up", (PairSet("made_up", "", "test", first, second, gold, "made up", ""),))


def unique(tasks: Sequence[Task], count: int | None) -> list[str]:
    """Distinct sentences of all splits, ``count`` of them drawn at random but always the same.

    Raises:
        UserError: there are not that many.
    """
    sets = [s for task in tasks for s in (*task.scored, *task.other_splits)]
    texts = list(dict.fromkeys(t for s in sets for t in s.first + s.second if t.strip()))
    if count is None:
        return texts
    if not 1 <= count <= len(texts):
        raise UserError(f"--sentences is {count}: give 1 to {len(texts)}, what the data have.")
    return random.Random(0).sample(texts, count)


def some_pairs(tasks: Sequence[Task], count: int) -> Task:
    """One task of so many pairs of ``tasks``, drawn at random but always the same."""
    pairs = [
        pair
        for task in tasks
        for s in task.scored
        for pair in zip(s.first, s.second, s.gold.tolist(), strict=True)
    ]
    some = random.Random(0).sample(pairs, min(count, len(pairs)))
    first, second, gold = zip(*some, strict=True)
    return Task("some", (PairSet("some", "", "test", first, second, np.array(gold), "", ""),))


def repeated(texts: Sequence[str], count: int) -> list[str]:
    """``count`` distinct sentences: ``texts`` again and again, from the second time on numbered.

    The number goes at the end of a sentence. Each pass over the texts is in a new random order,
    so that any first part of the list has the lengths of the whole.
    """
    result: list[str] = []
    for turn in range(-(-count // len(texts))):
        some = random.Random(turn).sample(texts, len(texts))
        result += [f"{text} {turn}" if turn else text for text in some]
    return result[:count]


def as_task(texts: Sequence[str]) -> Task:
    """The sentences in pairs of neighbours, with random gold scores; an odd one is left out."""
    first, second = tuple(texts[: len(texts) - 1 : 2]), tuple(texts[1::2])
    gold = np.random.default_rng(0).random(len(first))
    return Task("repeated", (PairSet("repeated", "", "test", first, second, gold, "", ""),))
