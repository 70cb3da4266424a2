"""What users hand over to be encoded, checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from whitepool.errors import UserError


def checked(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences, one by one.

    Raises:
        UserError: something that is not a text; the message gives its position.
    """
    if isinstance(sentences, str | bytes | Mapping) or not isinstance(sentences, Iterable):
        raise UserError(
            f"sentences is {_show(sentences)}: give a list or another iterable of texts."
        )
    for position, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise UserError(f"sentences[{position}] is {_show(sentence)}, not a text.")
        yield sentence


def prompt_of(prompts: Mapping[str, str], prompt: str | None, prompt_name: str | None) -> str:
    """The prompt a call asks for, empty if it asks for none.

    Raises:
        UserError: both ways at once, or an unknown name.
    """
    if prompt is not None and prompt_name is not None:
        raise UserError("prompt and prompt_name are both given: give one of them.")
    if prompt_name is None:
        return prompt or ""
    if prompt_name not in prompts:
        raise UserError(f"prompt_name is {prompt_name!r}: choose one of {', '.join(prompts)}.")
    return prompts[prompt_name]


def _show(value: Any) -> str:
    text = repr(value)
    return f"{text[:40]}{'…' if len(text) > 40 else ''} ({type(value).__name__})"
