"""GGUF models as folders of safetensors, converted once and kept in the cache.

transformers reads a GGUF file's vocabulary value by value, three times for one load, which takes
minutes where the folder takes seconds. Weights are kept in float32, which holds every quantised
value; a folder is used only where every file has the checksum that it was written with.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from whitepool.errors import UserError
from whitepool.fetching import cache_root, locked
from whitepool.sealed_folder import damage_of, note_use, seal
from whitepool.size import format_size
from whitepool.whole_folder import whole_folder

log = logging.getLogger(__name__)

SIZES = 9  # of the folder, in sizes of the file, at most: 32 bits a weight for at least 4


def converted(gguf: Path, sha256: str, read: Callable[[], Sequence[Any]]) -> Path | None:
    """The folder that a GGUF file was converted to, now or before; None where it cannot be kept.

    Processes that start together wait for the one that converts. A cache that cannot be written
    is a warning.

    Args:
        gguf: the file.
        sha256: what the weights of its folder are known by.
        read: reads it: model and tokenizer, each with ``save_pretrained``.
    """
    from transformers import __version__ as reader

    made_from = [sha256, f"transformers {reader}"]
    folder = cache_root() / "assets" / f"{gguf.stem}-{sha256[:12]}"
    if not _damage(folder, made_from):
        note_use(folder)
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
                    seal(fresh, "gguf", made_from)
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


def _damage(folder: Path, made_from: Sequence[str]) -> str:
    otherwise = "another release of transformers had converted it"
    return damage_of(folder, "gguf", made_from, otherwise)


def _check_room(gguf: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    needed, free = SIZES * gguf.stat().st_size, shutil.disk_usage(folder).free
    if free < needed:
        needs, has = format_size(needed), format_size(free)
        raise OSError(f"it may need {needs} of disk, and {folder} has {has} free")
