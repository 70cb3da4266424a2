"""What a run leaves to look at, once its results are on disk: figures, and report.html.

matplotlib and plotly are imported where they are used, and what fails here is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig

from whitepool.cli import is_multirun
from whitepool.figures import files
from whitepool.inputs import Inputs
from whitepool.jobs import Job, read_job
from whitepool.maps.names import called
from whitepool.scores import Scores
from whitepool.whitening import Map

Rows = Sequence[Mapping[str, Any]]


def of_run(
    config: DictConfig,
    inputs: Inputs,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Map] | None,
    scores: Scores,
    *,
    folder: Path,
    logger: Any,
) -> None:
    """Figures and page of one scored recipe; a job of a multirun leaves the page to that."""
    if not files.wanted(config):
        return
    post = called(config.whitening.name, "whitened")

    def drawings() -> files.Drawings:
        from whitepool.figures import of_run

        return of_run.drawings(inputs, vectors, maps, scores, config.pooling.name, post)

    files.save(drawings, folder, logger)
    if not is_multirun():
        from whitepool.page import content, pairs, write

        def page() -> content.Page:
            worst = pairs.misjudged(inputs.table, scores.predictions, post)
            return content.of_run(read_job(folder), worst)

        write.save(page, folder)


def of_analysis(
    config: DictConfig,
    tables: Mapping[str, Rows],
    *,
    task: str,
    aggregate: str,
    folder: Path,
    logger: Any,
) -> None:
    """Figures and page of analyses; a job of a multirun leaves the page to that.

    Args:
        config: the run's.
        tables: name of table -> rows.
        task: what recipes are compared on.
        aggregate: how its sub-tasks are combined.
        folder: of the run.
        logger: gets the figures where it takes images.
    """
    if not files.wanted(config):
        return
    post = called(config.whitening.name, "whitened")

    def drawings() -> files.Drawings:
        from whitepool.figures import of_grids

        model, pooling = config.model.name, config.pooling.name
        return of_grids.drawings(
            tables, task=task, aggregate=aggregate, model=model, pooling=pooling, post=post
        )

    files.save(drawings, folder, logger)
    if not is_multirun():
        from whitepool.page import content, write

        write.save(lambda: content.of_run(read_job(folder)), folder)


def of_multirun(config: DictConfig, jobs: Sequence[Job], folder: Path, logger: Any) -> None:
    """Figures and page of all jobs of a multirun."""
    if not files.wanted(config):
        return

    def drawings() -> files.Drawings:
        from whitepool.figures import of_jobs

        return of_jobs.drawings(jobs)

    from whitepool.page import content, write

    files.save(drawings, folder, logger)
    write.save(lambda: content.of_multirun(folder, jobs), folder)
