"""Texts to token ids, cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Tokenized(NamedTuple):
    """Token ids of some texts, and which of them were cut.

    Attributes:
        ids: token ids of each text, special tokens included; () for a blank text.
        truncated: whether each text was longer than the limit.
    """

    ids: list[tuple[int, ...]]
    truncated: list[bool]


def tokenize(tokenizer: Any, texts: Sequence[str], longest: int) -> Tokenized:
    """Token ids of each text, cut to ``longest`` tokens, special ones included.

    Blank texts (empty or white space only) get no tokens at all.
    """
    filled = [i for i, text in enumerate(texts) if text.strip()]
    options = {"padding": False, "return_attention_mask": False, "verbose": False}
    ids: list[tuple[int, ...]] = [()] * len(texts)
    truncated = [False] * len(texts)
    if not filled:
        return Tokenized(ids, truncated)
    found = tokenizer([texts[i] for i in filled], truncation=False, **options)["input_ids"]
    for i, sequence in zip(filled, found, strict=True):
        if len(sequence) > longest:
            truncated[i] = True
            sequence = tokenizer(  # noqa: PLW2901
                texts[i], truncation=True, max_length=longest, **options
            )["input_ids"]
        ids[i] = tuple(sequence)
    return Tokenized(ids, truncated)


def added_ids(tokenizer: Any) -> list[int]:
    """Ids of the special tokens but the unknown one, which stands for words."""
    return [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]


def pad_id(tokenizer: Any) -> int:
    """An id to pad with: the padding token, or another where there is none."""
    for candidate in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id):
        if candidate is not None:
            return int(candidate)
    return 0
