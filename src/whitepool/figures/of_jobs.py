"""Which figures the jobs of a multirun give."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.figure import Figure

from whitepool.figures import recipes
from whitepool.figures.colours import WHITENED
from whitepool.jobs import Job, names_of
from whitepool.maps.names import called


def drawings(jobs: Sequence[Job]) -> dict[str, Callable[[], Figure]]:
    """What draws the scores of all recipes, one figure for each protocol, the best on top."""
    by_protocol: dict[str, list[tuple[float, recipes.Recipe]]] = {}
    for job, name in zip(jobs, names_of(jobs), strict=True):
        if job.results is None or not job.results["scores"]:
            continue
        protocol, task = job.results["protocol"], job.results["headline"]["task"]
        post = called(job.results["config"]["whitening"]["name"], WHITENED)
        for line in recipes.lines(name, job.results["scores"], protocol["aggregate"], post):
            value = line.scores[task].value
            found = by_protocol.setdefault(protocol["name"], [])
            found.append((-math.inf if math.isnan(value) else value, line))
    return {
        f"recipes_{protocol}": partial(
            recipes.scores,
            [line for _, line in sorted(found, key=lambda pair: -pair[0])],
            f"protocol {protocol}",
        )
        for protocol, found in by_protocol.items()
    }
