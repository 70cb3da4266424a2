"""Word vectors in text (GloVe, word2vec, fastText's .vec) and in word2vec's binary form.

Text has a word and its numbers on each line, separated by spaces; word2vec and fastText put
"words dimensions" on a first line of its own. word2vec's binary form has that line too, then for
each word its bytes, a space and the numbers as little-endian float32. Files may be gzipped. Which
it is, the content says. Sources: nlp.stanford.edu/projects/glove; word2vec's distance.c;
fasttext.cc/docs/en/crawl-vectors.html.
"""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from whitepool.errors import UserError
from whitepool.words.table import Floats, Gathered

CHUNK = 4096  # words taken at a time
DIGITS = 9  # of the counts in a header: more words or dimensions fit on no disk
LONGEST = 100  # characters of a number
AGAIN = "fetch the file again"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's content, unzipped where it is gzipped.

    Raises:
        UserError: it cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as raw:
            if raw.peek(2)[:2] == b"\x1f\x8b":
                with gzip.open(raw) as file:
                    yield file  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as fault:
        raise UserError(f"{path} cannot be read ({fault}); {AGAIN}.") from fault


def read(path: Path) -> Gathered:
    """All words and vectors of a file.

    Raises:
        UserError: it cannot be read, or is malformed.
    """
    with opened(path) as file:
        first = file.readline()
        header = _header(first)
        if header is None:
            return _read_text(path, file, [first], None)
        words, dim = header
        if words < 1 or dim < 1:
            raise UserError(f"{path}, line 1: {words} words of {dim} dimensions; {AGAIN}.")
        # A text's second line ends soon; binary numbers may hold a line end anywhere or nowhere.
        second = file.readline(64 * dim + 1024)
        if (numbers := _numbers_behind_a_word(second)) not in (0, dim):
            raise UserError(
                f"{path}, line 2: {numbers} numbers found, {dim} announced in line 1; {AGAIN}."
            )
        if _is_text(second, dim):
            return _read_text(path, file, [second], header)
        return _read_binary(path, file, second, words, dim)


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() and len(field) <= DIGITS for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _numbers_behind_a_word(line: bytes) -> int:
    """How many they are, where the line is a word and two numbers or more; else 0."""
    _, *fields = line.split() or [b""]
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return 0
    return len(numbers) if line.endswith(b"\n") and len(numbers) > 1 else 0


def _is_text(line: bytes, dim: int) -> bool:
    fields = line.split()[-dim:]
    try:
        return len(fields) == dim and len([float(field) for field in fields]) == dim
    except ValueError:
        return False


def _read_text(
    path: Path, file: IO[bytes], begun: list[bytes], header: tuple[int, int] | None
) -> Gathered:
    """Lines of text; numbers count from the end, since some of GloVe's words hold spaces."""
    dim = header[1] if header else len(begun[0].split()) - 1
    if dim < 1:
        raise UserError(f"{path}, line 1: no word with its vector; {AGAIN}.")
    gathered, line = Gathered(path, dim), 1 + (header is not None)
    lines = itertools.chain(begun, file)
    while some := list(itertools.islice(lines, CHUNK)):
        words, numbers = [], []
        for number, content in enumerate(some, start=line):
            fields = content.rstrip(b" \r\n").split(b" ")
            if len(fields) <= dim:
                found = len(fields) - 1
                raise UserError(
                    f"{path}, line {number}: {found} numbers found, {dim} needed; {AGAIN}."
                )
            words.append(_word(b" ".join(fields[:-dim]), f"{path}, line {number}"))
            numbers.append(fields[-dim:])
        gathered.add(words, _numbers(numbers, path, line))
        line += len(some)
    total = len(gathered.rows) + gathered.repeated
    if header is not None and total != header[0]:
        raise UserError(f"{path}: {total} words found, {header[0]} announced; {AGAIN}.")
    return gathered


def _numbers(fields: list[list[bytes]], path: Path, line: int) -> Floats:
    try:
        with np.errstate(over="ignore"):  # what is not finite is refused with its word's name
            vectors: Floats = np.array(fields).astype(np.float32)
        return vectors
    except ValueError:
        for number, own in enumerate(fields, start=line):
            for field in own:
                try:
                    float(field)
                except ValueError as fault:
                    text = field.decode("utf-8", "replace")
                    raise UserError(
                        f"{path}, line {number}: {text!r} is not a number; {AGAIN}."
                    ) from fault
        raise


def _word(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UserError(f"{where}: a word that is not valid UTF-8; convert it to UTF-8.") from fault


def _read_binary(path: Path, file: IO[bytes], begun: bytes, words: int, dim: int) -> Gathered:
    gathered, size = Gathered(path, dim), 4 * dim
    buffer, at = bytearray(begun), 0
    names: list[str] = []
    vectors: list[bytes] = []
    for number in range(1, words + 1):
        while True:
            end = buffer.find(b" ", at)
            if end >= 0 and len(buffer) >= end + 1 + size:
                break
            if not (more := file.read(1 << 20)):
                raise UserError(f"{path}: it ends within word {number:,} of {words:,}; {AGAIN}.")
            buffer = buffer[at:] + more
            at = 0
        # Some writers end a vector with a line end, which then stands before the next word.
        names.append(_word(bytes(buffer[at:end]).lstrip(b"\n"), f"{path}, word {number}"))
        vectors.append(bytes(buffer[end + 1 : end + 1 + size]))
        at = end + 1 + size
        if len(names) == CHUNK or number == words:
            gathered.add(names, np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dim))
            names, vectors = [], []
    if (bytes(buffer[at:]) + file.read(2)).strip(b"\n"):
        raise UserError(f"{path}: it goes on behind the {words:,} words announced; {AGAIN}.")
    return gathered
