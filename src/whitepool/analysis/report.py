"""What a one-pass analysis leaves: tidy tables, results.json, the best rows on the terminal."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from whitepool.aggregates import AVERAGE
from whitepool.analysis.base import Rows
from whitepool.analysis.measured import side_by_side
from whitepool.inputs import Inputs
from whitepool.maps.names import called
from whitepool.report import SCHEMA, describe
from whitepool.versions import versions
from whitepool.wandb_log import WandbRun
from whitepool.whole_file import beside

SCORE = ("task", "subset", "aggregate", "stage", "metric", "value", "n")  # in every row
SHOWN = 8  # rows on the terminal


@dataclass(frozen=True, eq=False)
class GridRun:
    """Everything there is to say about finished analyses.

    Attributes:
        config: the resolved configuration.
        inputs: what was worked on.
        tables: name of analysis -> name of table -> rows.
        chunks: number of passes, each over a part of the pairs.
        encoded: sentences encoded, over all chunks.
        encode_seconds: seconds of the passes.
        seconds: seconds of everything after planning.
        device: where the model ran.
    """

    config: Any
    inputs: Inputs
    tables: dict[str, dict[str, Rows]]
    chunks: int
    encoded: int
    encode_seconds: float
    seconds: float
    device: str

    @property
    def task(self) -> str:
        """What recipes are compared on: ``avg`` if there are several tasks."""
        tasks = list(dict.fromkeys(s.task for s in self.inputs.table.scored))
        return AVERAGE if len(tasks) > 1 else tasks[0]

    @cached_property
    def best(self) -> dict[str, Rows]:
        """The defined rows of each analysis' first table that compete, best first.

        They have the protocol's aggregate, of the mean over tasks if there are several tasks, and
        are of the split that is scored, not of one that only chooses (`analysis=heads`).
        """
        wanted = {
            "task": self.task,
            "subset": "",
            "aggregate": self.inputs.protocol.aggregate,
            "metric": "spearman",
        }
        scored = " and ".join(dict.fromkeys(s.split for s in self.inputs.table.scored))
        result = {}
        for name, tables in self.tables.items():
            rows = next(iter(tables.values()))
            rows = [r for r in rows if r.get("split", scored) == scored]
            competing = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
            defined = [row for row in competing if not math.isnan(row["value"])]
            result[name] = sorted(defined, key=lambda row: -row["value"])
        return result

    @cached_property
    def headline(self) -> dict[str, Any]:
        """The best row of the first analysis; its value is NaN where every score is undefined."""
        rows = next(iter(self.best.values()))
        return rows[0] if rows else {**dict.fromkeys(SCORE, ""), "value": math.nan}

    def results(self) -> dict[str, Any]:
        """The content of results.json; the tables themselves are in their own files."""
        plm = self.inputs.plm
        return {
            "schema": SCHEMA,
            "headline": {**_plain(self.headline), "low": None, "high": None},
            "scores": [],
            "best": {name: [_plain(r) for r in rows[:SHOWN]] for name, rows in self.best.items()},
            "tables": {
                f"{table}.csv": len(rows)
                for tables in self.tables.values()
                for table, rows in tables.items()
            },
            "analysis": self.config["analysis"],
            "recipe": {
                "model": {"name": plm.name, **plm.provenance},
                "pooling": self.config["pooling"],
                "whitening": self.config["whitening"],
                "max_length": self.inputs.max_length,
                "similarity": "cosine",
            },
            "protocol": asdict(self.inputs.protocol),
            **describe(self.inputs.table),
            "chunks": self.chunks,
            "seconds": round(self.encode_seconds, 3),
            "seconds_after_encoding": round(self.seconds - self.encode_seconds, 3),
            "sentences_per_second": round(self.encoded / self.encode_seconds, 1),
            "device": self.device,
            "versions": versions(),
            "config": self.config,
        }

    def write(self, folder: Path) -> None:
        """Write each table as CSV, and results.json; a file is there whole or not at all."""
        for tables in self.tables.values():
            for name, rows in tables.items():
                with _replacing(folder / f"{name}.csv") as file:
                    columns = list(rows[0]) if rows else list(SCORE)
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerow(columns)
                    writer.writerows([_cell(row[column]) for column in columns] for row in rows)
        with _replacing(folder / "results.json") as file:
            json.dump(self.results(), file, indent=1, ensure_ascii=False, allow_nan=False)
            file.write("\n")

    def log(self, logger: Any) -> None:
        """Log the headline and the best rows, the latter where it is W&B.

        No score of a task is logged: the best of a grid has no place beside recipes' own.
        """
        if not logger:
            return
        metrics = {f"{name}/best": rows[0]["value"] for name, rows in self.best.items() if rows}
        if not math.isnan(self.headline["value"]):
            metrics["headline"] = self.headline["value"]
        metrics["sentences_per_second"] = self.encoded / self.encode_seconds
        logger.log_metrics(metrics)
        logger.save()
        if not isinstance(logger, WandbRun):
            return
        for name, rows in self.best.items():
            if rows:
                logger.log_table(name, list(rows[0]), [list(row.values()) for row in rows])
        logger.log_curve("k", self.curve())

        logger.log_metrics(
            {
                f"geometry/{stage}/{row['measure']}": row[stage]
                for row in self.measured
                for stage in ("raw", "post")
                if row["task"] == self.task and not math.isnan(row.get(stage, math.nan))
            }
        )
        if self.measured:
            columns = list(self.measured[0])
            logger.log_table("measures", columns, [list(r.values()) for r in self.measured])

    @cached_property
    def measured(self) -> Rows:
        """Measures of geometry, see `side_by_side`; none without that analysis."""
        return side_by_side(self.tables.get("geometry", {}).get("geometry", ()))

    def curve(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Each k of the table `dims` and the scores there by stage, of what recipes compete on."""
        found: dict[int, dict[str, float]] = {}
        for row in self.best.get("dims", []):
            found.setdefault(row["k"], {})[row["stage"]] = row["value"]
        yield from sorted(found.items())

    def show(self, folder: Path) -> None:
        """Print the best rows of each analysis, and where the files are."""
        console = Console(highlight=False, markup=False)
        for name, rows in self.best.items():
            console.print()
            if not rows:
                console.print(
                    f"{name}: every score is undefined: there is one pair, or its cosines or gold "
                    "scores are all equal.",
                    soft_wrap=True,
                )
                continue
            top, protocol = rows[0], self.inputs.protocol
            console.print(
                f"{self.inputs.plm.name}, {name}: best {min(SHOWN, len(rows))} of {len(rows):,}, "
                f"Spearman x100 on {top['task']}, {top['aggregate']}, protocol {protocol.name}",
                soft_wrap=True,
            )
            console.print(_table(rows[:SHOWN]))
        if self.measured:
            post = called(self.config["whitening"]["name"], "whitened")
            console.print("\ngeometry of the vectors of different sentences")
            console.print(_measures(self.measured, post))
        files = [f"{table}.csv" for tables in self.tables.values() for table in tables]
        console.print(f"Results: {folder} ({', '.join(files)})", soft_wrap=True)


