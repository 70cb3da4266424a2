"""Texts to token ids with a prompt and a template around them, and what is done with long ones.

A text that is too long loses its end (truncate), is refused (error), or is cut into pieces that
fit, each with the same special tokens, prompt and template around it (chunk_mean). The vector of
a text in pieces is their mean, weighted by the tokens of the text in each:

    v = sum_p n_p v_p / sum_p n_p
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn

from whitepool.errors import UserError
from whitepool.framing import Frame, Parts, finished, parts_of, with_mask
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
    full_stop: bool = False,
    apart: bool = False,
) -> Pieces:
    """Tokenise texts, each as ``template`` with prompt and text in its slot.

    Args:
        plm: whose tokenizer.
        texts: what to tokenise; a blank one has no piece, whatever the template.
        max_length: most tokens of a piece, special ones included.
        long_text: ``truncate``, ``error`` or ``chunk_mean``.
        prompt: put before each text.
        template: a text with the slot ``{text}``.
        full_stop: whether texts are `finished` first.
        apart: whether texts are tokenised apart from the template, which may then have two slots.

    Raises:
        UserError: another ``long_text``; a text that is too long, for ``error``; no room beside
            prompt and template; a template that the model has no mask token for.
    """
    if long_text not in LONG_TEXT:
        raise UserError(f"long_text is {long_text!r}: choose one of {', '.join(LONG_TEXT)}.")
    if full_stop:
        texts = [finished(text) for text in texts]
    if apart:
        return _apart(plm, [f"{prompt}{t}" if t.strip() else "" for t in texts], max_length,
                      long_text, parts_of(plm, template))  # fmt: skip
    before, _, after = with_mask(template, plm).partition(SLOT)
    before += prompt
    filled = [i for i, text in enumerate(texts) if text.strip()]
    ids, long = plm.tokenize([f"{before}{texts[i]}{after}" for i in filled], max_length)
    pieces = Pieces([], [], [], [False] * len(texts))
    for i, sequence, is_long in zip(filled, ids, long, strict=True):
        parts: list[tuple[Ids, int]] = [(sequence, 1)]
        if is_long and long_text == "error":
            _refuse_long(texts[i], i, max_length)
        if is_long and (long_text == "chunk_mean" or after):
            parts = _parts(plm.tokenizer, before, texts[i], after, max_length)
            parts = parts if long_text == "chunk_mean" else parts[:1]
        pieces.truncated[i] = is_long and long_text == "truncate"
        for part, weight in parts:
            pieces.ids.append(part)
            pieces.owner.append(i)
            pieces.weight.append(weight)
    return pieces


def framed(
    plm: FrozenPLM, max_length: int, frame: Frame, *, apart: bool = False
) -> Callable[[Sequence[str]], Tokenized]:
    """Texts to the token ids that they have in a frame, cut to ``max_length`` tokens."""
    return partial(_in_frame, plm, max_length, frame, apart)


def _in_frame(
    plm: FrozenPLM, max_length: int, frame: Frame, apart: bool, texts: Sequence[str]
) -> Tokenized:
    if frame.is_plain:
        return plm.tokenize(texts, max_length)
    pieces = cut(
        plm,
        texts,
        max_length=max_length,
        template=frame.template,
        full_stop=frame.full_stop,
        apart=apart,
    )
    return pieces.whole()


def _apart(
    plm: FrozenPLM, texts: Sequence[str], max_length: int, long_text: str, parts: Parts
) -> Pieces:
    """`cut` with the tokens of a template around those of each text."""
    room = (max_length - parts.length) // parts.slots
    if room < 1:
        raise UserError(
            f"special tokens and template take {parts.length} tokens of max_length {max_length}, "
            "which leaves none for the text."
        )
    filled = [i for i, text in enumerate(texts) if text]
    bodies = plm.tokenize_bare([f"{parts.space}{texts[i]}" for i in filled]) if filled else []
    pieces = Pieces([], [], [], [False] * len(texts))
    for i, body in zip(filled, bodies, strict=True):
        is_long = len(body) > room
        if is_long and long_text == "error":
            _refuse_long(texts[i], i, max_length)
        chunks = [body[j : j + room] for j in range(0, len(body), room)]
        pieces.truncated[i] = is_long and long_text == "truncate"
        for chunk in chunks if long_text == "chunk_mean" else chunks[:1]:
            pieces.ids.append(parts.around(chunk))
            pieces.owner.append(i)
            pieces.weight.append(len(chunk) if len(chunks) > 1 else 1)
    return pieces


def _refuse_long(text: str, place: int, max_length: int) -> NoReturn:
    raise UserError(
        f"text {place} ({text[:40]!r}) is over max_length {max_length}: shorten it, or give "
        "long_text=truncate or chunk_mean."
    )


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
