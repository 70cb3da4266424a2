"""Sentences to judge by without labels: those of a corpus, of dev splits, or of what is scored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from whitepool.data.corpus import Corpus
from whitepool.data.pairs import PairSet, Task

SENTENCES = 1000  # judged by; more change little and cost a pass
SEED = 0


def sentences(tasks: Sequence[Task], corpus: Corpus | None = None) -> tuple[list[str], str]:
    """Up to `SENTENCES` distinct texts, always the same of the same input, and what they are.

    Args:
        tasks: their dev splits lend sentences where every task has one, or else what is scored.
            No gold score is read.
        corpus: comes first where there is one; it is read once, to its end.
    """
    if corpus is not None:
        limit = min(corpus.limit or SENTENCES, SENTENCES)
        texts = list(dict.fromkeys(t.text for t in replace(corpus, limit=limit).read()))
        return texts, f"{len(texts):,} texts of corpus {corpus.name}"
    sets = dev_splits(tasks) or [s for task in tasks for s in task.scored]
    names = dict.fromkeys(f"{s.task} {s.split}" for s in sets)
    found = list(dict.fromkeys(text for s in sets for text in s.texts() if text.strip()))
    some = random.Random(SEED).sample(found, min(SENTENCES, len(found)))
    return some, f"{len(some):,} sentences of {', '.join(names)}"


def dev_splits(tasks: Sequence[Task]) -> list[PairSet]:
    """The dev split of each task, apart from what is scored; none where one of them has none."""
    found = [s for task in tasks for s in task.other_splits if s.split == "dev"]
    return found if {s.task for s in found} == {task.name for task in tasks} else []


def as_task(texts: Sequence[str]) -> Task:
    """Texts as a task, so that a table can be built of them; each is its own partner."""
    texts, gold = tuple(texts), np.zeros(len(texts))
    return Task("sentences", (PairSet("sentences", "", "dev", texts, texts, gold, "", ""),))
