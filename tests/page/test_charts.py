"""Charts are what plotly takes, and show the numbers of their rows."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import plotly.graph_objects as go

from whitepool.page import charts, grid_charts, tables
from whitepool.page.charts import Chart, Point

import made_jobs as made


def check(chart: Chart) -> None:
    """plotly refuses keys and values it does not know."""
    json.dumps(asdict(chart), allow_nan=False)
    for view in chart.views:
        go.Figure(data=view.data, layout=view.layout)


def points(*seeds: int) -> list[Point]:
    return [
        Point(f"pooling=<b>{seed}</b>" if len(seeds) > 1 else "", stage, scores)
        for seed in seeds
        for stage, scores in tables.by_stage(made.rows(seed), "all").items()
    ]


def test_one_recipe_has_all_tasks_in_one_view() -> None:
    found = points(3)
    chart = charts.recipes(found, made.TASKS)
    check(chart)
    (view,) = chart.views
    for trace, point in zip(view.data, found, strict=True):
        assert trace["x"] == list(made.TASKS)
        assert trace["y"] == [point.scores[task]["value"] for task in made.TASKS]
        assert math.isclose(trace["error_y"]["array"][0], 2.5)
        assert math.isclose(trace["error_y"]["arrayminus"][0], 2.0)


def test_many_recipes_have_a_view_for_each_task_the_best_on_top() -> None:
    found = points(*range(charts.MOST + 5))
    found[0].scores["avg"]["value"] = None  # type: ignore[index]
    found[1].scores["avg"]["published"] = 99.0  # type: ignore[index]
    found[1].scores["avg"]["value"] = 98.0  # type: ignore[index]
    chart = charts.recipes(found, made.TASKS)
    check(chart)
    assert [view.label for view in chart.views] == ["avg", "stsb", "sts12"]
    order = chart.views[0].layout["yaxis"]["categoryarray"]
    assert len(order) == charts.MOST
    assert order[-1] == "pooling=&lt;b&gt;0&lt;/b&gt;"
    assert chart.views[0].data[-1]["x"] == [99.0]
    shown = {name for trace in chart.views[0].data for name in trace["y"]}
    assert shown == set(order)
    assert f"The best {charts.MOST} recipes" in chart.caption


def test_layers() -> None:
    rows = [
        {"layers": mix, "size": mix.count("+") + 1, "stage": "raw", "value": value}
        for mix, value in [("0", 1.0), ("1", 2.0), ("2", math.nan), ("0+1", 5.0), ("0+2", 3.0),
                           ("1+2", 4.0), ("0+1+2", 2.5)]
    ]  # fmt: skip
    chart = grid_charts.layers(rows, "stsb, all", "whitened")
    check(chart)
    pairs, best = chart.views
    assert pairs.data[0]["z"] == [[1.0, None, None], [5.0, 2.0, None], [3.0, 4.0, None]]
    assert (pairs.layout["shapes"][0]["x0"], pairs.layout["shapes"][0]["y0"]) == (-0.5, 0.5)
    assert best.data[0]["y"] == [2.0, 5.0, 2.5]
    assert best.data[0]["text"] == ["1", "0+1", "0+1+2"]


def test_dims() -> None:
    rows = [{"k": k, "stage": "post", "value": 40.0 + k} for k in (2, 1, 3)]
    rows += [{"k": 4, "stage": "raw", "value": 41.0}]
    chart = grid_charts.dims(rows, "stsb")
    check(chart)
    curve, full = chart.views[0].data
    assert (curve["x"], curve["y"]) == ([1, 2, 3], [41.0, 42.0, 43.0])
    assert (full["x"], full["y"]) == ([1, 3], [41.0, 41.0])


def test_table1() -> None:
    rows = [
        {**row, "row": name, "published": 50.0 if row["task"] == "avg" else ""}
        for name, stage in (("cls_last", "raw"), ("avg_1_last_whitened", "post"))
        for row in made.rows(1, (stage,))
    ]
    chart = grid_charts.table1(rows, "mean", "whitened")
    check(chart)
    assert chart.views[0].data[-1]["name"] == "published"
