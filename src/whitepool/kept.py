"""What is in the cache folder, and its removal beside processes that use it.

A file is known as ours by what is written in it, never by its name alone: vectors and moments by
their metadata, an asset's folder by its manifest. What is not ours is told of and never touched.

Vectors can go at any time, since whoever misses them computes them anew. An asset is opened for a
while after it was checked, so one that was used within the last minute stays, as does one that a
process is fetching now. It is renamed before it goes, and so is there as a whole or not at all.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from whitepool.reuse import ABANDONED
from whitepool.sealed_folder import MANIFEST

Kind = Literal["vectors", "moments", "model", "data", "unfinished", "foreign"]
DATA = ("stsb",)  # assets that are no models
LOADING = 60.0  # seconds for which an asset may still be read after it was found sound
KEY = re.compile(r"[0-9a-f]{64}")
PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial")


@dataclass(frozen=True)
class Kept:
    """One file or folder of the cache.

    Attributes:
        kind: ``unfinished`` is what a process has begun to write; ``foreign`` is not ours.
        what: which model or data, in words.
        path: file or folder.
        files: how many.
        size: bytes of all of them.
        used: seconds since the epoch of the last use.
    """

    kind: Kind
    what: str
    path: Path
    files: int
    size: int
    used: float


def contents(root: Path) -> list[Kept]:
    """Everything in a cache folder's two parts, lock files aside; empty where there is neither."""
    return [*_each(root / "assets", _asset), *_each(root / "vectors", _array)]


def remove(item: Kept) -> str:
    """Remove it; what kept it there, in words, empty where it is gone."""
    try:
        if item.kind == "foreign":
            return "it is not whitepool's"
        if item.path.parent.name == "assets":
            return _remove_asset(item.path)
        if item.kind == "unfinished" and time.time() - item.used < ABANDONED:
            return "a process may be writing it"
        item.path.unlink(missing_ok=True)
    except OSError as error:
        return str(error)
    return ""


def _each(folder: Path, describe: Callable[[Path], Kept | None]) -> Iterator[Kept]:
    """A description of every entry; one that another process removes meanwhile is left out."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            if item := describe(path):
                yield item


def _asset(path: Path) -> Kept | None:
    if path.suffix == ".lock" and path.is_file():
        return None
    if path.suffix == ".partial" and path.is_dir() and not path.is_symlink():
        return _measured("unfinished", path.stem, path)
    if _foreign_in(path) is None:
        return _measured("foreign", f"assets/{path.name}", path)
    kind: Kind = "data" if path.name in DATA else "model"
    return _measured(kind, path.name, path, (path / MANIFEST).stat().st_mtime)


def _array(path: Path) -> Kept | None:
    if PARTIAL.fullmatch(path.name):
        return _measured("unfinished", "vectors or moments", path)
    content = _metadata(path)
    made_from = content.get("made_from")
    if not isinstance(made_from, dict) or content.get("key") != path.stem:
        return _measured("foreign", f"vectors/{path.name}", path)
    if made_from.get("kind") == "moments":
        return _measured("moments", "of such vectors", path)
    model = made_from.get("model", {})
    return _measured("vectors", f"of model {_name(model)}", path)


def _name(model: dict[str, str]) -> str:
    return model.get("id") or f"{model.get('sha256', 'unknown'):.12}"


def _measured(kind: Kind, what: str, path: Path, used: float | None = None) -> Kept:
    status = path.lstat()
    files = [path] if not path.is_dir() or path.is_symlink() else _files(path)
    size = sum(file.lstat().st_size for file in files)
    return Kept(kind, what, path, len(files), size, status.st_mtime if used is None else used)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def _metadata(path: Path) -> dict[str, object]:
    """What `whitepool.reuse` wrote into a file; empty if that was not what wrote it."""
    from safetensors import SafetensorError, safe_open

    if not (KEY.fullmatch(path.stem) and path.suffix == ".safetensors" and path.is_file()):
        return {}
    try:
        with safe_open(path, framework="np") as file:
            content = json.loads((file.metadata() or {}).get("whitepool", "{}"))
    except (SafetensorError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _foreign_in(folder: Path) -> list[str] | None:
    """Names of files in an asset's folder that its manifest does not have; None: no asset."""
    try:
        if folder.is_symlink():
            return None
        manifest = json.loads((folder / MANIFEST).read_bytes())
        ours = {MANIFEST, *manifest["files"]}
        if not isinstance(manifest.get("wheels", manifest.get("gguf")), list):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    names = (path.relative_to(folder).as_posix() for path in _files(folder))
    return sorted(name for name in names if name not in ours)


def _remove_asset(folder: Path) -> str:
    name = folder.name.removesuffix(".partial")
    try:
        with FileLock(folder.with_name(f"{name}.lock"), timeout=0):
            if folder.suffix == ".partial":  # under the lock nobody writes it
                shutil.rmtree(folder)
                return ""
            foreign = _foreign_in(folder)
            if foreign is None:
                return "" if not folder.exists() else "it is not whitepool's"
            if foreign:
                return f"it has files that are not whitepool's ({', '.join(foreign[:3])})"
            if (age := time.time() - (folder / MANIFEST).stat().st_mtime) < LOADING:
                return f"it was used {age:.0f} seconds ago, and a process may be loading it"
            partial = folder.with_name(f"{name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            folder.rename(partial)
            shutil.rmtree(partial)
    except Timeout:
        return "a process is fetching it"
    return ""
