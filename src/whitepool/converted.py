"""GGUF models as folders of safetensors, converted once and kept in the cache.

transformers reads a GGUF file's vocabulary value by value, three times for one load, which takes
minutes where the folder takes seconds. Weights are kept in float32, which holds every quantised
value; a folder is used only where every file has the checksum that it was written with.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from whitepool.errors import UserError
from whitepool.fetching import MANIFEST, cache_root, changed, checksums, locked
from whitepool.size import format_size
from whitepool.wheels import sha256_of
from whitepool.whole_folder import whole_folder

log = logging.getLogger(__name__)

SIZES = 9  # of the folder, in sizes of the file, at most: 32 bits a weight for at least 4


def converted(gguf: Path, read: Callable[[], Sequence[Any]]) -> Path | None:
    """The folder that a GGUF file was converted to, now or before; None where it cannot be kept.

    Processes that start together wait for the one that converts. A cache that cannot be written
    is a warning.

    Args:
        gguf: the file.
        read: reads it: model and tokenizer, each with ``save_pretrained``.
    """
    from transformers import __version__ as reader

    made_from = [sha256_of(gguf), f"transformers {reader}"]
    folder = cache_root() / "assets" / f"{gguf.stem}-{made_from[0][:12]}"
    if not _damage(folder, made_from):
        with suppress(OSError):  # of a cache that cannot be written
            os.utime(folder / MANIFEST)  # the time of its last use, which `whitepool.kept` reads
        return folder
    try:
        _check_room(gguf, folder.parent)
    except OSError as error:
        _not_kept(gguf, error)
        return None
    with locked(folder.with_name(f"{folder.name}.lock")):
        # Another process may have converted it while this one waited for the lock.
        if fault := _damage(folder, made_from):
            if folder.exists():
                log.warning("%s is converted anew: %s.", gguf.name, fault)
            log.info("Converting %s to %s, once, in a minute or two", gguf.name, folder)
            parts = read()
            try:
                with whole_folder(folder, "the converted model") as fresh:
                    for part in parts:
                        part.save_pretrained(fresh)
                    manifest = {"gguf": made_from, "files": checksums(fresh)}
                    (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            except (UserError, SafetensorError) as error:
                _not_kept(gguf, error)
        return None
    return folder


def _not_kept(gguf: Path, error: Exception) -> None:
    log.warning(
        "%s cannot be kept in a form that loads faster (%s), so that each run reads it anew: set "
        "WHITEPOOL_CACHE= to a folder that can be written.",
        gguf.name,
        str(error).rstrip("."),
    )


def _damage(folder: Path, made_from: list[str]) -> str:
    """What is wrong with a converted folder, in words; empty if every file is as written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["gguf"] != made_from:
            return "another release of transformers had converted it"
        name = changed(folder, manifest["files"])
    except OSError as error:
        return str(error)
    # A damaged manifest can hold any JSON, or none.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "its manifest cannot be read"
    return f"{name} has changed" if name else ""


def _check_room(gguf: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    needed, free = SIZES * gguf.stat().st_size, shutil.disk_usage(folder).free
    if free < needed:
        needs, has = format_size(needed), format_size(free)
        raise OSError(f"it may need {needs} of disk, and {folder} has {has} free")
