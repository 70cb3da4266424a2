"""fastText's binary form (.bin): vectors of words from those of the word and its character n-grams.

    v(w) = mean of the rows of w itself and of the n-grams of <w>, minn to maxn characters long

An n-gram's row is words + FNV-1a(n-gram) mod bucket. The input matrix is mapped from the file, so
only the rows of words that are looked up are read. Words outside the vocabulary are not made up
from their n-grams. Source: Bojanowski et al. 2017; fastText's src/args.cc, dictionary.cc,
matrix: version 12.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from whitepool.errors import UserError
from whitepool.words.table import Floats, Rows, WordTable, mapped, scratch

MAGIC = struct.pack("<i", 793712314)
VERSION = 12
AGAIN = "fetch the file again"


@dataclass(frozen=True)
class Subwords:
    """How a word's n-grams are found.

    Attributes:
        words: number of words, whose rows come first.
        bucket: number of rows that n-grams share.
        minn: fewest characters of an n-gram; with ``maxn`` 0 there are none.
        maxn: most.
    """

    words: int
    bucket: int
    minn: int
    maxn: int

    def rows(self, word: str) -> list[int]:
        """Rows of a word's n-grams."""
        framed = f"<{word}>"
        grams = (
            framed[start : start + n]
            for start in range(len(framed))
            for n in range(max(self.minn, 1), min(self.maxn, len(framed) - start) + 1)
            # A single character counts unless it is the mark of the word's start or end.
            if not (n == 1 and start in (0, len(framed) - 1))
        )
        return [self.words + fnv1a(gram.encode()) % self.bucket for gram in grams]


def fnv1a(raw: bytes) -> int:
    """fastText's hash, 32 bits, which takes bytes as signed."""
    value = 2166136261
    for byte in raw:
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * 16777619) & 0xFFFFFFFF
    return value


def is_fasttext(path: Path) -> bool:
    """Whether a file begins as fastText's binary form does."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read(path: Path) -> WordTable:
    """The words of a model; their vectors are worked out as they are needed.

    Raises:
        UserError: another version, a quantised model, a damaged file.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except (struct.error, EOFError) as fault:
        raise UserError(f"{path}: it ends within its header; {AGAIN}.") from fault
    except UnicodeDecodeError as fault:
        raise UserError(f"{path}: a word that is not valid UTF-8; {AGAIN}.") from fault


def _read(path: Path, file: IO[bytes]) -> WordTable:
    _, version = _unpack(file, "<ii")
    if version != VERSION:
        raise UserError(
            f"{path}: version {version} of fastText's form, this reads {VERSION}; fetch one."
        )
    arguments = _unpack(file, "<12id")
    dim, bucket, minn, maxn = arguments[0], *arguments[8:11]
    size, words, labels, _tokens, pruned = _unpack(file, "<iiiqq")
    if min(words, labels) < 0 or words + labels != size or dim < 1 or (maxn > 0 and bucket < 1):
        raise UserError(f"{path}: its header has numbers that do not go together; {AGAIN}.")
    if pruned > 0:
        raise _quantised(path)
    names = []
    for _ in range(size):
        name = _string(file)
        _unpack(file, "<qb")
        names.append(name)
    (quantised,) = _unpack(file, "<?")
    if quantised:
        raise _quantised(path)
    rows, columns = _unpack(file, "<qq")
    offset = file.tell()
    if columns != dim or rows < words + (bucket if maxn > 0 else 0):
        raise UserError(f"{path}: a matrix of {rows} by {columns} for {words} words; {AGAIN}.")
    if path.stat().st_size < offset + 4 * rows * columns:
        raise UserError(f"{path}: it ends within its vectors; {AGAIN}.")
    matrix = np.memmap(path, np.dtype("<f4"), "r", offset, (rows, columns))
    vocabulary = {name: row for row, name in enumerate(names[:words])}
    if len(vocabulary) < words:
        raise UserError(f"{path}: a word comes twice; {AGAIN}.")
    if not vocabulary:
        raise UserError(f"{path} holds no word vectors; give a file with at least one.")
    subwords = Subwords(words, bucket, minn, maxn)

    def fill(wanted: Rows) -> Floats:
        return np.stack([_vector(matrix, subwords, names[row], row) for row in wanted.tolist()])

    return WordTable(vocabulary, mapped(scratch(), words, dim), fill)


def _quantised(path: Path) -> UserError:
    return UserError(f"{path}: a quantised model, which is not read; give the one it came from.")


def _vector(matrix: NDArray[np.float32], subwords: Subwords, word: str, row: int) -> Floats:
    # The end of a sentence, </s>, has a row and no n-grams.
    grams = subwords.rows(word) if subwords.maxn > 0 and word != "</s>" else []
    with np.errstate(invalid="ignore", over="ignore"):  # refused with the word's name
        vector: Floats = matrix[[row, *grams]].astype(np.float64).mean(0).astype(np.float32)
    return vector


def _unpack(file: IO[bytes], form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _string(file: IO[bytes]) -> str:
    """Bytes up to a zero byte."""
    raw = bytearray()
    while (byte := file.read(1)) != b"\0":
        if not byte:
            raise EOFError
        raw += byte
    return raw.decode("utf-8")
