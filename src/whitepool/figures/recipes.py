"""Scores with their intervals, one panel for each task, one line for each recipe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from whitepool.figures.colours import GREY, STAGES, WHITENED, stage_name
from whitepool.figures.rows import Rows
from whitepool.figures.style import COLUMN, PAGE, shorten, styled

MOST = 40  # recipes that can still be read


class Score(NamedTuple):
    """A score, the ends of its 95 % interval (NaN where there is none), and the published one."""

    value: float
    low: float = math.nan
    high: float = math.nan
    published: float = math.nan


class Recipe(NamedTuple):
    """One line of the figure.

    Attributes:
        name: what tells it from the others.
        stage: raw, post or rotated.
        scores: by task.
        post: what the map is called.
    """

    name: str
    stage: str
    scores: Mapping[str, Score]
    post: str = WHITENED

    @property
    def called(self) -> str:
        """What the stage is called."""
        return stage_name(self.stage, self.post)


def lines(name: str, rows: Rows, aggregate: str, post: str = WHITENED) -> list[Recipe]:
    """One line for each stage of a run.

    Args:
        name: of the recipe.
        rows: as in scores.csv, with or without a column of published values; the first metric
            of a task is the one it is judged by.
        aggregate: all, mean or wmean.
        post: what the map is called.
    """
    found: dict[str, dict[str, Score]] = {}
    judged: dict[str, str] = {}
    for row in rows:
        metric = judged.setdefault(row["task"], row["metric"])
        if (row["subset"], row["aggregate"], row["metric"]) == ("", aggregate, metric):
            numbers = (row.get(key) for key in ("value", "low", "high", "published"))
            score = Score(*(math.nan if number is None else number for number in numbers))
            found.setdefault(row["stage"], {})[row["task"]] = score
    return [Recipe(name, stage, scores, post) for stage, scores in found.items()]


@styled
def scores(recipes: Sequence[Recipe], what: str) -> Figure:
    """Scores of recipes in every task, recipes in the order given, from the top.

    Args:
        recipes: at most `MOST` are drawn, the first.
        what: what was scored, for the title.
    """
    title = what
    if len(recipes) > MOST:
        title += f" (the first {MOST} of {len(recipes):,})"
        recipes = recipes[:MOST]
    tasks = list(dict.fromkeys(task for recipe in recipes for task in recipe.scores))
    across = min(max(len(tasks), 1), 4)
    down = -(-max(len(tasks), 1) // across)
    names = [shorten(r.name or r.called) for r in recipes]
    width = COLUMN if across == 1 and max(map(len, names), default=0) <= 24 else PAGE
    height = 0.8 + down * (0.6 + 0.18 * max(len(recipes), 2))
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    y = np.arange(len(recipes))
    for axes, task in zip(panels, tasks, strict=False):
        for at, recipe in enumerate(recipes):
            score = recipe.scores.get(task)
            if score is None or math.isnan(score.value):
                continue
            colour, marker = STAGES[recipe.stage]
            if not math.isnan(score.low):
                axes.plot([score.low, score.high], [at, at], color=colour, linewidth=1)
            axes.plot(score.value, at, marker, color=colour)
            if not math.isnan(score.published):
                axes.plot(score.published, at, "x", color="black", markersize=4)
        axes.set_title(shorten(task, 30), parse_math=False)
        axes.grid(axis="x")
        axes.margins(x=0.12)
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(tasks) - across) : len(tasks)]:
        axes.set_xlabel("score x100")
        axes.tick_params(labelbottom=True)
    if len(recipes):
        panels[0].set_yticks(y, names, parse_math=False)
        panels[0].set_ylim(len(recipes) - 0.4, -0.6)
    _legend(figure, recipes)
    figure.suptitle(
        shorten(title, 46 if width == COLUMN else 100),
        x=0.01,
        ha="left",
        fontsize=8,
        parse_math=False,
    )
    return figure


def _legend(figure: Figure, recipes: Sequence[Recipe]) -> None:
    """What marks and lines mean, below the panels."""
    from matplotlib.lines import Line2D

    names: dict[str, dict[str, None]] = {}
    for recipe in recipes:
        names.setdefault(recipe.stage, {})[recipe.called] = None
    handles = [
        Line2D([], [], color=STAGES[s].colour, marker=STAGES[s].marker, label=", ".join(names[s]))
        for s in names
    ]
    every = [score for recipe in recipes for score in recipe.scores.values()]
    if any(not math.isnan(score.low) for score in every):
        handles.append(Line2D([], [], color=GREY, linewidth=1, label="95 % interval"))
    if any(not math.isnan(score.published) for score in every):
        handles.append(Line2D([], [], color="black", marker="x", linestyle="", label="published"))
    if handles:
        across = len(handles) if figure.get_figwidth() > COLUMN else 2
        figure.legend(handles=handles, loc="outside lower center", ncols=across)
