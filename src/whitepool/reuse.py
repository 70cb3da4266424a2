"""Arrays kept on disk between runs, under a key of everything they depend on.

One safetensors file holds the arrays of one key, with JSON metadata: the key and what it was made
from, when and by which versions, and a sha256 over metadata and arrays. A file appears under its
name only when it is whole and is never changed, so that any number of processes can read, write
and remove at once; two that compute the same thing leave one file. A file that is damaged, or not
ours, is as good as none. A folder that cannot be written costs a word in the log.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whitepool.whole_file import settle

log = logging.getLogger(__name__)

FORMAT = 1
ABANDONED = 24 * 3600  # seconds after which a half-written file is no running process's
Arrays = Mapping[str, NDArray[Any]]


def digest(content: Any) -> str:
    """sha256 of ``content`` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(arrays: Arrays) -> str:
    """sha256 of arrays: names, types, shapes, and every byte."""
    parts = [
        [name, x.dtype.str, list(x.shape), hashlib.sha256(np.ascontiguousarray(x).data).hexdigest()]
        for name, x in sorted(arrays.items())
    ]
    return digest(parts)


class Store:
    """A folder of kept arrays.

    Args:
        folder: made when something is first kept.
        max_size: most bytes that all files together may take.
    """

    def __init__(self, folder: Path, max_size: int) -> None:
        self.folder = folder
        self.max_size = max_size
        self._refused = False  # the folder cannot take more, which is said once
        self._mine: set[Path] = set()  # what this job has kept or used, which it never removes

    def load(self, made_from: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
        """The arrays made from this, with the bits they were kept with; None if there are none.

        A file that is damaged is told of in the log. Cost: one read and one sha256 of the file.
        """
        key = digest(made_from)
        path = self._path(key)
        try:
            arrays = _read(path, key)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("%s cannot be reused (%s): computed anew.", path, error)
            return None
        self._mine.add(path)
        try:
            os.utime(path)  # the files unused for longest go first
        except OSError:
            log.debug("%s cannot be marked as used", path)
        return arrays

    def save(self, made_from: Mapping[str, Any], arrays: Arrays) -> None:
        """Keep arrays, unless they are not finite or the folder cannot take them.

        Args:
            made_from: everything they depend on, as JSON; kept too, for whoever looks inside.
            arrays: float arrays by name.
        """
        from safetensors import SafetensorError

        if self._refused:
            return
        key = digest(made_from)
        path, partial = self._path(key), self.folder / f".{uuid.uuid4().hex}.partial"
        if not all(np.isfinite(x).all() for x in arrays.values()):
            log.warning("values that are not finite are not kept.")
            return
        try:
            metadata = _metadata(key, arrays, made_from)
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._make_room(_most_bytes(arrays, metadata), path):
                _write(partial, arrays, metadata)
                partial.replace(path)
                self._mine.add(path)
        except (OSError, SafetensorError) as error:
            self._refused = True
            log.warning("nothing is kept for later runs in %s (%s).", self.folder, error)
        finally:
            _remove(partial)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.safetensors"

    def _make_room(self, size: int, path: Path) -> bool:
        """Remove the files unused for longest until ``size`` more bytes fit; whether they do."""
        files = [f for f in self._files() if f[2] != path]
        total = sum(n for _, n, _ in files)
        fixed = sum(n for _, n, file in files if file in self._mine)
        if fixed + size > self.max_size:
            log.warning(
                "%s bytes are not kept for later runs: cache.max_size leaves %s.",
                f"{size:,}",
                f"{max(self.max_size - fixed, 0):,}",
            )
            return False
        for _, n, file in sorted(files):
            if total + size <= self.max_size:
                break
            if file not in self._mine:
                log.debug("%s makes room", file)
                _remove(file)
                total -= n
        return True

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, bytes and path of every kept file; abandoned ones are removed."""
        for path in self.folder.iterdir():
            try:
                status = path.stat()
            except OSError:  # another process was quicker to remove it
                continue
            if path.suffix == ".safetensors":
                yield status.st_mtime, status.st_size, path
            elif path.suffix == ".partial" and time.time() - status.st_mtime > ABANDONED:
                _remove(path)


def _read(path: Path, key: str) -> dict[str, NDArray[Any]]:
    """Raises ValueError where the file is not what was written under ``key``."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            content = json.loads((file.metadata() or {}).get("whitepool", "{}"))
            if content.get("format") != FORMAT or content.get("key") != key:
                raise ValueError("it was written by something else")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if content.pop("sha256", None) != _checksum(content, arrays):
        raise ValueError("its content does not fit its checksum")
    return arrays


def _metadata(key: str, arrays: Arrays, made_from: Mapping[str, Any]) -> dict[str, str]:
    content = {
        "format": FORMAT,
        "key": key,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "made_from": dict(made_from),
    }
    content["sha256"] = _checksum(content, arrays)
    return {"whitepool": json.dumps(content)}


def _most_bytes(arrays: Arrays, metadata: Mapping[str, str]) -> int:
    """A bound on the size of a file: metadata can double where it is quoted within the header."""
    header = sum(len(text) for text in metadata.values()) + sum(map(len, arrays))
    return sum(x.nbytes for x in arrays.values()) + 2 * header + 256 * (len(arrays) + 1)


def _write(path: Path, arrays: Arrays, metadata: dict[str, str]) -> None:
    from safetensors.numpy import save_file

    save_file(dict(arrays), path, metadata=metadata)
    settle(path)


def _checksum(content: Mapping[str, Any], arrays: Arrays) -> str:
    return digest([dict(content), fingerprint(arrays)])


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # in use, on systems that mind
        log.debug("%s cannot be removed", path)
