"""Inputs by name: files, patterns, standard input, or a data set of the hub, as sources of rows."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from whitepool.data import hub
from whitepool.data.corpus_files import byte_lines, expand, extension, numbered
from whitepool.data.hub_corpus import address
from whitepool.data.pairs_file import csv_cells
from whitepool.data.parquet_file import parquet_file
from whitepool.data.parquet_rows import parquet_rows
from whitepool.data.rows import (
    Columns,
    Lines,
    Row,
    csv_rows,
    json_rows,
    text_rows,
    tsv_rows,
)
from whitepool.errors import UserError

log = logging.getLogger(__name__)

STDIN = "-"
FORMATS = ("text", "jsonl", "csv", "tsv", "parquet", "hub")
EXTENSIONS = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
REMEDY = "download its files and give them as input="


@dataclass(frozen=True)
class RowSource:
    """One file of an input.

    Attributes:
        name: its name without folders, or its address on the hub.
        bytes: its size, None for standard input.
        read: reads it from its start; standard input once.
        count: counts its rows, without parsing them where that is possible; None if they cannot
            be counted before they are read.
    """

    name: str
    bytes: int | None
    read: Callable[[], Iterator[Row]]
    count: Callable[[], int | None]


def open_input(
    input: str | Sequence[str],
    *,
    format: str | None = None,
    column: str | None = None,
    id: str | None = None,
    revision: str | None = None,
    split: str | None = None,
    folder: str | None = None,
) -> list[RowSource]:
    """The sources of an input, in order; nothing is read yet.

    Args:
        input: a file, a pattern, a list of them, ``-`` for standard input, or the id of a data set
            on the hub.
        format: one of `FORMATS`; None for what the extension says, text for standard input.
        column: of the texts, ``text`` by default.
        id: column of ids.
        revision: commit of a hub data set.
        split: of a hub data set, ``train`` by default.
        folder: of a hub data set with several configurations, the folder of one.

    Raises:
        UserError: nothing there, a format that is not known, or a setting that it does not take.
    """
    if format is not None and format not in FORMATS:
        raise UserError(f"read.format is {format!r}: choose one of {', '.join(FORMATS)}.")
    columns = Columns(column or "text", id)
    if format == "hub":
        return _hub(input, revision, split or "train", folder, columns)
    given = {"revision": revision, "split": split, "folder": folder}
    if extra := [f"read.{key}={value}" for key, value in given.items() if value is not None]:
        raise UserError(f"{extra[0]} is for read.format=hub: leave it out.")
    if input == STDIN:
        return [_standard_input(format or "text", column, columns)]
    paths = expand(input, "input")
    return [_file(path, format or _format_of(path), column, columns) for path in paths]


def _format_of(path: Path) -> str:
    found = EXTENSIONS.get(extension(path))
    if found is None:
        raise UserError(
            f"{path}: its extension is none of {', '.join(EXTENSIONS)}: say what it is with "
            f"read.format={'|'.join(FORMATS[:-1])}."
        )
    return found


def _check_columns(format: str, column: str | None, columns: Columns) -> None:
    """Text has no columns."""
    for key, value in (("column", column), ("id", columns.id)):
        if format == "text" and value is not None:
            raise UserError(f"the format text has no columns: leave read.{key}={value} out.")


def _file(path: Path, format: str, column: str | None, columns: Columns) -> RowSource:
    _check_columns(format, column, columns)
    if format == "parquet":
        return _parquet(path, path.name, str(path), columns)
    read = partial(_lines_of, path, format, columns)
    return RowSource(path.name, path.stat().st_size, read, partial(_count, path, format))


def _standard_input(format: str, column: str | None, columns: Columns) -> RowSource:
    _check_columns(format, column, columns)
    if format == "parquet":
        raise UserError("Parquet cannot be read from standard input: give a file as input=.")

    def read() -> Iterator[Row]:
        return _rows(numbered(sys.stdin.buffer), format, STDIN, columns)

    return RowSource(STDIN, None, read, lambda: None)


def _parquet(path: Path, name: str, file: str, columns: Columns) -> RowSource:
    read = partial(parquet_rows, path, file, columns)
    return RowSource(name, path.stat().st_size, read, partial(_count_parquet, path, file))


def _count_parquet(path: Path, file: str) -> int:
    with parquet_file(path, file) as parquet:
        return int(parquet.metadata.num_rows)


def _hub(
    dataset: str | Sequence[str],
    revision: str | None,
    split: str,
    folder: str | None,
    columns: Columns,
) -> list[RowSource]:
    if not isinstance(dataset, str):
        raise UserError("read.format=hub reads one data set: give its id as input=OWNER/NAME.")
    if revision is None:
        log.warning(
            "%s is unpinned: what is read may be another text tomorrow; give read.revision=.",
            dataset,
        )
    sources = []
    for path in hub.download(dataset, revision, split, folder, REMEDY):
        name = address(dataset, revision, path)
        if path.suffix == ".parquet":
            sources.append(_parquet(path, name, name, columns))
            continue
        read = partial(_gzipped, path, name, columns)
        sources.append(RowSource(name, path.stat().st_size, read, partial(_count, path, "jsonl")))
    return sources


def _gzipped(path: Path, name: str, columns: Columns) -> Iterator[Row]:
    return json_rows(byte_lines(path), name, columns)


def _lines_of(path: Path, format: str, columns: Columns) -> Iterator[Row]:
    return _rows(byte_lines(path), format, str(path), columns)


def _rows(lines: Lines, format: str, file: str, columns: Columns) -> Iterator[Row]:
    if format == "text":
        return text_rows(lines, file)
    read = {"jsonl": json_rows, "csv": csv_rows, "tsv": tsv_rows}[format]
    return read(lines, file, columns)


def _count(path: Path, format: str) -> int:
    """Rows of a file of lines, its header not counted."""
    if format == "csv":  # a quoted field may span lines
        text = (line.decode("utf-8", "replace") for _, line in byte_lines(path))
        lines = sum(1 for _ in csv_cells(text, path))
    else:
        lines = sum(1 for _ in byte_lines(path))
    return max(lines - (format in ("csv", "tsv")), 0)
