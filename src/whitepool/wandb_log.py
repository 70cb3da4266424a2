"""What a run logs to Weights & Biases; nothing that goes wrong there is worth a failed run.

summary     the score of each task, and `avg`, their mean; `raw/TASK` before the map
history     every metric; curves over k, on an axis of their own
media       tables of rows, figures
artifacts   fitted maps and recipes, with where they come from
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger

from whitepool.aggregates import AVERAGE
from whitepool.scores import Row, is_defined

log = logging.getLogger(__name__)


class WandbRun(Logger):
    """A W&B run, as Lightning and the reports see it.

    The first call that fails is a warning, and the last that is made but for the one that ends the
    run.

    Args:
        start: begins the run.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        super().__init__()
        self._run: Any = None
        self._failed = False
        self._run = self._safely(start)

    def __enter__(self) -> WandbRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the run, or mark it failed."""
        run, self._run = self._run, None
        if run is not None:
            self._safely(lambda: run.finish(exit_code=int(kind is not None)))

    @property
    def name(self) -> str:
        """What Lightning calls the kind of logger."""
        return "wandb"

    @property
    def version(self) -> str:
        """The run's id; empty where none was begun."""
        return str(self._run.id) if self._run is not None else ""

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Nothing: the run has the configuration from its start."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log numbers; the last of each is the run's summary.

        Args:
            metrics: by name.
            step: Lightning's, which a run that trains nothing has no use for.
        """
        self._log(lambda: dict(metrics))

    def log_table(self, key: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Log a table; None is an empty cell."""

        def table() -> dict[str, Any]:
            import wandb

            return {key: wandb.Table(columns=list(columns), data=[list(row) for row in rows])}

        self._log(table)

    def log_image(self, key: str, images: Sequence[str]) -> None:
        """Log picture files."""

        def pictures() -> dict[str, Any]:
            import wandb

            return {key: [wandb.Image(path) for path in images]}

        self._log(pictures)

    def log_curve(self, x: str, points: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Log a curve over ``x``.

        Args:
            x: what the curve is over; its metrics are called ``x/NAME``.
            points: value of x, and the metrics there, by NAME.
        """

        def curve() -> None:
            self._run.define_metric(x)
            self._run.define_metric(f"{x}/*", step_metric=x)
            for at, values in points:
                self._run.log({x: at, **{f"{x}/{name}": value for name, value in values.items()}})

        self._if_it_runs(curve)

    def keep(
        self, kind: str, name: str, paths: Sequence[Path], metadata: Mapping[str, Any]
    ) -> None:
        """Keep files, or whole folders, as an artifact.

        Args:
            kind: of artifact.
            name: of the artifact, see `whitepool.wandb_names.artifact`.
            paths: what is kept; what is not there is left out.
            metadata: where they come from.
        """
        found = [path for path in paths if path.exists()]

        def artifact() -> None:
            import wandb

            kept = wandb.Artifact(name, type=kind, metadata=dict(metadata))
            for path in found:
                add = kept.add_dir if path.is_dir() else kept.add_file
                add(str(path), name=path.name)
            self._run.log_artifact(kept)

        if found:
            self._if_it_runs(artifact)

    def _log(self, values: Callable[[], dict[str, Any]]) -> None:
        self._if_it_runs(lambda: self._run.log(values()))

    def _if_it_runs(self, action: Callable[[], object]) -> None:
        if self._run is not None and not self._failed:
            self._safely(action)

    def _safely(self, action: Callable[[], Any]) -> Any:
        """What ``action`` gives; None where it fails, which is told of once."""
        try:
            return action()
        except Exception as error:
            if not self._failed:
                what = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                log.warning("W&B gets no more of this run, which goes on without it: %s", what)
            self._failed = True


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
    last = "post" if any(row.stage == "post" for row in rows) else "raw"
    return {**raw, **stages.get(last, {})}
