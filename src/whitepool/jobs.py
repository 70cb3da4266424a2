"""What runs left in their folders: one run, or the jobs of a multirun."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whitepool.errors import UserError
from whitepool.schema import parse
from whitepool.sweeps import marker
from whitepool.sweeps.job import ERROR_FILE, INTERRUPTED

SCRIPTS = "python {}.py"
NOT_RUN = "not run"
STOPPED = (INTERRUPTED, NOT_RUN)  # in place of why a job failed


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        folder: where its files are; of a multirun's jobs named by their number.
        overrides: what was typed or swept for it.
        results: content of results.json, None where it failed.
        error: why it failed, in a sentence; empty where it did not.
        program: what was typed before the overrides.
        swept: whether its configuration would start a multirun of its own (Hydra's
            ``sweeper.params``).
        seconds: how long it took, None where it is no job of a multirun or did not end.
    """

    folder: Path
    overrides: tuple[str, ...]
    results: dict[str, Any] | None
    error: str = ""
    program: str = SCRIPTS.format("evaluate")
    swept: bool = False
    seconds: float | None = None

    @property
    def status(self) -> str:
        """``done``, ``failed``, or what stopped it: ``interrupted``, or ``not run`` at all."""
        if self.results is not None:
            return "done"
        return self.error if self.error in STOPPED else "failed"

    def table(self, name: str, **where: str) -> Iterator[dict[str, Any]]:
        """Rows of the table NAME.csv whose columns have these values; numbers are numbers."""
        with (self.folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if all(row.get(key) == value for key, value in where.items()):
                    yield {key: number(value) for key, value in row.items()}

    def config(self) -> str:
        """The resolved configuration as YAML; empty where none was left."""
        path = self.folder / "config.yaml"
        return path.read_text(encoding="utf-8") if path.exists() else ""


def number(cell: str) -> str | float | int:
    """A cell of a CSV file as the number that it spells, if it does."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def read_job(folder: Path) -> Job:
    """A finished or failed run, whether Hydra started it or not."""
    hydra, overrides = _hydra(folder), folder / ".hydra" / "overrides.yaml"
    typed = tuple(_as_written(overrides)) if overrides.exists() else ()
    app, name = hydra.get("help", {}).get("app_name", ""), hydra.get("job", {}).get("name")
    program = app if " " in app else SCRIPTS.format(name or "evaluate")
    swept = bool(hydra.get("sweeper", {}).get("params"))
    results, error = folder / "results.json", folder / ERROR_FILE
    if error.exists():
        why = error.read_text(encoding="utf-8").split("\n")[0]
        return Job(folder, typed, None, why, program, swept)
    state = marker.read(folder)
    if not results.exists() or (state and not state.finished):
        why = "did not come to its end" if state else "ended without results"
        return Job(folder, typed, None, why, program, swept)
    content = json.loads(results.read_text(encoding="utf-8"))
    return Job(folder, typed, content, "", program, swept, state.seconds if state else None)


def read_jobs(folder: Path) -> list[Job]:
    """The jobs of a multirun's folder by number; other folders in it are passed over."""
    paths = [path for path in folder.iterdir() if (path / ".hydra" / "overrides.yaml").exists()]
    return [read_job(path) for path in sorted(paths, key=_number)]


def differing(jobs: Sequence[Job]) -> list[tuple[str, ...]]:
    """The overrides of each job without those that all have."""
    common = set.intersection(*(set(job.overrides) for job in jobs)) if len(jobs) > 1 else set()
    return [tuple(o for o in job.overrides if o not in common) for job in jobs]


def names_of(jobs: Sequence[Job]) -> list[str]:
    """What tells each job from the others, or its folder's name where nothing does."""
    pairs = zip(differing(jobs), jobs, strict=True)
    return [" ".join(overrides) or job.folder.name for overrides, job in pairs]


def _number(path: Path) -> tuple[int, str]:
    return (int(path.name) if path.name.isdigit() else -1, path.name)


def _hydra(folder: Path) -> Mapping[str, Any]:
    """Hydra's own settings of the run; nothing where Hydra did not start it."""
    path = folder / ".hydra" / "hydra.yaml"
    if not path.exists():
        return {}
    settings: Mapping[str, Any] = _as_written(path)["hydra"]
    return settings


def _as_written(path: Path) -> Any:
    """The content of a YAML file of Hydra, its interpolations as they stand.

    Raises:
        UserError: no plain YAML.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}): name another run.") from error
