"""A table of sentence pairs with named columns: TSV, CSV, JSON lines or Parquet.

TSV has no quoting at all; CSV has the quoting of RFC 4180, so that a field may span lines; JSON
lines have one object per line. Columns of TSV and CSV without a header go by number, from 0.
Sentences are kept as they are.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from whitepool.data import text
from whitepool.data.parquet_file import check_rows, parquet_file
from whitepool.data.text import Row
from whitepool.errors import UserError

EXTENSIONS = (".tsv", ".csv", ".jsonl", ".json", ".parquet")
Column = str | int
Columns = tuple[Column, Column, Column]


def read_rows(raw: bytes, path: Path, columns: Columns) -> Iterator[Row]:
    """Rows of a file, in order; its extension says how it is read.

    Args:
        raw: contents of the file.
        path: the file.
        columns: names of the columns of first sentence, second sentence and score, or their numbers
            from 0 where the file has no header.

    Raises:
        UserError: unknown extension, no such column, a malformed row, or pyarrow is not there.
    """
    numbers = [column for column in columns if isinstance(column, int)]
    if numbers and path.suffix.lower() not in (".tsv", ".csv"):
        raise UserError(
            f"{path}: columns by number, as {numbers[0]}, are for .tsv and .csv; give names with "
            "data.first=, data.second= and data.score=."
        )
    match path.suffix.lower():
        case ".tsv":
            return tsv_rows(raw, path, columns)
        case ".csv":
            content = text.without_blank_end(text.decode(raw, path))
            # StringIO, unlike str.splitlines, ends lines at line feeds only and keeps their ends.
            return _rows(_chosen(csv_cells(io.StringIO(content), path), columns, path), path)
        case ".jsonl" | ".json":
            return json_rows(raw, path, columns)
        case ".parquet":
            return parquet_rows(raw, path, columns)
        case other:
            raise UserError(
                f"{path}: unknown extension {other!r}; use one of {', '.join(EXTENSIONS)}."
            )


def tsv_rows(raw: bytes, path: Path, columns: Columns) -> Iterator[Row]:
    """Rows of a tab-separated file; arguments as in `read_rows`.

    Raises:
        UserError: no such column, a row of another length than the header, a bad score.
    """
    return _rows(tsv_cells(raw, path, columns), path)


def tsv_cells(raw: bytes, path: Path, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of three columns of each row of a tab-separated file.

    Raises:
        UserError: no such column, a row of another length than the header.
    """
    lines = enumerate(text.row_lines(raw, path), start=1)
    return _chosen(((number, line.split("\t")) for number, line in lines), columns, path)


def csv_cells(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """First line and cells of each row of quoted CSV; an empty line has no cell.

    Args:
        lines: the file's lines, their ends kept.
        path: the file, for messages.

    Raises:
        UserError: the quoting is broken.
    """
    reader = csv.reader(lines, strict=True)
    line = 1
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as fault:
        raise UserError(
            f"{path}, line {line}: not valid CSV ({fault}); quote the field, double the quotes "
            "in it, or save the table as .tsv."
        ) from fault


def _rows(cells: Iterable[tuple[int, list[str]]], path: Path) -> Iterator[Row]:
    for line, (first, second, score) in cells:
        yield first, second, text.parse_score(score, f"{path}, line {line}")


def _chosen(
    table: Iterable[tuple[int, list[str]]], columns: Columns, path: Path
) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of the chosen columns of each row; the first row is a header, if it is."""
    cells = iter(table)
    start, top = next(cells, (1, None))
    if top is None:
        raise UserError(f"{path}: the file is empty; {text.FETCH_AGAIN}.")
    numbers = [column for column in columns if isinstance(column, int)]
    if not numbers:
        _require_columns(top, columns, f"{path}, line {start}")
        numbers = [top.index(str(name)) for name in columns]
    elif len(numbers) < len(columns) or not all(0 <= n < len(top) for n in numbers):
        raise UserError(
            f"{path}, line {start}: columns {', '.join(map(str, columns))} were asked for of "
            f"{len(top)}; give three numbers from 0 to {len(top) - 1} where there is no header, "
            "three names where there is one, with data.first=, data.second= and data.score=."
        )
    else:
        cells = itertools.chain([(start, top)], cells)
    for line, fields in cells:
        if len(fields) != len(top):
            raise UserError(
                f"{path}, line {line}: {len(fields)} columns found, {len(top)} needed; "
                f"{text.FETCH_AGAIN}."
            )
        yield line, [fields[n] for n in numbers]


def _require_columns(found: Sequence[str], columns: Sequence[Column], where: str) -> None:
    for name in columns:
        if found.count(name) != 1:
            fault = f"several columns {name}" if name in found else f"no column {name}"
            raise UserError(
                f"{where}: {fault} (columns found: {', '.join(found) or 'none'}); correct the "
                "file, or name its columns with data.first=, data.second= and data.score=."
            )


def json_rows(raw: bytes, path: Path, columns: Columns) -> Iterator[Row]:
    """Rows of a file with one JSON object per line; arguments as in `read_rows`.

    Raises:
        UserError: a line that is no object, no such key, a sentence or score of another type.
    """
    for line, content in enumerate(text.row_lines(raw, path), start=1):
        where = f"{path}, line {line}"
        record = text.json_object(content, where)
        _require_columns(list(record), columns, where)
        yield _typed_row([record[str(name)] for name in columns], columns, where)


def parquet_rows(raw: bytes, path: Path, columns: Columns) -> Iterator[Row]:
    """Rows of a Parquet file; arguments as in `read_rows`.

    Raises:
        UserError: pyarrow is not there, not a Parquet file, no such column, a sentence or score
            that is null or of another type.
    """
    with parquet_file(raw, str(path)) as file:
        _require_columns(file.schema_arrow.names, columns, str(path))
        table = file.read(columns=list(columns))
        check_rows(len(table), file, str(path))
        values = [table[name].to_pylist() for name in columns]
    for number, cells in enumerate(zip(*values, strict=True), start=1):
        yield _typed_row(list(cells), columns, f"{path}, row {number}")


def _typed_row(cells: list[object], columns: Columns, where: str) -> Row:
    first, second = (
        sentence_of(v, str(n), where) for v, n in zip(cells[:2], columns[:2], strict=True)
    )
    return first, second, text.parse_score(cells[2], where)


def sentence_of(value: object, column: str, where: str) -> str:
    """The value of a column, which must be a text.

    Raises:
        UserError: it is not, or holds half a surrogate pair.
    """
    if not isinstance(value, str):
        raise UserError(f"{where}: {column} is {value!r}, not a text; correct it.")
    # JSON can spell half a surrogate pair, which no tokenizer takes.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UserError(f"{where}: {column} has a lone surrogate, not a character; correct it.")
    return value
