"""Corpora in files: text, JSON lines, CSV and TSV, Parquet; a file is read as it is needed.

Files ending in ``.gz`` are unpacked while they are read, but for Parquet, which has compression of
its own. Lines end at a line feed only, and TSV has no quoting, as in `whitepool.data.text`.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from whitepool.data.corpus import Corpus, Source, Text
from whitepool.data.pairs_file import csv_cells, sentence_of
from whitepool.data.parquet_file import check_rows, parquet_file
from whitepool.data.text import json_object, not_utf8
from whitepool.errors import UserError

Paths = str | Sequence[str]
Columns = str | Sequence[str]
ROWS = 4096


def text_files(path: Paths) -> Corpus:
    """One sentence per line.

    Args:
        path: a file, a pattern (``*``, ``?``, ``**``), or a list of them.

    Raises:
        UserError: no such file, here and below; bad UTF-8 and the like, once it is read.
    """
    return _corpus("text", path, _lines)


def jsonl_files(path: Paths, column: Columns = "text") -> Corpus:
    """One JSON object per line; ``column`` names the keys of the texts, one or several."""
    return _corpus("jsonl", path, partial(json_texts, columns=names(column)))


def csv_files(path: Paths, column: Columns = "text") -> Corpus:
    """CSV (quoted) or TSV (not quoted) with a header row; ``column`` names the texts' columns."""
    files = expand(path)
    for file in files:
        if extension(file) not in (".csv", ".tsv"):
            raise UserError(f"{file}: corpus=csv reads .csv and .tsv (or either with .gz).")
    return _corpus("csv", path, partial(_table_texts, columns=names(column)))


def parquet_files(path: Paths, column: Columns = "text") -> Corpus:
    """Parquet files; ``column`` names the texts' columns."""
    return _corpus("parquet", path, partial(parquet_texts, columns=names(column)))


def _corpus(name: str, path: Paths, read: Callable[[Path], Iterator[Text]]) -> Corpus:
    return Corpus(name, tuple(Source(str(file), partial(read, file)) for file in expand(path)))


def names(column: Columns) -> tuple[str, ...]:
    """One name or several as a tuple.

    Raises:
        UserError: no name.
    """
    found = (column,) if isinstance(column, str) else tuple(column)
    if not found:
        raise UserError("corpus.column is empty: name the column that holds the texts.")
    return found


def expand(path: Paths, setting: str = "corpus.path") -> list[Path]:
    """The files that paths and patterns stand for, each once; a pattern's files in order of name.

    Args:
        path: see `text_files`.
        setting: what it was given as, for messages.

    Raises:
        UserError: a pattern without a match, a path that is no file.
    """
    files: list[Path] = []
    patterns = [path] if isinstance(path, str) else list(path)
    if not patterns:
        raise UserError(f"{setting} is empty: give a file, a pattern or a list of them.")
    for pattern in patterns:
        one = Path(pattern).expanduser()
        if one.is_file():
            files.append(one)
        elif one.is_dir():
            raise UserError(f"{setting}={pattern} is a folder: give its files, as {pattern}/*.")
        elif glob.has_magic(pattern):
            matches = [Path(m) for m in sorted(glob.glob(str(one), recursive=True))]
            if not (matches := [m for m in matches if m.is_file()]):
                raise UserError(f"no file matches {setting}={pattern}: check the pattern.")
            files.extend(matches)
        else:
            raise UserError(f"{setting}={pattern} does not exist: check the path.")
    return list(dict.fromkeys(files))


def extension(path: Path) -> str:
    """The extension without ``.gz``, in lower case."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def byte_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of each line, its end kept; no byte order mark.

    Raises:
        UserError: unreadable, bad gzip; with the line.
    """
    number = 0
    gzipped = path.suffix.lower() == ".gz"
    try:
        with path.open("rb") as raw, gzip.open(raw) if gzipped else nullcontext(raw) as file:
            for number, line in numbered(file):
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as fault:
        raise UserError(
            f"{path}: not a whole gzip file (after line {number}); fetch it again."
        ) from fault
    except OSError as fault:
        raise UserError(f"{path} cannot be read ({fault.strerror}): check the path.") from fault


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of each line of an open file; no byte order mark."""
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if content:  # a file of a byte order mark alone has no line
            yield number, content


def decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number, from 1, and content of each line, its end kept.

    Raises:
        UserError: unreadable, bad gzip, bad UTF-8; with the line.
    """
    for number, line in byte_lines(path):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise not_utf8(line, f"{path}, line {number}") from fault


def _lines(path: Path) -> Iterator[Text]:
    for number, line in decoded_lines(path):
        yield Text(line.removesuffix("\n").removesuffix("\r"), f"{path}, line {number}")


def json_texts(path: Path, columns: Sequence[str]) -> Iterator[Text]:
    """Texts of a file of JSON lines; empty lines are blank texts."""
    for number, line in decoded_lines(path):
        where = f"{path}, line {number}"
        if not line.strip():
            yield Text("", where)
            continue
        record = json_object(line, where)
        require(columns, list(record), where)
        for name in columns:
            yield Text(sentence_of(record[name], name, where), where)


def _table_texts(path: Path, columns: Sequence[str]) -> Iterator[Text]:
    rows: Iterator[tuple[int, list[str]]]
    if extension(path) == ".tsv":
        lines = ((n, x.removesuffix("\n").removesuffix("\r")) for n, x in decoded_lines(path))
        rows = ((number, line.split("\t") if line else []) for number, line in lines)
    else:
        rows = csv_cells((line for _, line in decoded_lines(path)), path)
    line, header = next(rows, (1, None))
    if header is None:
        return
    require(columns, header, f"{path}, line {line}")
    places = [header.index(name) for name in columns]
    for line, fields in rows:
        where = f"{path}, line {line}"
        if not fields:  # an empty line
            yield Text("", where)
            continue
        if len(fields) != len(header):
            raise UserError(
                f"{where}: {len(fields)} columns found, {len(header)} in the header; correct it."
            )
        for place in places:
            yield Text(fields[place], where)


def parquet_texts(path: Path, columns: Sequence[str]) -> Iterator[Text]:
    """Texts of a Parquet file, some thousand rows in memory at a time."""
    number = 0
    with parquet_file(path, str(path)) as file:
        require(columns, file.schema_arrow.names, str(path))
        for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
            cells = [batch.column(name).to_pylist() for name in columns]
            for row in zip(*cells, strict=True):
                number += 1
                where = f"{path}, row {number}"
                for name, value in zip(columns, row, strict=True):
                    yield Text(sentence_of(value, name, where), where)
        check_rows(number, file, str(path))


def require(
    columns: Sequence[str], found: Sequence[str], where: str, setting: str = "corpus.column"
) -> None:
    """See that each column is there once; ``setting`` chooses it, for the message.

    Raises:
        UserError: it is not; the message lists those that are.
    """
    for name in columns:
        if list(found).count(name) != 1:
            fault = f"several columns {name}" if name in found else f"no column {name}"
            raise UserError(
                f"{where}: {fault} (columns found: {', '.join(found) or 'none'}); name the texts' "
                f"column with {setting}=."
            )
