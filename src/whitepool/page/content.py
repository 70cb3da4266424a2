"""What stands on a report's page: tables, charts, pictures, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whitepool.figures.colours import WHITENED
from whitepool.figures.files import FOLDER
from whitepool.jobs import Job, names_of
from whitepool.maps.names import called
from whitepool.page import charts, grid_charts, tables
from whitepool.page.charts import Chart
from whitepool.page.tables import Table

STATIC = ("cosines", "spectrum", "token_weights")  # figures of a run that have no chart


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: its heading, empty where its one table's or chart's will do.
        tables: its tables.
        charts: its charts, above the tables.
    """

    title: str
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Page:
    """A whole page.

    Attributes:
        title: its heading.
        facts: what is said below it, (name, value).
        sections: its parts.
        configs: configurations that rows point to, as YAML.
        pictures: SVG files that are shown as they are, by name.
        failures: (name, reason) of jobs that failed or were stopped.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    configs: tuple[str, ...]
    pictures: tuple[tuple[str, bytes], ...] = ()
    failures: tuple[tuple[str, str], ...] = ()


def of_run(job: Job, pairs: Table | None = None) -> Page:
    """The page of one run.

    Args:
        job: the run.
        pairs: a table of its sentence pairs.
    """
    content = job.results or {}
    config = content["config"]
    parts = [str(config[group]["name"]) for group in tables.GROUPS]
    if (analysis := config.get("analysis", {}).get("name", "none")) != "none":
        parts.append(f"analysis {analysis}")
    title = ", ".join(parts)
    sections = [_recipes([job]), *_analyses(job, 0, "")]
    if pairs is not None:
        sections.append(Section("", (pairs,), ()))
    pictures = []
    for name in STATIC:
        path = job.folder / FOLDER / f"{name}.svg"
        if path.exists():
            pictures.append((name.replace("_", " "), path.read_bytes()))
    return Page(
        title, _facts([job]), tuple(s for s in sections if s), (job.config(),), tuple(pictures)
    )


def of_multirun(folder: Path, jobs: Sequence[Job]) -> Page:
    """The page of a multirun.

    Args:
        folder: its folder.
        jobs: what it has.
    """
    done = [job for job in jobs if job.results]
    names = dict(zip((job.folder for job in jobs), names_of(jobs), strict=True))
    sections = [_recipes(done)]
    for place, job in enumerate(done):
        sections += _analyses(job, place, names[job.folder])
    return Page(
        f"multirun {folder.name}",
        (("jobs", _statuses(jobs)), *_facts(done)),
        tuple(s for s in sections if s),
        tuple(job.config() for job in done),
        failures=tuple((names[job.folder], job.error) for job in jobs if not job.results),
    )


def _statuses(jobs: Sequence[Job]) -> str:
    """How many jobs ended in which way."""
    counts = Counter({"done": 0, "failed": 0})
    counts.update(job.status for job in jobs)
    return ", ".join(f"{n} {status}" for status, n in counts.items())


def _recipes(jobs: Sequence[Job]) -> Section | None:
    """Every scored recipe, as chart and table."""
    table = tables.recipes(jobs)
    if table is None:
        return None
    points = []
    scored = [job for job in jobs if job.results and job.results["scores"]]
    for job, name in zip(scored, names_of(scored), strict=True):
        content = job.results or {}
        found = tables.by_stage(content["scores"], content["protocol"]["aggregate"])
        label = name if len(scored) > 1 else ""
        post = called(content["config"]["whitening"]["name"], WHITENED)
        points += [charts.Point(label, stage, scores, post) for stage, scores in found.items()]
    tasks = tables.in_order(task for point in points for task in point.scores)
    return Section("", (table,), (charts.recipes(points, tasks),))


def _analyses(job: Job, place: int, name: str) -> list[Section]:
    """Every analysis of a run, as chart and table."""
    sections = []
    for file in (job.results or {}).get("tables", {}):
        table = file.removesuffix(".csv")
        title = f"{name}: {table}" if name else ""
        if table == "geometry":
            sections.append(Section(title, (tables.measures(job, place),), ()))
        elif table == "weights":
            sections.append(Section(title, (), (grid_charts.weights(job),)))
        elif (chart := grid_charts.of_analysis(job, table)) is not None:
            sections.append(Section(title, (tables.analysis(job, place, table),), (chart,)))
    return sections


def _facts(jobs: Sequence[Job]) -> tuple[tuple[str, str], ...]:
    """What the reader of any number must know: data, protocol, fit, model, versions, hardware."""
    contents = [job.results or {} for job in jobs]
    rows = {
        "data": [
            f"{'.'.join(filter(None, (d['task'], d['subset'])))} {d['split']}, {d['pairs']:,} pairs"
            for content in contents
            for d in content["data"]
        ],
        "protocol": [content["protocol"]["name"] for content in contents],
        "whitening fitted on": [c["fit"]["on"] for c in contents if c.get("fit")],
        "undefined": [name for content in contents for name in content.get("undefined", ())],
        "seconds": [f"{sum(content['seconds'] for content in contents):.1f} of encoding"],
        "device": [content["device"] for content in contents],
        "versions": [
            ", ".join(f"{name} {version}" for name, version in content["versions"].items())
            for content in contents
        ],
    }
    return tuple(
        (name, "; ".join(dict.fromkeys(values))) for name, values in rows.items() if values
    )
