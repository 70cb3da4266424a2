"""The end of a multirun, or where it was stopped: one table of its jobs."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from whitepool import pictures
from whitepool.cli import IGNORED_FILE, sentence
from whitepool.jobs import NOT_RUN, Job, read_jobs
from whitepool.sweeps.job import ERROR_FILE
from whitepool.tracking import summing_up
from whitepool.whole_file import write_text

log = logging.getLogger(__name__)

SCORE_COLUMNS = ("score", "low", "high", "raw", "published", "difference")
COLUMNS = ("job", "overrides", *SCORE_COLUMNS, "seconds", "status")


class SummaryCallback(Callback):
    """Writes summary.csv into the multirun's folder and prints it."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Read what the jobs left, whichever process ran them."""
        sum_up(config, read_jobs(Path(config.hydra.sweep.dir).absolute()))


def sum_up_stopped(config: DictConfig, jobs: Mapping[str, Sequence[str]]) -> None:
    """Sum up a multirun that was stopped, with the jobs that it did not come to.

    What goes wrong is a word in the log, since the run ends anyway.

    Args:
        config: of the multirun.
        jobs: overrides of all of its jobs, by the name of their folder.
    """
    folder = Path(config.hydra.sweep.dir).absolute()
    try:
        found = read_jobs(folder)
        begun = {job.folder.name for job in found}
        left = [
            Job(folder / name, tuple(overrides), None, NOT_RUN)
            for name, overrides in jobs.items()
            if name not in begun
        ]
        sum_up(config, [*found, *left])
    except Exception as error:
        log.warning("No summary of %s: %s", folder, sentence(error))


def sum_up(config: DictConfig, found: Sequence[Job]) -> None:
    """Write, print and log the table of a multirun's jobs, and leave its page."""
    folder = Path(config.hydra.sweep.dir).absolute()
    jobs = [_row(job) for job in found]
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(jobs)
    write_text(folder / "summary.csv", table.getvalue())
    _show(jobs, folder)
    if names := ignored_by_all(folder / j["job"] for j in jobs if j["status"] == "done"):
        Console(highlight=False, markup=False).print(
            f"No job took {', '.join(names)}: ignored in all of them.", soft_wrap=True
        )
    with summing_up(config, folder) as logger:
        if logger:
            cells = [[None if v == "" else v for v in row.values()] for row in jobs]
            logger.log_table("jobs", COLUMNS, cells)
        pictures.of_multirun(config, found, folder, logger)


def ignored_by_all(folders: Iterable[Path]) -> list[str]:
    """Settings that none of the finished jobs in ``folders`` could use, by name."""
    sets = []
    for folder in folders:
        file = folder / IGNORED_FILE
        sets.append(set(file.read_text(encoding="utf-8").split()) if file.exists() else set())
    return sorted(set.intersection(*sets)) if sets else []


def _row(job: Job) -> dict[str, Any]:
    """The job's row in summary.csv."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "")
    row |= {"job": job.folder.name, "overrides": " ".join(job.overrides)}
    if job.results is None:
        return row | {"status": job.status}
    content = job.results
    top = content["headline"]
    same = [r for r in content["scores"] if r["stage"] == "raw" and _key(r) == _key(top)]
    published = [p for p in content.get("published", []) if _key(p) == _key(top)]
    published = [p for p in published if p["stage"] == top["stage"]]
    beside = {k: published[0][k] for k in ("published", "difference")} if published else {}
    return (
        row
        | beside
        | {
            "score": top["value"],
            "low": top["low"],
            "high": top["high"],
            "raw": same[0]["value"] if same else "",
            "seconds": "" if job.seconds is None else job.seconds,
            "status": "done",
        }
    )


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["task"], row.get("subset", ""), row["aggregate"], row["metric"]


def _number_cell(value: Any) -> str:
    """A score, empty where the job has none, or "undefined" (null in results.json)."""
    return "undefined" if value is None else value if value == "" else f"{value:.2f}"


def _show(jobs: list[dict[str, Any]], folder: Path) -> None:
    table = Table(title="Jobs of this multirun", title_justify="left", box=None, pad_edge=False)
    table.add_column("job", justify="right")
    table.add_column("overrides", overflow="fold")
    compared = any(job["published"] != "" for job in jobs)
    numeric = ("raw", "score", *(("published", "difference") if compared else ()))
    for name in (*numeric, "seconds"):
        table.add_column(name, justify="right")
    table.add_column("status")
    for job in jobs:
        numbers = [_number_cell(job[key]) for key in numeric]
        seconds = f"{job['seconds']:.1f}" if job["seconds"] != "" else ""
        table.add_row(job["job"], job["overrides"], *numbers, seconds, job["status"])
    console = Console(highlight=False, markup=False)
    console.print(table)
    for job in jobs:
        if job["status"] == "failed":
            error = folder / job["job"] / ERROR_FILE
            reason = error.read_text(encoding="utf-8").split("\n")[0] if error.exists() else "ended"
            console.print(f"Job {job['job']} failed: {reason}", soft_wrap=True)
    console.print(f"Summary: {folder / 'summary.csv'}", soft_wrap=True)
