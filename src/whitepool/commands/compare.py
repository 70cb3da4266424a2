"""`whitepool compare RUN RUN`: what one run scores above another, pair by pair."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from whitepool.commands.assignments import assignments
from whitepool.commands.console import HELP
from whitepool.comparison import Difference, compare
from whitepool.errors import UserError
from whitepool.jobs import names_of, read_job
from whitepool.measures import WORDS
from whitepool.predictions import Predictions, load_predictions

USAGE = """usage: whitepool compare RUN RUN [stage=raw|post] [bootstrap=1000] [seed=0]

What the second run scores above the first on each task, with the 95 % interval and the two-sided
p-value of the paired bootstrap. Both must have scored the same pairs.

  RUN               folder of a finished run of evaluate, or of one job of a multirun
  stage=raw|post    before or behind whitening; by default behind it, where a run has that
  bootstrap=1000    resamples of the pairs; p is never below 2 / (resamples + 1)
  seed=0            of the resamples

Examples
  whitepool compare outputs/2026-01-31/12-00-00 outputs/2026-01-31/12-05-00
  whitepool compare multirun/2026-01-31/12-00-00/0 multirun/2026-01-31/12-00-00/3 stage=raw
"""
SETTINGS = {"stage": "last", "bootstrap": "1000", "seed": "0"}


def run(arguments: Sequence[str]) -> int:
    """Compare two runs and print the table.

    Raises:
        UserError: there are not two runs, or they cannot be compared.
    """
    if set(arguments) & set(HELP):
        sys.stdout.write(USAGE)
        return 0
    folders = [Path(word).expanduser() for word in arguments if not _is_setting(word)]
    if len(folders) != 2:
        raise UserError(f"whitepool compare takes two run folders: {len(folders)} were given.")
    given = assignments([w for w in arguments if _is_setting(w)], "compare", SETTINGS)
    found = [load_predictions(folder) for folder in folders]
    stages = [
        _stage(one, folder, given["stage"]) for one, folder in zip(found, folders, strict=True)
    ]
    samples = _whole("bootstrap", given["bootstrap"], least=1)
    seed = _whole("seed", given["seed"], least=0)
    rows = compare(found[0], found[1], (stages[0], stages[1]), samples=samples, seed=seed)
    jobs = [read_job(folder) for folder in folders]
    console = Console(highlight=False, markup=False)
    for letter, name, folder, stage in zip("AB", names_of(jobs), folders, stages, strict=True):
        named = f"{name} ({folder})" if name != folder.name else str(folder)
        console.print(f"{letter}: {named}, {stage}", soft_wrap=True)
    console.print(_table(rows, found[0].aggregate))
    return 0


def _is_setting(word: str) -> bool:
    return word.partition("=")[0] in SETTINGS or ("=" in word and not Path(word).exists())


def _stage(run: Predictions, folder: Path, wanted: str) -> str:
    stages = list(run.by_stage)
    if wanted == "last":
        return stages[-1]
    if wanted not in stages:
        raise UserError(f"{folder} has no stage {wanted!r}: choose one of {', '.join(stages)}.")
    return wanted


def _whole(name: str, value: str, *, least: int) -> int:
    if not value.isdecimal() or int(value) < least:
        raise UserError(f"{name} is {value!r}: give a whole number of at least {least}.")
    return int(value)


def _table(rows: Sequence[Difference], aggregate: str) -> Table:
    metrics = list(dict.fromkeys(row.metric for row in rows))
    measured = WORDS[metrics[0]] if len(metrics) == 1 else "scores"
    table = Table(
        title=f"{measured} x100, {aggregate}", title_justify="left", box=None, pad_edge=False
    )
    table.add_column("task")
    if len(metrics) > 1:
        table.add_column("score")
    for name in ("A", "B", "B - A [95 %]", "p", "n"):
        table.add_column(name, justify="right")
    for row in rows:
        named = (WORDS[row.metric],) if len(metrics) > 1 else ()
        interval = f"[{row.low:+z.2f}, {row.high:+z.2f}]"
        table.add_row(
            row.task,
            *named,
            _number(row.first),
            _number(row.second),
            "undefined" if math.isnan(row.value) else f"{row.value:+z.2f} {interval}",
            "" if math.isnan(row.p) else f"{row.p:.3f}",
            f"{row.n:,}",
        )
    return table


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"
