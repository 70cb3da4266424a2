"""The interactive figures of a report, as the plain data that plotly draws.

A chart has one or more views, between which a reader chooses. All text of others goes through
`text`, since plotly takes some HTML in labels.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whitepool.figures.colours import BLUE, STAGES, WHITENED, stage_name

SYMBOLS = {"o": "circle", "s": "square", "^": "triangle-up"}
SCORE = "score x100"
MOST = 60  # recipes that can still be told apart


@dataclass(frozen=True)
class View:
    """One drawing: plotly's ``data`` and ``layout``."""

    label: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A figure.

    Attributes:
        title: its heading.
        caption: what it shows, also for those who cannot see it.
        views: what can be chosen.
    """

    title: str
    caption: str
    views: tuple[View, ...]


@dataclass(frozen=True)
class Point:
    """A score to be drawn.

    Attributes:
        name: of the recipe.
        stage: raw, post or rotated.
        scores: by task, rows as in scores.csv.
        post: what the map is called.
    """

    name: str
    stage: str
    scores: Mapping[str, Mapping[str, Any]]
    post: str = WHITENED


def text(value: object) -> str:
    """Text that plotly shows as it is."""
    return html.escape(str(value), quote=False)


def recipes(points: Sequence[Point], tasks: Sequence[str]) -> Chart:
    """Scores with intervals, one view for each task; of one recipe, all tasks in one view."""
    if len({point.name for point in points}) == 1:
        data = [
            _series([p], [(text(t), p.scores[t]) for t in tasks if t in p.scores], "y")
            for p in points
        ]
        data += _published([(text(t), p.scores[t]) for p in points for t in p.scores], "y")
        layout = {
            "xaxis": {"type": "category"},
            "yaxis": {"title": {"text": SCORE}},
            "scattermode": "group",
        }
        views = [View("", data, layout)]
    else:
        views = [_by_recipe(points, task) for task in reversed(tasks)]
    caption = "Scores with their 95 % intervals, where there are any; crosses are published values."
    if len({point.name for point in points}) > MOST:
        caption += f" The best {MOST} recipes of each task."
    return Chart("Scores", caption, tuple(views))


def _by_recipe(points: Sequence[Point], task: str) -> View:
    """One line for each recipe, the best on top."""
    has = [p for p in points if task in p.scores and _known(p.scores[task]["value"])]
    best: dict[str, float] = {}
    for p in has:
        best[p.name] = max(best.get(p.name, -math.inf), p.scores[task]["value"])
    top = sorted(best, key=lambda name: best[name])[-MOST:]
    has, order = [p for p in has if p.name in top], [text(name) for name in top]
    by_stage: dict[str, list[Point]] = {}
    for p in has:
        by_stage.setdefault(p.stage, []).append(p)
    named = [(text(p.name), p.scores[task]) for p in has]
    data = [
        _series(some, [(text(p.name), p.scores[task]) for p in some], "x")
        for some in by_stage.values()
    ]
    layout = {
        "height": max(280, 90 + 22 * len(order)),
        "xaxis": {"title": {"text": f"{text(task)}: {SCORE}"}},
        "yaxis": {
            "type": "category", "categoryorder": "array", "categoryarray": order,
            "automargin": True, "ticklabeloverflow": "hide past div",
        },
    }  # fmt: skip
    return View(task, [*data, *_published(named, "x")], layout)


def _series(
    points: Sequence[Point], named: Sequence[tuple[str, Mapping[str, Any]]], axis: str
) -> dict[str, Any]:
    """Scores of points of one stage along ``axis``, and names along the other."""
    style, other = STAGES[points[0].stage], "y" if axis == "x" else "x"
    called = text(", ".join(dict.fromkeys(stage_name(p.stage, p.post) for p in points)))
    values = [row["value"] if _known(row["value"]) else None for _, row in named]
    result: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": called,
        axis: values,
        other: [name for name, _ in named],
        "marker": {"color": style.colour, "symbol": SYMBOLS[style.marker], "size": 9},
        "hovertemplate": f"%{{{other}}}<br>{called} %{{{axis}:.2f}}<extra></extra>",
    }
    if any(_known(row.get("low")) for _, row in named):
        result[f"error_{axis}"] = {
            "type": "data",
            "symmetric": False,
            "array": [_gap(row, "high") for _, row in named],
            "arrayminus": [_gap(row, "low") for _, row in named],
            "color": style.colour,
            "thickness": 1.2,
        }
    return result


def _published(named: Sequence[tuple[str, Mapping[str, Any]]], axis: str) -> list[dict[str, Any]]:
    """Published values, if there are any."""
    known = [(name, row["published"]) for name, row in named if _known(row.get("published"))]
    if not known:
        return []
    other = "y" if axis == "x" else "x"
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "published",
            axis: [value for _, value in known],
            other: [name for name, _ in known],
            "marker": {"symbol": "x-thin", "size": 9, "line": {"width": 2}},
            "hovertemplate": f"published %{{{axis}:.2f}}<extra></extra>",
        }
    ]


def heat(
    label: str,
    values: Sequence[Sequence[float | None]],
    names: tuple[Sequence[str], Sequence[str]],
    axes: tuple[str, str],
    marked: Sequence[tuple[int, int]],
) -> View:
    """A map of numbers.

    Args:
        label: of the view.
        values: (row, column); None is left blank.
        names: of rows, of columns.
        axes: what rows are, what columns are.
        marked: cells that get a frame, (row, column).
    """
    rows, columns = names
    data = {
        "type": "heatmap",
        "z": [list(row) for row in values],
        "x": list(columns),
        "y": list(rows),
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": SCORE}, "thickness": 12},
        "hovertemplate": f"{axes[1]} %{{x}}, {axes[0]} %{{y}}: %{{z:.2f}}<extra></extra>",
    }
    frames = [
        {
            "type": "rect", "x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5,
            "line": {"color": STAGES["raw"].colour, "width": 3},
        }
        for y, x in marked
    ]  # fmt: skip
    layout = {
        "height": 420,
        "xaxis": {"title": {"text": axes[1]}, "type": "category"},
        "yaxis": {"title": {"text": axes[0]}, "type": "category", "autorange": "reversed"},
        "shapes": frames,
    }
    return View(label, [data], layout)


def line(name: str, x: Sequence[float], y: Sequence[float | None], stage: str) -> dict[str, Any]:
    """A curve."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": STAGES[stage].colour if stage in STAGES else BLUE},
        "hovertemplate": f"{name}: %{{x}}, %{{y:.2f}}<extra></extra>",
    }


def known(value: Any) -> float | None:
    """A number, or None for what is undefined."""
    return value if _known(value) else None


def _known(value: Any) -> bool:
    return isinstance(value, int | float) and not math.isnan(value)


def _gap(row: Mapping[str, Any], end: str) -> float | None:
    return abs(row[end] - row["value"]) if _known(row.get(end)) and _known(row["value"]) else None
