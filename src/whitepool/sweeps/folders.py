"""Folders of multiruns: the jobs in one, and the one that a sweep was begun in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from whitepool.errors import UserError
from whitepool.sweeps import marker
from whitepool.sweeps.marker import Marker
from whitepool.sweeps.plan import Asked, place

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


def chosen(
    config: DictConfig, words: Sequence[str], asked: Sequence[Asked], *, resume: bool, goes_on: bool
) -> Path:
    """The folder of a multirun: the configuration's, or with ``resume`` that of the same words.

    Args:
        config: of the multirun.
        words: the overrides of its jobs and of all of them.
        asked: its jobs.
        resume: go on with a multirun where there is one.
        goes_on: see `place`.

    Raises:
        UserError: jobs are there that nobody asked to resume; or the folder has the time in its
            name, and there is no multirun of these words, or several with the same right.
    """
    folder = Path(config.hydra.sweep.dir)
    sweep: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)
    if not resume:
        if there := standing(folder):
            done = sum(bool(state and state.finished) for state in there.values())
            raise UserError(
                f"{folder} holds {len(there)} jobs of an earlier multirun, {done} of them "
                "finished: add resume=true to go on with it, or give another hydra.sweep.dir=."
            )
        return folder
    if TIME not in sweep["dir"]:
        return folder
    command = config.hydra.job.name
    found = begun_with(words, command, pattern=sweep["dir"], folder=folder)
    if not found:
        raise UserError(
            f"resume=true finds no multirun of {command} that was begun with these words: give its "
            "folder, as hydra.sweep.dir=FOLDER."
        )
    begun = [
        one
        for one in found
        if not all(job.finished for job in place(asked, standing(one), (), goes_on=goes_on))
    ]
    choices = begun or found
    if len(choices) > 1:
        raise UserError(
            f"{len(choices)} multiruns were begun with these words: give the folder of one, as "
            f"hydra.sweep.dir={choices[0]} for the newest."
        )
    return choices[0]


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
        content: Any = yaml.load(record.read_text(encoding="utf-8"), Loader=LOADER)
        hydra = content["hydra"]
        if hydra["job"]["name"] != command:
            return None
        return sorted(without_resume(hydra["overrides"]["task"])[0])
    except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError, UserError):
        return None
