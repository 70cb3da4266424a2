"""Texts to token ids with a prompt and a template around them, and what is done with long ones.

A text that is too long loses its end (truncate), is refused (error), or is cut into pieces that
fit, each with the same special tokens, prompt and template around it (chunk_mean). The vector of
a text in pieces is their mean, weighted by the tokens of the text in each:

    v = sum_p n_p v_p / sum_p n_p
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.recipe import LONG_TEXT, SLOT
from whitepool.tokenizing import Tokenized

Ids = tuple[int, ...]


class Pieces(NamedTuple):
    """Token ids of texts, one piece for most, none for blank ones.

    Attributes:
        ids: token ids of each piece, in the order of the texts.
        owner: the text each piece is of.
        weight: tokens of the text in each piece, where a text has several; else 1.
        truncated: whether each text was cut.
    """

    ids: list[Ids]
    owner: list[int]
    weight: list[int]
    truncated: list[bool]

    def whole(self) -> Tokenized:
        """Token ids of each text, where none has several pieces."""
        ids: list[Ids] = [()] * len(self.truncated)
        for sequence, text in zip(self.ids, self.owner, strict=True):
            ids[text] = sequence
        return Tokenized(ids, self.truncated)


def cut(
    plm: FrozenPLM,
    texts: Sequence[str],
    *,
    max_length: int,
    long_text: str = "truncate",
    prompt: str = "",
    template: str = SLOT,
) -> Pieces:
    """Tokenise texts, each as ``template`` with prompt and text in its slot.

    Args:
        plm: whose tokenizer.
        texts: what to tokenise; a blank one has no piece, whatever the template.
        max_length: most tokens of a piece, special ones included.
        long_text: ``truncate``, ``error`` or ``chunk_mean``.
        prompt: put before each text.
        template: a text with the slot ``{text}``.

    Raises:
        UserError: another ``long_text``; a text that is too long, for ``error``; no room beside
            prompt and template.
    """
    if long_text not in LONG_TEXT:
        raise UserError(f"long_text is {long_text!r}: choose one of {', '.join(LONG_TEXT)}.")
    before, _, after = template.partition(SLOT)
    before += prompt
    filled = [i for i, text in enumerate(texts) if text.strip()]
    ids, long = plm.tokenize([f"{before}{texts[i]}{after}" for i in filled], max_length)
    pieces = Pieces([], [], [], [False] * len(texts))
    for i, sequence, is_long in zip(filled, ids, long, strict=True):
        parts: list[tuple[Ids, int]] = [(sequence, 1)]
        if is_long and long_text == "error":
            raise UserError(
                f"text {i} ({texts[i][:40]!r}) is over max_length {max_length}: shorten it, or "
                "give long_text=truncate or chunk_mean."
            )
        if is_long and (long_text == "chunk_mean" or after):
            parts = _parts(plm.tokenizer, before, texts[i], after, max_length)
            parts = parts if long_text == "chunk_mean" else parts[:1]
        pieces.truncated[i] = is_long and long_text == "truncate"
        for part, weight in parts:
            pieces.ids.append(part)
            pieces.owner.append(i)
            pieces.weight.append(weight)
    return pieces


def _parts(
    tokenizer: Any, before: str, text: str, after: str, max_length: int
) -> list[tuple[Ids, int]]:
    """Pieces of a long text and the tokens of the text in each."""
    if not tokenizer.is_fast:
        raise UserError(
            "a text over max_length can be cut within a template or into chunks by fast tokenizers "
            f"alone, and {type(tokenizer).__name__} is none: give long_text=truncate or error."
        )
    found = tokenizer(
        f"{before}{text}{after}",
        truncation=False,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        verbose=False,
    )
    start, end = len(before), len(before) + len(text)
    own = [
        not special and first < end and last > start
        for special, (first, last) in zip(
            found["special_tokens_mask"], found["offset_mapping"], strict=True
        )
    ]
    ids = tuple(found["input_ids"])
    first, last = own.index(True), len(own) - own[::-1].index(True)
    head, body, tail = ids[:first], ids[first:last], ids[last:]
    room = max_length - len(head) - len(tail)
    if room < 1:
        raise UserError(
            f"special tokens, prompt and template take {len(head) + len(tail)} tokens of "
            f"max_length {max_length}, which leaves none for the text."
        )
    chunks = [body[i : i + room] for i in range(0, len(body), room)]
    return [(head + chunk + tail, len(chunk)) for chunk in chunks]
