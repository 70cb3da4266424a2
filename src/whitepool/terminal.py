"""The table of tasks that a run prints."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console
from rich.table import Table

from whitepool.maps.names import called, reduces
from whitepool.measures import WORDS
from whitepool.published import compare
from whitepool.report import Run
from whitepool.scores import DIFFERENCE, Row, is_defined


def show(run: Run, folder: Path) -> None:
    """Print the table of tasks, and what a reader of it must know."""
    aggregate = run.protocol.aggregate
    stages = [stage for stage in ("raw", "post") if any(r.stage == stage for r in run.scores.rows)]
    metrics = dict.fromkeys(m for some in run.scores.metrics.values() for m in some)
    table = Table(
        title=f"{run.model['name']}, pooling {run.config['pooling']['name']}: "
        f"{WORDS[next(iter(metrics))] if len(metrics) == 1 else 'scores'} x100 [95 %], "
        f"{aggregate}, protocol {run.protocol.name}",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("task")
    if len(metrics) > 1:
        table.add_column("score")
    step = run.config["whitening"]["name"]
    names = {"raw": "raw", "post": called(step, "whitened"), DIFFERENCE: "difference"}
    shown = [*stages, DIFFERENCE] if len(stages) > 1 else stages
    for stage in shown:
        table.add_column(names[stage], justify="right")
    table.add_column("n", justify="right")
    for task, own in run.scores.metrics.items():
        for metric in own:
            rows = [run.scores.get(task, aggregate, stage=s, metric=metric) for s in shown]
            cells = [_cell(row, signed=row.stage == DIFFERENCE) for row in rows]
            named = (WORDS[metric],) if len(metrics) > 1 else ()
            table.add_row(task, *named, *cells, f"{rows[0].n:,}")
    console = Console(highlight=False)
    console.print()
    console.print(table)
    if pairs := [(row, match) for row, match in run.compared if row.aggregate == aggregate]:
        console.print()
        console.print(compare.as_table(pairs))
        console.print()
    for name in run.scores.undefined:
        console.print(
            f"{name}: undefined, since it has one pair, or its cosines or gold scores are all "
            "equal; left out of averages."
        )
    for read in run.table.tasks:
        if read.missing:
            console.print(f"{read.name}: without {', '.join(read.missing)} (no file).")
    if run.maps is not None:
        kept = sorted({m.directions for m in run.maps.values()})
        dim = next(iter(run.maps.values())).dim
        span = str(kept[0]) if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
        directions = f"{span} of {dim} directions, " if reduces(step) else ""
        console.print(
            f"{called(step, 'Whitening')}: {directions}fitted on {run.fitted_on()}"
            + (" (from the recipe)." if run.recipe_fit is not None else ".")
        )
    console.print(f"Results: {folder}", soft_wrap=True)


def _cell(row: Row, *, signed: bool) -> str:
    if not is_defined(row):
        return "undefined"
    number = f"{row.value:+z.2f}" if signed else f"{row.value:.2f}"
    if math.isnan(row.low):
        return number
    return rf"{number} \[{row.low:.1f}, {row.high:.1f}]"
