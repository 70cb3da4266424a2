"""What a run leaves: scores.csv, results.json, rows for a logger."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from whitepool import wandb_names
from whitepool.aggregates import AVERAGE
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.fit import Fit
from whitepool.protocol import EvalProtocol
from whitepool.published import compare
from whitepool.published.match import Match
from whitepool.scores import Row, Scores, headline, is_defined
from whitepool.versions import versions
from whitepool.whitening import Map
from whitepool.whole_file import write_text

log = logging.getLogger(__name__)

SCHEMA = 1
COLUMNS = [*(field.name for field in fields(Row)), "missing", "published", "difference"]


@dataclass(frozen=True, eq=False)
class Run:
    """Everything there is to say about a finished run."""

    config: Any
    protocol: EvalProtocol
    model: dict[str, Any]
    max_length: int
    table: SentenceTable
    scores: Scores
    published: list[Match]
    maps: dict[str, Map] | None
    encode_seconds: float
    device: str
    reused: bool = False
    vectors_key: str | None = None
    recipe_fit: str | None = None  # what the map of a recipe was fitted on, if that was applied
    corpus_fit: Fit | None = None  # of whitening.fit_on=corpus
    token_corpus: dict[str, Any] | None = None  # what the head's token weights were counted on
    chosen: Mapping[str, Any] = field(default_factory=dict)  # in place of an ``auto``, and by what

    @cached_property
    def headline(self) -> Row:
        """The row the run is judged by."""
        return headline(self.scores, self.protocol)

    @property
    def speed(self) -> float | None:
        """Unique sentences encoded per second; None where vectors were reused."""
        filled = int((~self.table.is_blank).sum())
        return None if self.reused else filled / self.encode_seconds

    def recipe(self) -> dict[str, Any]:
        """Model, pooling and post-processing, enough to do the same again."""
        return {
            "model": self.model,
            "pooling": self.config["pooling"],
            "whitening": self.config["whitening"],
            "max_length": self.max_length,
            "similarity": "cosine",
        }

    def fitted_on(self) -> str:
        """Which sentences the maps were fitted on, in words."""
        if self.corpus_fit is not None:
            return self.corpus_fit.words
        if self.recipe_fit is not None:
            return self.recipe_fit
        return self.protocol.describe_fit(self.table)

    def provenance(self) -> dict[str, Any]:
        """What is kept beside fitted maps."""
        return {
            **self.recipe(),
            "fit_on": self.protocol.fit_on,
            "all_splits": self.protocol.all_splits,
            **({"corpora": self.corpus_fit.corpora} if self.corpus_fit else {}),
            "covariance": "n - 1",
            "versions": versions(),
        }

    def results(self) -> dict[str, Any]:
        """The content of results.json."""
        return {
            "schema": SCHEMA,
            "headline": _plain(self.headline),
            "scores": [_plain(row) for row in self.scores.rows],
            "differences": [_plain(row) for row in self.scores.differences],
            "undefined": self.scores.undefined,
            **({"thresholds": self.scores.thresholds} if self.scores.thresholds else {}),
            "published": [compare.record(row, match) for row, match in self.compared],
            "recipe": self.recipe(),
            "protocol": asdict(self.protocol),
            "fit": None
            if self.maps is None
            else {
                "on": self.fitted_on(),
                "from_recipe": self.recipe_fit is not None,
                **({"corpora": self.corpus_fit.corpora} if self.corpus_fit else {}),
                "sets": {
                    name: {"vectors": m.count, "rank": m.rank, "k": m.directions}
                    for name, m in self.maps.items()
                },
            },
            **({"token_weights": self.token_corpus} if self.token_corpus else {}),
            **({"chosen": dict(self.chosen)} if self.chosen else {}),
            **describe(self.table),
            "seconds": round(self.encode_seconds, 3),
            "sentences_per_second": None if self.speed is None else round(self.speed, 1),
            "vectors": {"reused": self.reused, "key": self.vectors_key},
            "device": self.device,
            "versions": versions(),
            "config": self.config,
        }

    def write(self, folder: Path) -> None:
        """Write scores.csv and, by which a run counts as done, results.json; each whole."""
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in self.cells:
            writer.writerow({key: "" if value is None else value for key, value in row.items()})
        write_text(folder / "scores.csv", table.getvalue())
        text = json.dumps(self.results(), indent=1, ensure_ascii=False, allow_nan=False)
        write_text(folder / "results.json", text + "\n")

    @cached_property
    def compared(self) -> compare.Pairs:
        """The scores that were published, each with its published value."""
        return compare.compared(self.scores.rows, self.published)

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """What the columns of each row hold, None for what is undefined."""
        rows, tasks = self.scores.rows, self.table.tasks
        return [
            {**_plain(row), "missing": missing(tasks, row), **published}
            for row, published in zip(rows, compare.cells(rows, self.compared), strict=True)
        ]

    def metrics(self) -> dict[str, float]:
        """Every defined score by name, ``sts12/MSRpar/post/spearman``; and ``headline``."""
        result = {"headline": self.headline.value} if is_defined(self.headline) else {}
        for row in (*self.scores.rows, *self.scores.differences):
            if is_defined(row):
                part = row.subset or row.aggregate
                result[f"{row.task}/{part}/{row.stage}/{row.metric}"] = row.value
        if self.speed is not None:
            result["sentences_per_second"] = self.speed
        return result

    def log(self, logger: Any, folder: Path) -> None:
        """Log scores; to W&B rows too, the scores that runs are compared by, and what was fitted.

        Args:
            logger: none, or one of Lightning's.
            folder: of the run, with its map and recipe.
        """
        if not logger:
            return
        from whitepool.wandb_log import WandbRun, summary_of

        logger.log_metrics(self.metrics())
        logger.save()
        if not isinstance(logger, WandbRun):
            return
        logger.log_metrics(summary_of(self.scores.rows, self.protocol.aggregate))
        logger.log_table("scores", COLUMNS, [list(row.values()) for row in self.cells])
        kind = "recipe" if self.maps is None else "whitening"
        groups = (self.config[group]["name"] for group in ("pooling", "whitening"))
        name = wandb_names.artifact(kind, self.model["name"], *groups)
        files = [folder / "whitening.safetensors", folder / "recipe"]
        logger.keep(kind, name, files, self.provenance())


def describe(table: SentenceTable) -> dict[str, Any]:
    """What was read, for results.json: files with checksums, counts, missing sub-tasks."""
    sets = [
        s
        for task in table.tasks
        for s in (*task.scored, *(task.other_splits if table.other.get(task.name) else ()))
    ]
    return {
        "missing": {t.name: list(t.missing) for t in table.tasks if t.missing},
        "data": [_read(s) for s in sets],
        **({"selected_on": [_read(s) for s in table.selecting]} if table.selecting else {}),
        "counts": {
            "sentences": table.sentences,
            "unique": len(table),
            "truncated": table.truncated,
            "blank": table.blank,
        },
    }


def missing(tasks: Sequence[Task], row: Row) -> str:
    """Sub-tasks that a row of an aggregate lacks (`data.allow_missing`), with spaces between.

    Of a task ``MSRvid``, of the mean over tasks ``sts12/MSRvid``; a row of a sub-task lacks none.
    """
    if row.subset:
        return ""
    if row.task == AVERAGE:
        return " ".join(f"{task.name}/{name}" for task in tasks for name in task.missing)
    return " ".join(name for task in tasks if task.name == row.task for name in task.missing)


def _read(s: PairSet) -> dict[str, Any]:
    """What a file of pairs was, with its checksum."""
    return {
        "task": s.task,
        "subset": s.subset,
        "split": s.split,
        "pairs": len(s),
        "unjudged": s.unjudged,
        "source": s.source,
        "sha256": s.sha256,
    }


def _plain(row: Row) -> dict[str, Any]:
    """A row with None for what is undefined."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in asdict(row).items()
    }
