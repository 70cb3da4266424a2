"""The command that gives a row of a report again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from whitepool.jobs import Job


def of_job(job: Job) -> str:
    """The command of a whole run; of a job of a multirun, for this job alone."""
    return _typed(job, job.overrides)


def of_row(job: Job, table: str, row: Mapping[str, Any]) -> str:
    """The command of one recipe of an analysis: a run of that recipe, or of the analysis.

    The latter where no run has the recipe: directions that are rotated and not scaled, and
    analyses of a recipe folder.

    Args:
        job: the run with the analysis.
        table: name of the table.
        row: of that table.
    """
    if any(override.startswith("recipe=") for override in job.overrides):
        return of_job(job)
    layers = f"pooling.layers=[{str(row.get('layers', '')).strip('[]').replace('+', ',')}]"
    if table == "layers":
        return _typed(job, [*_without(job, "analysis", "pooling.layers"), layers])
    if table == "heads":
        head = [f"pooling.block={row['block']}", f"pooling.head={row['head']}", layers]
        rest = _without(job, "analysis", "pooling", "whitening")
        return _typed(job, [*rest, "pooling=ditto", *head, "whitening=off"])
    if table == "table1":
        pooling = [f"pooling={row['pooling']}", layers]
        return _typed(job, [*_without(job, "analysis", "pooling"), *pooling])
    if table == "dims" and row["stage"] != "rotated":
        k = [f"whitening.k={row['k']}"] if row["stage"] == "post" else []
        return _typed(job, [*_without(job, "analysis", "whitening.k"), *k])
    return of_job(job)


def _without(job: Job, *names: str) -> list[str]:
    """The overrides of a job but for these groups or settings, and what is inside of them."""
    kept = []
    for override in job.overrides:
        key = override.lstrip("+~").partition("=")[0].partition("@")[0]
        if not any(key == name or key.startswith(f"{name}.") for name in names):
            kept.append(override)
    return kept


def _typed(job: Job, overrides: Sequence[str]) -> str:
    own = ["hydra.mode=RUN"] if job.swept else []
    return f"{job.program} {shlex.join([*overrides, *own])}".strip()