def _table(rows: Rows) -> Table:
    """Rows without the columns that are the same in all, or empty."""
    table = Table(box=None, pad_edge=False)
    hidden = {"task", "subset", "aggregate", "metric", "n"}
    columns = [c for c in rows[0] if c not in hidden and any(r[c] is not None for r in rows)]
    for column in columns:
        numeric = isinstance(rows[0][column], int | float)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_shown(row[column]) for column in columns))
    return table


def _measures(rows: Rows, post: str) -> Table:
    """Measures by stage, and by task if there are several."""
    table = Table(box=None, pad_edge=False)
    several = len({row["task"] for row in rows}) > 1
    stages = [stage for stage in ("raw", "post") if stage in rows[0]]
    for column in (*(["task"] if several else []), "measure"):
        table.add_column(column)
    for stage in stages:
        table.add_column(post if stage == "post" else stage, justify="right")
    for row in rows:
        named = [row["task"]] if several else []
        table.add_row(*named, row["measure"], *(_measure(row[stage]) for stage in stages))
    return table


def _measure(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _shown(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "" if value is None else str(value)


def _cell(value: Any) -> Any:
    """A value, or nothing where it is undefined."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if _cell(value) == "" and value != "" else value for key, value in row.items()
    }


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """A new file that takes the place of ``path`` once it is complete."""
    with beside(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        yield file
