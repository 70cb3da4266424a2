"""Sentence pairs: readers of the published STS sets and of a user's own files."""

from whitepool.data.chinese import load_chinese
from whitepool.data.load import load_pairs, load_sts
from whitepool.data.multilingual import load_stsb_multi
from whitepool.data.pairs import PairSet, Task
from whitepool.data.retrieval import load_retrieval
from whitepool.data.rte import load_rte

__all__ = [
    "PairSet",
    "Task",
    "load_chinese",
    "load_pairs",
    "load_retrieval",
    "load_rte",
    "load_sts",
    "load_stsb_multi",
]
