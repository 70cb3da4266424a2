"""Sentence pairs: readers of the published STS sets and of a user's own files."""

from whitepool.data.load import load_pairs, load_sts
from whitepool.data.pairs import PairSet, Task

__all__ = ["PairSet", "Task", "load_pairs", "load_sts"]
