"""What a run logs to Weights & Biases beside its metrics; nothing where the logger is another.

summary     the score of each task, and `avg`, their mean; `raw/TASK` before the map
history     curves over k, on an axis of their own
artifacts   fitted maps and recipes, with where they come from
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whitepool.aggregates import AVERAGE
from whitepool.scores import Row, is_defined


def run_of(logger: Any) -> Any:
    """The W&B run of a logger, None for another kind."""
    return logger.experiment if hasattr(logger, "log_table") else None


def summary_of(rows: Sequence[Row], aggregate: str) -> dict[str, float]:
    """``stsb``, ``avg``: the score that a task is judged by; ``raw/stsb``: before the map.

    Args:
        rows: the first metric of a task is the one it is judged by.
        aggregate: the protocol's.
    """
    stages: dict[str, dict[str, float]] = {}
    judged: dict[str, str] = {}
    for row in rows:
        metric = judged.setdefault(row.task, row.metric)
        at = (row.subset, row.aggregate, row.metric)
        if at == ("", aggregate, metric) and is_defined(row):
            stages.setdefault(row.stage, {})[row.task] = row.value
    for scores in stages.values():
        if len(scores) == 1:  # of one task the mean is its own score
            scores.setdefault(AVERAGE, next(iter(scores.values())))
    raw = {f"raw/{task}": value for task, value in stages.get("raw", {}).items()}
    return {**raw, **stages.get("post", stages.get("raw", {}))}


def log_summary(logger: Any, values: Mapping[str, float]) -> None:
    """Put values into the run's summary, where runs are compared by them."""
    if (run := run_of(logger)) is not None:
        run.summary.update(dict(values))


def log_curve(logger: Any, x: str, points: Iterable[tuple[int, Mapping[str, float]]]) -> None:
    """Log a curve over ``x``.

    Args:
        logger: of the run.
        x: what the curve is over; its metrics are called ``x/NAME``.
        points: value of x, and the metrics there, by NAME.
    """
    if (run := run_of(logger)) is None:
        return
    run.define_metric(x)
    run.define_metric(f"{x}/*", step_metric=x)
    for at, values in points:
        run.log({x: at, **{f"{x}/{name}": value for name, value in values.items()}})


def log_files(
    logger: Any, kind: str, name: str, paths: Sequence[Path], metadata: Mapping[str, Any]
) -> None:
    """Keep files, or whole folders, as an artifact.

    Args:
        logger: of the run.
        kind: of artifact.
        name: of the artifact, see `whitepool.wandb_names.artifact`.
        paths: what is kept; what is not there is left out.
        metadata: where they come from.
    """
    found = [path for path in paths if path.exists()]
    if (run := run_of(logger)) is None or not found:
        return
    import wandb

    kept = wandb.Artifact(name, type=kind, metadata=dict(metadata))
    for path in found:
        if path.is_dir():
            kept.add_dir(str(path), name=path.name)
        else:
            kept.add_file(str(path), name=path.name)
    run.log_artifact(kept)
