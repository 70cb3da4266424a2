"""A Weights & Biases workspace for a project of whitepool runs, built by code.

    python -m whitepool.workspace ENTITY PROJECT

It has a leaderboard of recipes, the curve over k, and maps of layers and heads, and is saved as a
view of the project, whose link is printed. Needs pip install "whitepool[wandb]" and a W&B key.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from whitepool.errors import UserError
from whitepool.figures.files import FOLDER

if TYPE_CHECKING:
    import wandb_workspaces.workspaces as ws

TASKS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
MAPS = ("layer_pairs_raw", "layer_pairs_post", "layers_best", "heads", "weights", "dims", "table1")
PROTOCOLS = ("simcse", "whiteningbert", "su", "mteb")
LOOKS = ("scores", "cosines", "spectrum", "token_weights", *(f"recipes_{p}" for p in PROTOCOLS))


def build(entity: str, project: str) -> ws.Workspace:
    """The workspace, not yet saved.

    Raises:
        UserError: wandb-workspaces is not installed.
    """
    try:
        import wandb_workspaces.reports.v2 as wr
        import wandb_workspaces.workspaces as ws
    except ModuleNotFoundError as error:
        raise UserError(
            "a workspace needs wandb-workspaces: install whitepool[wandb], or wandb-workspaces."
        ) from error

    columns = ["avg", *TASKS]
    leaderboard = [
        wr.BarPlot(title="Leaderboard: mean over tasks, x100", metrics=["avg"], orientation="h"),
        wr.RunComparer(diff_only=True),
        wr.ParallelCoordinatesPlot(
            title="Every task",
            columns=[wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(n)) for n in columns],
        ),
        wr.ScatterPlot(
            title="What the map gained",
            x=wr.SummaryMetric("raw/avg"),
            y=wr.SummaryMetric("avg"),
        ),
    ]
    curves = [
        wr.LinePlot(
            title="Score against directions kept, k", x="k", y=["k/post", "k/rotated"], log_x=True
        )
    ]

    def media(*names: str) -> list[wr.MediaBrowser]:
        return [wr.MediaBrowser(title=n, media_keys=[f"{FOLDER}/{n}"]) for n in names]

    return ws.Workspace(
        entity=entity,
        project=project,
        name="whitepool",
        sections=[
            ws.Section(name="Leaderboard", panels=leaderboard, is_open=True),
            ws.Section(name="Directions kept", panels=curves, is_open=True),
            ws.Section(name="Layers and heads", panels=media(*MAPS), is_open=True),
            ws.Section(name="Vectors and weights", panels=media(*LOOKS), is_open=False),
        ],
        runset_settings=ws.RunsetSettings(
            order=[ws.Ordering(ws.Summary("avg"), ascending=False)],
            pinned_columns=["run:displayName", *(f"summary:{name}" for name in columns)],
        ),
    )


def main() -> None:
    """Build and save; W&B prints the link."""
    parser = argparse.ArgumentParser(prog="python -m whitepool.workspace", description=__doc__)
    parser.add_argument("entity", help="user or team")
    parser.add_argument("project")
    given = parser.parse_args()
    import wandb

    try:
        build(given.entity, given.project).save()
    except (UserError, wandb.Error) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
