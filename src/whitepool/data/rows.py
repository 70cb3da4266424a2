"""Rows of any input, good and bad: a bad one is told of with its file, line and fault.

A row is bad that has no text to encode: null or another type, bytes that are not UTF-8, blank, a
line that is no JSON object, a number of columns other than the header's. What breaks a file
as a whole (gzip, CSV quoting, Parquet, a missing column) is an error. Lines as in `corpus_files`;
blank ones at the end of JSON lines, CSV and TSV are no rows, while in plain text each line is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from whitepool.data.corpus_files import require
from whitepool.data.pairs_file import csv_cells
from whitepool.data.text import RepeatedKey, parsed

Lines = Iterator[tuple[int, bytes]]
LONGEST = 200  # characters of a fault
SETTING = "read.column"


class Row(NamedTuple):
    """One row of an input.

    Attributes:
        text: what to encode; empty in a bad row.
        id: from the column of ids; None without one, and in a bad row that has none.
        file: where it stands.
        line: its first line, from 1; the row, from 1, of a Parquet file.
        fault: why it cannot be encoded; empty for a good row.
    """

    text: str
    id: str | None
    file: str
    line: int
    fault: str = ""


class Columns(NamedTuple):
    """Names of the columns of texts and of ids, None for no ids."""

    text: str
    id: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once."""
        return tuple(dict.fromkeys(name for name in self if name is not None))


def text_rows(lines: Lines, file: str) -> Iterator[Row]:
    """One row per line."""
    for number, line in lines:
        yield _row(_ended(decode(line)), file, number)


def json_rows(lines: Lines, file: str, columns: Columns) -> Iterator[Row]:
    """One row per line, a JSON object."""
    for number, line in _without_blank_end(lines):
        if not line.strip():
            yield _row("", file, number)
            continue
        try:
            record = parsed(decode(line))
        except RepeatedKey as fault:
            yield _bad(str(fault), file, number)
            continue
        except (ValueError, RecursionError):
            yield _bad("not valid JSON", file, number)
            continue
        if not isinstance(record, dict):
            yield _bad("not a JSON object", file, number)
            continue
        missing = [name for name in columns.names if name not in record]
        if missing:
            found = ", ".join(record) or "none"
            yield _bad(f"no key {missing[0]} (keys found: {found})", file, number)
            continue
        yield columned({name: record[name] for name in columns.names}, columns, file, number)


def csv_rows(lines: Lines, file: str, columns: Columns) -> Iterator[Row]:
    """Rows of quoted CSV below its header.

    Raises:
        UserError: a column is missing, or the quoting is broken.
    """
    filled = (decode(line) for _, line in _without_blank_end(lines))
    return _table_rows(csv_cells(filled, Path(file)), file, columns)


def tsv_rows(lines: Lines, file: str, columns: Columns) -> Iterator[Row]:
    """Rows of a table below its header, cut at tabs, without quoting.

    Raises:
        UserError: a column is missing.
    """
    decoded = ((number, _ended(decode(line))) for number, line in _without_blank_end(lines))
    cells = ((number, line.split("\t") if line else []) for number, line in decoded)
    return _table_rows(cells, file, columns)


def _without_blank_end(lines: Lines) -> Lines:
    """All lines but the blank ones behind the last filled one."""
    blank: list[tuple[int, bytes]] = []
    for line in lines:
        if not line[1].strip(b" \r\n"):
            blank.append(line)
            continue
        yield from blank
        blank.clear()
        yield line


def _table_rows(
    rows: Iterator[tuple[int, list[str]]], file: str, columns: Columns
) -> Iterator[Row]:
    line, header = next(rows, (1, None))
    if header is None:
        return
    require(columns.names, header, f"{file}, line {line}", SETTING)
    for line, fields in rows:
        if not fields:
            yield _row("", file, line)
        elif len(fields) != len(header):
            fault = f"{len(fields)} columns, {len(header)} in the header"
            yield _bad(fault, file, line)
        else:
            cells = {name: fields[header.index(name)] for name in columns.names}
            yield columned(cells, columns, file, line)


def columned(cells: Mapping[str, object], columns: Columns, file: str, line: int) -> Row:
    """The row of some cells by the name of their column."""
    if columns.id is None:
        return _row(cells[columns.text], file, line)
    value = cells[columns.id]
    if isinstance(value, bool) or not isinstance(value, str | int):
        return _bad(f"the id is {_show(value)}, not a text or whole number", file, line)
    if _surrogate(id := str(value)):
        return _bad("the id is not valid UTF-8", file, line)
    return _row(cells[columns.text], file, line, id)


def _row(value: object, file: str, line: int, id: str | None = None) -> Row:
    """The row of a text, bad where it is none."""
    if not isinstance(value, str):
        return _bad(f"{_show(value)}, not a text", file, line, id)
    if not value.strip():
        return _bad("blank", file, line, id)
    if character := _surrogate(value):
        # Decoding puts bytes that are not UTF-8 there; JSON can spell the others.
        escaped = "\udc80" <= character <= "\udcff"
        fault = "not valid UTF-8" if escaped else "a lone surrogate, which is no character"
        return _bad(fault, file, line, id)
    return Row(value, id, file, line)


def _bad(fault: str, file: str, line: int, id: str | None = None) -> Row:
    printable = fault.encode("utf-8", "backslashreplace").decode()
    return Row("", id, file, line, printable[:LONGEST])


def decode(raw: bytes) -> str:
    """Text of which bytes that are not UTF-8 become lone surrogates, which `_surrogate` finds."""
    return raw.decode("utf-8", "surrogateescape")


def _surrogate(text: str) -> str:
    """The first lone surrogate of a text, empty if it has none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return text[error.start]
    return ""


def _ended(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _show(value: object) -> str:
    return "null" if value is None else f"{value!r:.60}"
