"""The tables of a report as plain data: recipes by tasks, from results and from analyses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whitepool.aggregates import AVERAGE
from whitepool.analysis.measured import side_by_side
from whitepool.figures.colours import WHITENED, stage_name
from whitepool.jobs import Job, differing
from whitepool.maps.names import called
from whitepool.page import commands

MOST = 1000  # rows of an analysis
GROUPS = ("model", "pooling", "whitening")
SCORE = ("task", "subset", "aggregate", "metric", "value", "n", "split", "published", "size")


@dataclass(frozen=True)
class Cell:
    """What stands in a cell.

    Attributes:
        text: as it is shown.
        value: what it is sorted by; None comes last.
        detail: small print below.
    """

    text: str
    value: float | str | None
    detail: str = ""


@dataclass(frozen=True)
class Line:
    """One row.

    Attributes:
        cells: by column.
        command: gives the row again.
        config: place of its configuration among the page's.
    """

    cells: tuple[Cell, ...]
    command: str = ""
    config: int | None = None


@dataclass(frozen=True)
class Table:
    """A table that can be sorted and filtered.

    Attributes:
        title: its heading.
        caption: what the numbers are.
        columns: their names.
        numeric: which of them hold numbers.
        lines: its rows.
        total: how many rows there are in the file it was taken from.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    numeric: frozenset[str]
    lines: tuple[Line, ...]
    total: int = field(default=0)


def words(value: Any) -> Cell:
    """A cell of text, or of a whole number."""
    known = value is not None and value != ""
    text = str(value) if known else ""
    return Cell(text, (value if isinstance(value, int | float) else text) if known else None)


def score(row: Mapping[str, Any] | None) -> Cell:
    """A cell with a score, its interval, and what was published."""
    if row is None:
        return Cell("", None)
    value = row["value"]
    if not _is_number(value):
        return Cell("undefined", None)
    details = []
    if _is_number(row.get("low")):
        details.append(f"{row['low']:.1f} to {row['high']:.1f}")
    if _is_number(row.get("published")):
        gap = row.get("difference")
        gap = gap if _is_number(gap) else value - row["published"]
        details.append(f"published {row['published']:.2f} ({gap:+z.2f})")
    return Cell(f"{value:.2f}", value, "; ".join(details))


def recipes(jobs: Sequence[Job]) -> Table | None:
    """Every recipe that was scored, by tasks; None where there is none.

    The raw scores of a run with whitening are those of the recipe without.
    """
    scored = [(i, job) for i, job in enumerate(jobs) if job.results and job.results["scores"]]
    if not scored:
        return None
    settings = dict(zip((i for i, _ in scored), _settings([j for _, j in scored]), strict=True))
    tasks = in_order(
        row["task"] for _, job in scored for row in (job.results or {}).get("scores", ())
    )
    lines: dict[tuple[Cell, ...], Line] = {}
    for i, job in scored:
        content = job.results or {}
        protocol, config = content["protocol"], content["config"]
        for stage, found in by_stage(content["scores"], protocol["aggregate"]).items():
            names = [config[group]["name"] for group in GROUPS]
            own = settings[i]
            if stage == "raw":
                names[-1] = "off"
                own = [o for o in own if not o.startswith("whitening.")]
            first = map(words, [*names, " ".join(own), protocol["name"]])
            cells = (*first, *(score(found.get(task)) for task in tasks))
            lines.setdefault(cells, Line(cells, commands.of_job(job), i))
    columns = (*GROUPS, "settings", "protocol", *tasks)
    caption = "Scores x100 with 95 % intervals, by the protocol's aggregate over sub-tasks."
    return _without_empty(
        Table("Recipes", caption, columns, frozenset(tasks), tuple(lines.values()), len(lines))
    )


