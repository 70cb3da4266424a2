"""The interactive figures of analyses: maps of layer pairs and heads, the curve over k, Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whitepool.figures.colours import WHITENED, stage_name
from whitepool.figures.rows import Rows, combined
from whitepool.jobs import Job
from whitepool.maps.names import called
from whitepool.page.charts import Chart, Point, View, heat, known, line, recipes
from whitepool.page.tables import by_stage, in_order


def of_analysis(job: Job, name: str) -> Chart | None:
    """The figure of a table of a finished analysis; None for a table that has none."""
    content = job.results or {}
    here = {
        "task": content["headline"]["task"],
        "aggregate": content["protocol"]["aggregate"],
        "metric": "spearman",
        "subset": "",
    }
    scored = f"{here['task']}, {here['aggregate']}"
    post = called(content["config"]["whitening"]["name"], WHITENED)
    if name == "layers":
        return layers(list(job.table("layers", **here)), scored, post)
    if name == "dims":
        return dims(list(job.table("dims", **here)), scored)
    if name == "heads":
        return heads(job, here["task"])
    if name == "table1":
        rows = list(job.table("table1", subset="", aggregate=here["aggregate"]))
        return table1(rows, str(here["aggregate"]), post)
    return None


def layers(rows: Rows, scored: str, post: str) -> Chart:
    """Score of every pair of layers for each stage, and the best score for each size."""
    views = []
    for stage in dict.fromkeys(str(row["stage"]) for row in rows):
        own = [row for row in rows if row["stage"] == stage]
        pairs = {combined(row): known(row["value"]) for row in own if int(row["size"]) <= 2}
        found = sorted({layer for pair in pairs for layer in pair})
        values = [
            [pairs.get((low, high) if low < high else (low,)) if low <= high else None
             for low in found]
            for high in found
        ]  # fmt: skip
        best = max((p for p in pairs if pairs[p] is not None), key=lambda p: pairs[p] or -101.0,
                   default=None)  # fmt: skip
        marked = [(found.index(best[-1]), found.index(best[0]))] if best else []
        names = [str(layer) for layer in found]
        label = f"pairs, {stage_name(stage, post)}"
        views.append(heat(label, values, (names, names), ("with layer", "layer"), marked))
    views.append(_best_by_size(rows, post))
    caption = f"Layers combined, {scored}; layer 0 is the embedding output, the best is framed."
    return Chart("Layers", caption, tuple(views))


def _best_by_size(rows: Rows, post: str) -> View:
    data = []
    for stage in dict.fromkeys(str(row["stage"]) for row in rows):
        best: dict[int, Mapping[str, Any]] = {}
        for row in rows:
            size, value = int(row["size"]), known(row["value"])
            if row["stage"] == stage and value is not None:
                top = best.get(size)
                best[size] = row if top is None or value > top["value"] else top
        sizes = sorted(best)
        curve = line(stage_name(stage, post), sizes, [best[n]["value"] for n in sizes], stage)
        curve |= {
            "mode": "lines+markers",
            "text": [str(best[n]["layers"]) for n in sizes],
            "hovertemplate": "layers %{text}: %{y:.2f}<extra></extra>",
        }
        data.append(curve)
    layout = {
        "xaxis": {"title": {"text": "number of combined layers"}, "dtick": 1},
        "yaxis": {"title": {"text": "best score x100"}},
    }
    return View("best of each number", data, layout)


def dims(rows: Rows, scored: str) -> Chart:
    """Score against k."""
    data = []
    for stage in ("post", "rotated"):
        curve = sorted((int(r["k"]), known(r["value"])) for r in rows if r["stage"] == stage)
        if curve:
            ks, values = zip(*curve, strict=True)
            data.append(line(stage_name(stage, WHITENED), ks, values, stage))
    for row in rows:
        if row["stage"] == "raw" and data:
            ends = [1, max(max(curve["x"]) for curve in data)]
            full = line(f"all {row['k']}, no step", ends, [known(row["value"])] * 2, "raw")
            full["line"] |= {"dash": "dash"}
            data.append(full)
    layout = {
        "xaxis": {"title": {"text": "directions kept, k"}, "type": "log"},
        "yaxis": {"title": {"text": "score x100"}},
    }
    return Chart("Directions kept", f"Score against every k, {scored}.", (View("", data, layout),))


def heads(job: Job, task: str) -> Chart:
    """Scores of the set that chooses, block by head, the chosen head framed."""
    chosen = list(job.table("heads_best", task=task))
    dev, _, split = str(chosen[0]["dev_set"]).rpartition(" ") if chosen else (task, "", "dev")
    rows = list(job.table("heads", task=dev, split=split, aggregate="all", subset=""))
    blocks = sorted({int(row["block"]) for row in rows})
    every = sorted({int(row["head"]) for row in rows})
    views = []
    for layers in dict.fromkeys(str(row["layers"]) for row in rows):
        values: list[list[float | None]] = [[None] * len(every) for _ in blocks]
        for row in rows:
            if str(row["layers"]) == layers:
                at = blocks.index(int(row["block"])), every.index(int(row["head"]))
                values[at[0]][at[1]] = known(row["value"])
        marked = [
            (blocks.index(int(row["block"])), every.index(int(row["head"])))
            for row in chosen
            if str(row["layers"]) == layers and row["choice"] == "selected"
        ]
        names = [str(b) for b in blocks], [str(h) for h in every]
        views.append(heat(f"layers {layers}", values, names, ("block", "head"), marked))
    caption = f"Ditto with every attention head, on {dev} {split}, where heads are chosen."
    return Chart("Attention heads", caption, tuple(views))


def weights(job: Job) -> Chart:
    """Correlation of every attention diagonal with tf-idf, block by head."""
    rows = list(job.table("weights", weights="diagonal"))
    blocks = sorted({int(row["block"]) for row in rows})
    every = sorted({int(row["head"]) for row in rows})
    values: list[list[float | None]] = [[None] * len(every) for _ in blocks]
    for row in rows:
        place = blocks.index(int(row["block"])), every.index(int(row["head"]))
        values[place[0]][place[1]] = known(row["spearman_tfidf"])
    names = [str(b) for b in blocks], [str(h) for h in every]
    caption = "Spearman x100 of tf-idf and the attention that each token pays itself."
    return Chart("Token weights", caption, (heat("", values, names, ("block", "head"), []),))


def table1(rows: Rows, aggregate: str, post: str) -> Chart:
    """The rows of WhiteningBERT's Table 1, published values beside them."""
    points = [
        Point(str(name), stage, scores, post)
        for name in dict.fromkeys(row["row"] for row in rows)
        for stage, scores in by_stage([r for r in rows if r["row"] == name], aggregate).items()
    ]
    chart = recipes(points, in_order(str(row["task"]) for row in rows))
    return Chart("Table 1", f"{chart.caption} Aggregate {aggregate}.", chart.views)
