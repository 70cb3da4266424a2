"""Folders of multiruns: the jobs in one, and the one that a sweep was begun in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from whitepool.errors import UserError
from whitepool.sweeps import marker
from whitepool.sweeps.marker import Marker

RECORD = "multirun.yaml"  # Hydra's, of the words that a multirun was begun with
TIME = "${now:"  # in a folder's name, makes it another one each time
WORD = "resume"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the record is long, and there may be many


def standing(folder: Path) -> dict[str, Marker | None]:
    """The jobs in a multirun's folder by name, numbers in order; None for one of unknown state."""
    parts = {path.parents[1] for path in folder.glob("**/.hydra/overrides.yaml")}
    parts |= {path.parent for path in folder.glob(f"**/{marker.FILE}")}
    jobs = (path.relative_to(folder).as_posix() for path in parts if not is_vacant(path))
    names = sorted(jobs, key=_number)
    return {name: marker.read(folder / name) for name in names}


def is_vacant(path: Path) -> bool:
    """Whether a folder holds no more than Hydra writes before a job begins."""
    return path.is_dir() and all(
        entry.name.startswith(".") or entry.suffix == ".log" for entry in path.iterdir()
    )


def _number(name: str) -> tuple[bool, int, str]:
    return (not name.isdigit(), int(name) if name.isdigit() else 0, name)


def without_resume(words: Sequence[str]) -> tuple[list[str], bool]:
    """Overrides without ``resume=``, and whether it was true.

    Raises:
        UserError: it was neither true nor false.
    """
    kept = [word for word in words if word.lstrip("+").partition("=")[0] != WORD]
    given = [word.partition("=")[2].lower() for word in words if word not in kept]
    for value in given:
        if value not in ("true", "false"):
            raise UserError(f"resume is {value!r}: give true or false.")
    return kept, given[-1:] == ["true"]


def is_new_each_time(pattern: str) -> bool:
    """Whether ``hydra.sweep.dir``, not resolved, has the time in it."""
    return TIME in pattern


def begun_with(words: Sequence[str], command: str, *, pattern: str, folder: Path) -> list[Path]:
    """Folders of multiruns of a command that were begun with these words, the newest first.

    Args:
        words: the overrides, but for those of Hydra; their order and ``resume=`` do not matter.
        command: ``evaluate``, ``train`` or ``encode``.
        pattern: ``hydra.sweep.dir``, not resolved, with the time in it.
        folder: the same, resolved.
    """
    base = Path(pattern.split(TIME, maxsplit=1)[0] + "_").parent
    depth = len(folder.relative_to(base).parts)
    wanted = sorted(without_resume(words)[0])
    records = base.glob("/".join(["*"] * depth + [RECORD]))
    return sorted((p.parent for p in records if _words(p, command) == wanted), reverse=True)


def _words(record: Path, command: str) -> list[str] | None:
    """The words of a multirun of ``command``, sorted; None for one of another command."""
    try:
        content: Any = yaml.load(record.read_text(encoding="utf-8"), LOADER)
        hydra = content["hydra"]
        if hydra["job"]["name"] != command:
            return None
        return sorted(without_resume(hydra["overrides"]["task"])[0])
    except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError, UserError):
        return None