def analysis(job: Job, place: int, name: str) -> Table:
    """The best recipes of an analysis by tasks, at most `MOST`.

    Args:
        job: the run.
        place: of its configuration among the page's.
        name: of the table.
    """
    content = job.results or {}
    post = called(content["config"]["whitening"]["name"], WHITENED)
    aggregate, top = content["protocol"]["aggregate"], content["headline"]["task"]
    found: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    keys: list[str] = []
    for row in job.table(name, subset="", metric="spearman"):
        split = row.get("split")
        if row["aggregate"] != ("all" if split == "dev" else aggregate):
            continue
        keys = keys or [key for key in row if key not in SCORE]
        task = row["task"]
        if split == "dev" and content["headline"].get("split") != "dev":
            task = f"{task} dev"
        found.setdefault(tuple(row[key] for key in keys), {})[task] = row
    tasks = in_order(task for scores in found.values() for task in scores)
    best = sorted(found.items(), key=lambda item: _rank(item[1].get(top)))[:MOST]
    lines = []
    for values, scores in best:
        recipe = dict(zip(keys, values, strict=True))
        named = {**recipe, "stage": stage_name(recipe["stage"], post)}
        cells = (*(words(named[key]) for key in keys), *(score(scores.get(t)) for t in tasks))
        lines.append(Line(cells, commands.of_row(job, name, recipe), place))
    numeric = frozenset([*tasks, *(k for i, k in enumerate(keys) if _numbers(best, i))])
    caption = f"Spearman x100, {aggregate}, best on {top} first; the file is {name}.csv."
    return Table(name, caption, (*keys, *tasks), numeric, tuple(lines), len(found))


def measures(job: Job, place: int) -> Table:
    """What `analysis=geometry` measured, a row for each task and measure."""
    post = called((job.results or {})["config"]["whitening"]["name"], WHITENED)
    rows = side_by_side(job.table("geometry"))
    stages = [stage for stage in ("raw", "post") if any(stage in row for row in rows)]
    lines = [
        Line(
            (words(row["task"]), words(row["measure"]), *(_measure(row.get(s)) for s in stages)),
            commands.of_job(job),
            place,
        )
        for row in rows
    ]
    columns = ("task", "measure", *(stage_name(stage, post) for stage in stages))
    caption = "Of the vectors of different sentences; the file is geometry.csv."
    return Table("Geometry", caption, columns, frozenset(columns[2:]), tuple(lines), len(lines))


def _measure(value: Any) -> Cell:
    """A number without an interval; empty where it is undefined."""
    return Cell(f"{value:.3f}", value) if isinstance(value, int | float) else Cell("", None)


def by_stage(rows: Sequence[Mapping[str, Any]], aggregate: str) -> dict[str, dict[str, Any]]:
    """Stage -> task -> the row of its aggregate, in the metric that the task is judged by."""
    found: dict[str, dict[str, Any]] = {}
    judged: dict[str, str] = {}
    for row in rows:
        metric = judged.setdefault(row["task"], row["metric"])
        if (row["subset"], row["aggregate"], row["metric"]) == ("", aggregate, metric):
            found.setdefault(row["stage"], {})[row["task"]] = row
    return found


def in_order(tasks: Iterable[str]) -> list[str]:
    """Each task once, the mean over tasks last."""
    once = list(dict.fromkeys(tasks))
    return [task for task in once if task != AVERAGE] + [AVERAGE] * (AVERAGE in once)


def _settings(jobs: Sequence[Job]) -> list[list[str]]:
    """What tells jobs apart beside the groups that have columns of their own."""
    own = differing(jobs) if len(jobs) > 1 else [jobs[0].overrides]
    return [[o for o in some if o.partition("=")[0] not in GROUPS] for some in own]


def _without_empty(table: Table) -> Table:
    """Without columns that are empty or say the same of all rows."""
    keep = []
    for i, name in enumerate(table.columns):
        texts = {line.cells[i].text for line in table.lines}
        same = len(texts) == 1 and name in ("protocol", "settings")
        if name in table.numeric or not (texts == {""} or same):
            keep.append(i)
    return Table(
        table.title,
        table.caption,
        tuple(table.columns[i] for i in keep),
        table.numeric,
        tuple(
            Line(tuple(line.cells[i] for i in keep), line.command, line.config)
            for line in table.lines
        ),
        table.total,
    )


def _rank(row: Mapping[str, Any] | None) -> float:
    known = row is not None and _is_number(row["value"])
    return -row["value"] if row is not None and known else math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def _numbers(found: Sequence[tuple[tuple[Any, ...], Any]], i: int) -> bool:
    return all(isinstance(values[i], int | float) for values, _ in found)
