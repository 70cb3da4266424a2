"""Chinese words as tokens: a text is cut into words before its tokenizer sees it.

A word that the vocabulary has is one token; any other goes the usual way of BERT, ideographs and
punctuation by themselves and the rest through word pieces. This is how WoBERT and RoFormer were
trained (Su 2020, github.com/ZhuiyiTechnology/WoBERT), with jieba and without its guesses at unknown
words (HMM=False).
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from whitepool.errors import UserError

SEGMENTERS = ("jieba",)
# Blocks of CJK ideographs, as BERT's tokenizer has them.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordSplitter:
    """Cuts texts into words, and words that the vocabulary lacks as BERT does.

    Args:
        cut: a text to its words, which joined are the text again.
        vocabulary: the tokens.
    """

    def __init__(self, cut: Callable[[str], Sequence[str]], vocabulary: Container[str]) -> None:
        self.cut, self.vocabulary = cut, vocabulary

    def pre_tokenize(self, text: Any) -> None:
        """What the library tokenizers calls."""
        text.split(self._pieces)

    def _pieces(self, index: int, text: Any) -> list[Any]:
        return [text[start:end] for start, end in self.spans(str(text))]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each piece of a text; white space is left out."""
        start = 0
        for word in self.cut(text):
            if word in self.vocabulary and not word.isspace():
                yield start, start + len(word)
            else:
                yield from ((start + a, start + b) for a, b in _parts(word))
            start += len(word)


def _parts(word: str) -> Iterator[tuple[int, int]]:
    """Ideographs and punctuation by themselves, and the runs between them and white space."""
    begun = 0
    for at, character in enumerate(word):
        if character.isspace() or _stands_alone(character):
            if begun < at:
                yield begun, at
            if not character.isspace():
                yield at, at + 1
            begun = at + 1
    if begun < len(word):
        yield begun, len(word)


def _stands_alone(character: str) -> bool:
    code = ord(character)
    if any(first <= code <= last for first, last in IDEOGRAPHS):
        return True
    ascii_mark = 33 <= code <= 126 and not character.isalnum()
    return ascii_mark or unicodedata.category(character).startswith("P")


def segmented(tokenizer: Any, segmenter: str) -> Any:
    """A tokenizer that cuts texts into words first.

    Args:
        tokenizer: a fast tokenizer of BERT's kind, lower-casing; it is changed.
        segmenter: ``jieba``.

    Raises:
        UserError: an unknown segmenter, one that is not installed, or a tokenizer of another kind.
    """
    if segmenter not in SEGMENTERS:
        raise UserError(f"model.segmenter is {segmenter!r}: choose {' or '.join(SEGMENTERS)}.")
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or type(backend.model).__name__ not in ("WordPiece", "WordLevel"):
        raise UserError(
            f"model.segmenter={segmenter} is for a fast tokenizer of BERT's kind, and this model's "
            f"is a {type(tokenizer).__name__}: leave it out."
        )
    return with_splitter(tokenizer, _jieba())


def with_splitter(tokenizer: Any, cut: Callable[[str], Sequence[str]]) -> Any:
    """The tokenizer, with texts cut by ``cut``; it is changed."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import PreTokenizer

    backend = tokenizer.backend_tokenizer
    # Spaces around ideographs, which BERT's normalizer adds, would cut every word.
    backend.normalizer = BertNormalizer(handle_chinese_chars=False, lowercase=True)
    backend.pre_tokenizer = PreTokenizer.custom(WordSplitter(cut, tokenizer.get_vocab()))
    return tokenizer


def _jieba() -> Callable[[str], Sequence[str]]:
    try:
        import jieba
    except ImportError as fault:
        raise UserError(
            'words as tokens need jieba: install it with pip install "whitepool[chinese]".'
        ) from fault
    from whitepool.fetching import cache_root

    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    folder = cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    words.tmp_dir = str(folder)  # what jieba keeps of its dictionary is not for a common folder
    words.initialize()

    def cut(text: str) -> Sequence[str]:
        pieces: list[str] = words.lcut(text, HMM=False)
        return pieces

    return cut
