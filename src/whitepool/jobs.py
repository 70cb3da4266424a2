"""What the jobs of a multirun left in its folder, whichever process ran them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from whitepool.cli import ERROR_FILE


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        folder: where its files are; named by the job's number.
        overrides: what was typed or swept for it.
        results: content of results.json, None where it failed.
        error: why it failed, in a sentence; empty where it did not.
    """

    folder: Path
    overrides: tuple[str, ...]
    results: dict[str, Any] | None
    error: str = ""


def read_jobs(folder: Path) -> list[Job]:
    """The jobs of a multirun's folder by number; other folders in it are passed over."""
    paths = [path for path in folder.iterdir() if (path / ".hydra" / "overrides.yaml").exists()]
    return [_read(path) for path in sorted(paths, key=_number)]


def names_of(jobs: Sequence[Job]) -> list[str]:
    """What tells each job from the others: its overrides without those that all have."""
    common = set.intersection(*(set(job.overrides) for job in jobs)) if len(jobs) > 1 else set()
    names = [" ".join(o for o in job.overrides if o not in common) for job in jobs]
    return [name or job.folder.name for name, job in zip(names, jobs, strict=True)]


def _number(path: Path) -> tuple[int, str]:
    return (int(path.name) if path.name.isdigit() else -1, path.name)


def _read(folder: Path) -> Job:
    overrides = tuple(OmegaConf.load(folder / ".hydra" / "overrides.yaml"))
    results, error = folder / "results.json", folder / ERROR_FILE
    if error.exists():
        return Job(folder, overrides, None, error.read_text(encoding="utf-8").split("\n")[0])
    if not results.exists():
        return Job(folder, overrides, None, "ended without results")
    return Job(folder, overrides, json.loads(results.read_text(encoding="utf-8")))
