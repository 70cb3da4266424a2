"""`manifest.json`: what a folder of vectors was made from, and what of it is finished.

The manifest is rewritten whole after each shard and holds nothing that differs between a run
that was broken off and one that was not: no time, no host, no absolute path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whitepool.bulk.files import FileRecord
from whitepool.errors import UserError
from whitepool.schema import plain, read
from whitepool.whole_file import whole_file

NAME = "manifest.json"
SCHEMA = 1
KIND = "whitepool vectors"


@dataclass(frozen=True)
class ShardRecord:
    """A finished shard.

    Attributes:
        files: its files.
        rows: its vectors.
        bad: bad rows met while it was read.
        cut: texts that were cut to the maximum length; repeats within a window count once.
        read: rows of the input read up to its end.
        input_sha256: checksum of those rows.
    """

    files: tuple[FileRecord, ...]
    rows: int
    bad: int
    cut: int
    read: int
    input_sha256: str


@dataclass(frozen=True)
class Total:
    """What a finished run read.

    Attributes:
        read: rows of the input.
        vectors: rows that got a vector.
        bad: bad rows.
        cut: texts that were cut.
        input_sha256: checksum of all rows.
    """

    read: int
    vectors: int
    bad: int
    cut: int
    input_sha256: str


@dataclass(frozen=True)
class Manifest:
    """The state of a folder.

    Attributes:
        made_from: input, encoder, settings and versions, as JSON.
        on_bad: what is done with bad rows; finished shards depend on it only if they met any.
        shards: the finished ones by number.
        bad_rows: the list of bad rows; None before the end, or without any.
        total: None before the end.
    """

    made_from: Mapping[str, Any]
    on_bad: str
    shards: Mapping[int, ShardRecord]
    bad_rows: FileRecord | None = None
    total: Total | None = None

    def write(self, folder: Path) -> None:
        """Put the manifest in its place, whole."""
        shards = [{"number": n, **plain(self.shards[n])} for n in sorted(self.shards)]
        content = {
            "kind": KIND,
            "schema": SCHEMA,
            "finished": self.total is not None,
            "total": None if self.total is None else plain(self.total),
            "on_bad": self.on_bad,
            "made_from": self.made_from,
            "bad_rows": None if self.bad_rows is None else plain(self.bad_rows),
            "shards": shards,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        with whole_file(folder / NAME) as file:
            file.write(text.encode("utf-8", "backslashreplace"))

    @classmethod
    def load(cls, folder: Path) -> Manifest | None:
        """The manifest of a folder; None without one.

        Raises:
            UserError: not one of ours, of a newer schema, or damaged.
        """
        path = folder / NAME
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as fault:
            raise UserError(
                f"{path} is not JSON, so it is no manifest of vectors: give another output=."
            ) from fault
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise UserError(f"{path} is no manifest of vectors: give another output=.")
        if content.get("schema") != SCHEMA:
            raise UserError(
                f"{path} has the schema {content.get('schema')} and this whitepool reads {SCHEMA}: "
                "install the whitepool that wrote it, or give another output=."
            )
        try:
            return cls(
                content["made_from"],
                content["on_bad"],
                {shard.pop("number"): read(ShardRecord, shard) for shard in content["shards"]},
                content["bad_rows"] and read(FileRecord, content["bad_rows"]),
                content["total"] and read(Total, content["total"]),
            )
        except (UserError, KeyError, TypeError, AttributeError) as fault:
            raise UserError(f"{path} is damaged ({fault}): give another output=.") from fault


def differences(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ: path, and what stands there in each, None for nothing."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{where}.{key}" if where else str(key)
            yield from differences(old.get(key), new.get(key), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif old != new:
        yield where, old, new
