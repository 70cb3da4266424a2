"""What is put around a text before it is tokenised: a template, and a full stop at its end.

A template has the slot ``{text}``, and may have ``[MASK]``, which stands for the model's own mask
token. It is tokenised together with its text (`whitepool.longtext`), or apart from it where a head
has to know which tokens are the template's: then a text has the same tokens in every slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whitepool.errors import UserError
from whitepool.pooling import DebiasedPrompt, LinearPooling, MaskToken, Pooling, SecondCopy
from whitepool.recipe import SLOT, check_template

if TYPE_CHECKING:
    from whitepool.plm import FrozenPLM

MASK = "[MASK]"
ENDS = (".", "?", '"', "'")  # after which PromptBERT's code adds no full stop

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """What is put around texts.

    Attributes:
        template: a text with the slot ``{text}``; with two of them for `SecondCopy`.
        full_stop: whether a text that ends otherwise than in `ENDS` gets a full stop.
    """

    template: str = SLOT
    full_stop: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether texts stay as they are."""
        return self == Frame()

    def plain(self) -> dict[str, Any]:
        """What it says, as plain values; nothing where texts stay as they are."""
        return {} if self.is_plain else {"template": self.template, "full_stop": self.full_stop}


def finished(text: str) -> str:
    """The text with a full stop where it has no such end; blank ones stay as they are."""
    short = text.rstrip()
    return f"{short}." if short and not short.endswith(ENDS) else text


def with_mask(template: str, plm: FrozenPLM) -> str:
    """The template with the model's mask token for ``[MASK]``.

    Raises:
        UserError: the model has none.
    """
    if MASK not in template:
        return template
    if plm.tokenizer.mask_token is None:
        raise UserError(
            f"the template has a {MASK} slot and model {plm.name} has no mask token: take a masked "
            "language model, or a template for decoders, as pooling=prompteol has."
        )
    return template.replace(MASK, str(plm.tokenizer.mask_token))


def check_frame(pooling: Pooling, frame: Frame) -> None:
    """See that a template has the slots that a head reads.

    Raises:
        UserError: it has not.
    """
    check_template(frame.template, slots=2 if _is_tokens(pooling, SecondCopy) else 1)
    reads_mask = _is_tokens(pooling, MaskToken) or isinstance(pooling, DebiasedPrompt)
    if reads_mask and frame.template.count(MASK) != 1:
        raise UserError(
            f"the head is the vector at {MASK} and the template is {frame.template[:80]!r}: give "
            f"one with {MASK} in it once."
        )


def is_apart(pooling: Pooling) -> bool:
    """Whether a head needs the template tokenised apart from its text."""
    return _is_tokens(pooling, SecondCopy) or isinstance(pooling, DebiasedPrompt)


def _is_tokens(pooling: Pooling, kind: type) -> bool:
    return isinstance(pooling, LinearPooling) and isinstance(pooling.tokens, kind)


@dataclass(frozen=True)
class Parts:
    """A template in tokens, apart from its text.

    Attributes:
        before: tokens up to the first slot, special ones included.
        between: tokens between two slots; None where there is one.
        after: tokens behind the last slot, special ones included.
        space: what stands between the template and its text, which many tokenizers make a part of
            the text's first token.
    """

    before: Ids
    between: Ids | None
    after: Ids
    space: str

    @property
    def slots(self) -> int:
        """How many copies of a text it has."""
        return 1 if self.between is None else 2

    @property
    def length(self) -> int:
        """Tokens of the template."""
        return len(self.before) + len(self.between or ()) + len(self.after)

    def around(self, body: Ids) -> Ids:
        """The template with a text's tokens in its slots."""
        copies = body if self.between is None else body + self.between + body
        return self.before + copies + self.after


def parts_of(plm: FrozenPLM, template: str) -> Parts:
    """The tokens of a template.

    Raises:
        UserError: it has a ``[MASK]`` slot and the model no mask token.
    """
    texts = with_mask(template, plm).split(SLOT)
    # The space before the last slot serves both, so that both copies have the same tokens.
    space = " " if texts[-2].endswith(" ") else ""
    trimmed = [text.removesuffix(" ") for text in texts[:-1]]
    ids = plm.tokenize_bare([*trimmed, texts[-1], "a"])
    opening, closing = _special(plm, ids[-1])
    middle = ids[1] if len(texts) == 3 else None
    return Parts(opening + ids[0], middle, ids[-2] + closing, space)


def _special(plm: FrozenPLM, bare: Ids) -> tuple[Ids, Ids]:
    """The special tokens that the tokenizer puts before and behind a text of one letter."""
    (whole,) = plm.tokenize(["a"]).ids
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    raise UserError(
        f"the tokenizer of model {plm.name} changes a text where it adds special tokens, so a "
        "template cannot be tokenised apart from its text: take a head that needs no such template."
    )
