"""Reads the offline file of a W&B run: a log of protobuf records in LevelDB's framing.

Blocks of 32 KiB hold pieces: checksum (4 bytes), length (2), kind (1: whole, 2: first, 3: middle,
4: last), bytes. A header of 7 bytes comes before the first piece.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

BLOCK, HEADER, PIECE = 32768, 7, 7


def records(path: Path) -> list[Any]:
    """The records of a ``run-*.wandb`` file, in order."""
    from wandb.proto import wandb_internal_pb2

    content, at, held, found = path.read_bytes(), HEADER, b"", []
    while at + PIECE <= len(content):
        if BLOCK - at % BLOCK < PIECE:  # no piece begins in the last bytes of a block
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        held += content[at + PIECE : at + PIECE + length]
        at += PIECE + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(held)
            found.append(record)
            held = b""
    return found


def summary(found: list[Any]) -> dict[str, Any]:
    """What the run's summary says at the end."""
    values: dict[str, Any] = {}
    for record in found:
        for item in (*record.summary.update, *record.history.item):
            *outer, last = item.nested_key or [item.key]
            place = values
            for key in outer:
                place = place.setdefault(key, {})
            place[last] = json.loads(item.value_json)
    return values


def history(found: list[Any], key: str) -> list[Any]:
    """Every value of a metric that was logged, in order."""
    return [
        json.loads(item.value_json)
        for record in found
        for item in record.history.item
        if (".".join(item.nested_key) or item.key) == key
    ]


def exit_code(found: list[Any]) -> int | None:
    """The exit code of a finished run, None of one that is not."""
    codes = [record.exit.exit_code for record in found if record.HasField("exit")]
    return codes[-1] if codes else None


def config(found: list[Any]) -> dict[str, Any]:
    """The run's configuration as it began."""
    (run,) = (record.run for record in found if record.HasField("run"))
    return {item.key: json.loads(item.value_json) for item in run.config.update}
