"""Which folder each job of a sweep gets, when jobs of an earlier one are there: by key, not number.

A finished job with the same settings that read the same is not run again. One that failed or was
broken off is, in its folder. Everything else gets a folder that nobody has had.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from whitepool.sweeps.marker import Marker, Sources


@dataclass(frozen=True)
class Asked:
    """A job of the sweep.

    Attributes:
        name: of the folder that Hydra gives to it, its number unless ``hydra.sweep.subdir`` is set.
        settings: see `Marker`.
        sources: see `Marker`.
    """

    name: str
    settings: str
    sources: Sources


@dataclass(frozen=True)
class Placed:
    """A job with its folder.

    Attributes:
        folder: its name.
        finished: whether it is done already.
        again: whether an earlier run of it, in this folder, did not come to its end.
        beside: an earlier run, finished, that read something else; empty for none.
        changed: what it read that is another now, by name.
    """

    folder: str
    finished: bool = False
    again: bool = False
    beside: str = ""
    changed: tuple[str, ...] = ()


def place(
    asked: Sequence[Asked],
    standing: Mapping[str, Marker | None],
    taken: Collection[str],
    *,
    goes_on: bool = False,
) -> list[Placed]:
    """A folder for each job, in order; no two get the same.

    Args:
        asked: the jobs.
        standing: the jobs that are there by folder, in order; None for one of unknown state.
        taken: names that a new folder cannot have.
        goes_on: jobs go on by themselves with what an earlier run left, so that all are run.
    """
    free = {name: marker for name, marker in standing.items() if marker is not None}
    found: dict[int, Placed] = {}

    def state(marker: Marker, job: Asked) -> str:
        if marker.settings != job.settings:
            return "another job"
        if goes_on or not marker.finished:
            return "to be run"
        return "read something else" if changes(marker.sources, job.sources) else "done"

    for wanted in ("done", "to be run"):  # a job that is done is never left for one that is not
        for number, job in enumerate(asked):
            names = (name for name, marker in free.items() if state(marker, job) == wanted)
            if number not in found and (name := next(names, None)) is not None:
                again = not free.pop(name).finished
                found[number] = Placed(name, finished=wanted == "done", again=again)
    used = {*taken, *standing}
    for number, job in enumerate(asked):
        if number not in found:
            name = _new_name(job.name, used)
            used.add(name)
            found[number] = _new(name, job, standing)
    return [found[number] for number in range(len(asked))]


def changes(before: Sources, now: Sources) -> tuple[str, ...]:
    """Names of what is not known to be the same."""
    names = sorted({*before, *now})
    return tuple(n for n in names if before.get(n) is None or before.get(n) != now.get(n))


def _new(name: str, job: Asked, standing: Mapping[str, Marker | None]) -> Placed:
    for folder, marker in standing.items():
        if marker and marker.finished and marker.settings == job.settings:
            differing = changes(marker.sources, job.sources)
            return Placed(name, beside=folder if differing else "", changed=differing)
    return Placed(name)


def _new_name(name: str, used: Collection[str]) -> str:
    """The name, or the next number, or the name with a number behind it."""
    if name not in used:
        return name
    if name.isdigit():
        return str(max(int(x) for x in used if x.isdigit()) + 1)
    return next(new for n in range(2, len(used) + 3) if (new := f"{name}-{n}") not in used)
