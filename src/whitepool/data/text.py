"""Text files of sentence pairs: bytes to lines to rows, and nothing altered on the way.

Lines end at a line feed only: `str.splitlines` would also cut at U+2028 or U+0085, which occur
inside sentences. Fields are cut at tabs only: a quote is a character like any other, and a reader
with csv's defaults silently merges rows around a lone quote (STS-B test: 1,119 rows of 1,379).
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from whitepool.data.pairs import PairSet
from whitepool.errors import UserError

Row = tuple[str, str, float]

GZIP = b"\x1f\x8b"
FETCH_AGAIN = "correct it or fetch the file again"


class MissingFile(UserError):
    """A file of a task is not there; a caller may allow that."""


def require(path: Path, task: str, subset: str) -> Path:
    """Return ``path`` if it is a file.

    Raises:
        MissingFile: it is not.
    """
    if path.is_file():
        return path
    what = f"{task}, sub-task {subset}" if subset else task
    raise MissingFile(
        f"{what}: there is no file {path}; point data.root= at a folder that has it, "
        "or leave it out with data.allow_missing=true."
    )


def read_bytes(path: Path) -> bytes:
    """Contents of a file.

    Raises:
        UserError: it does not exist or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as fault:
        raise UserError(f"{path} cannot be read ({fault.strerror}): check the path.") from fault


def decode(raw: bytes, path: Path) -> str:
    """UTF-8 text without its byte order mark, if it has one.

    Raises:
        UserError: invalid UTF-8, with the line.
    """
    body = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = body.count(b"\n", 0, fault.start) + 1
        raise not_utf8(raw, f"{path}, line {line}") from fault


def not_utf8(start: bytes, where: str) -> UserError:
    """The error about bytes that are not UTF-8, from the first of them."""
    if start.startswith(GZIP):
        return UserError(f"{where}: a gzip file; unpack it.")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UserError(f"{where}: UTF-16; convert it to UTF-8.")
    return UserError(f"{where}: not valid UTF-8; convert it to UTF-8.")


def split_lines(raw: bytes, path: Path) -> list[str]:
    """Lines without their end, ``\\n`` or ``\\r\\n``.

    Raises:
        UserError: invalid UTF-8.
    """
    lines = decode(raw, path).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def row_lines(raw: bytes, path: Path) -> list[str]:
    """Lines as `split_lines` gives them, but for blank ones at the end."""
    lines = split_lines(raw, path)
    while lines and is_blank(lines[-1]):
        lines.pop()
    return lines


def is_blank(line: str) -> bool:
    """Whether a line has nothing but spaces before its end; a tab makes it a row of empty cells."""
    return not line.strip(" \r\n")


def without_blank_end(content: str) -> str:
    """A text without the end of its last filled line and the blank lines behind that."""
    filled = content.rstrip(" \r\n")
    last, end, _ = content[len(filled) :].partition("\n")
    return filled + (last.removesuffix("\r") if end else last)


def checksum(*parts: bytes) -> str:
    """Hexadecimal sha256 of the parts, concatenated."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def parse_score(value: object, where: str) -> float:
    """A finite number, from its text or as it is.

    Args:
        value: what a file holds.
        where: file and line, for the message.

    Raises:
        UserError: not a number, or not finite.
    """
    # float() takes booleans, and digits grouped by underscores, which no data file means.
    number = None if isinstance(value, bool) or "_" in str(value) else value
    try:
        score = float(number)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as fault:
        raise UserError(f"{where}: the score {value!r} is not a number; {FETCH_AGAIN}.") from fault
    if not math.isfinite(score):
        raise UserError(f"{where}: the score {value!r} is not finite; {FETCH_AGAIN}.")
    return score


def tab_fields(line: str, needed: int, where: str) -> list[str]:
    """Fields of a line, at least ``needed`` of them.

    Raises:
        UserError: too few fields, with both numbers.
    """
    fields = line.split("\t")
    if len(fields) < needed:
        raise UserError(
            f"{where}: {len(fields)} tab-separated columns found, {needed} needed; {FETCH_AGAIN}."
        )
    return fields


def to_pair_set(
    rows: Iterable[Row],
    *,
    task: str,
    subset: str,
    split: str,
    source: str,
    sha256: str,
    unjudged: int = 0,
    flattened: bool = False,
) -> PairSet:
    """Gather rows into a `PairSet`; the further arguments are its attributes."""
    rows = list(rows)
    return PairSet(
        task=task,
        subset=subset,
        split=split,
        first=tuple(row[0] for row in rows),
        second=tuple(row[1] for row in rows),
        gold=np.array([row[2] for row in rows], dtype=np.float64),
        source=source,
        sha256=sha256,
        unjudged=unjudged,
        flattened=flattened,
    )


class RepeatedKey(ValueError):
    """A JSON object gives a key twice, of which Python would keep the last."""


def parsed(line: str) -> Any:
    """The JSON value that a line spells.

    Raises:
        RepeatedKey: an object gives a key twice.
        ValueError: it spells none, and RecursionError where it is too deep.
    """
    return json.loads(line, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKey(f"the key {next(k for k in keys if keys.count(k) > 1)} comes twice")
    return record


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object that a line of a JSON-lines file spells.

    Args:
        line: without its end, or with it.
        where: file and line, for messages.

    Raises:
        UserError: it spells none.
    """
    try:
        record = parsed(line)
    except RepeatedKey as fault:
        raise UserError(f"{where}: {fault}; correct it.") from fault
    except (ValueError, RecursionError) as fault:
        raise UserError(f"{where}: not valid JSON; write one object per line.") from fault
    if not isinstance(record, dict):
        raise UserError(f"{where}: not a JSON object; write one object per line.")
    return record
