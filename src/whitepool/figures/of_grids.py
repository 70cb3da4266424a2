"""Which figures the tables of analyses give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from matplotlib.figure import Figure

from whitepool.figures import dims, heads, layers, recipes, weights
from whitepool.figures.colours import WHITENED, stage_name
from whitepool.figures.rows import Rows, select


def drawings(
    tables: Mapping[str, Rows],
    *,
    task: str,
    aggregate: str,
    model: str,
    pooling: str,
    post: str = WHITENED,
) -> dict[str, Callable[[], Figure]]:
    """What draws each figure, by its name.

    Args:
        tables: name of table -> rows, of any analyses.
        task: the task that figures of one task are of, ``avg`` for the mean over tasks.
        aggregate: how its sub-tasks are combined.
        model: name of the model, for titles.
        pooling: name of the head, for titles.
        post: what the map is called.
    """
    found: dict[str, Callable[[], Figure]] = {}
    here = {"task": task, "aggregate": aggregate, "metric": "spearman"}
    scored = f"{task} ({aggregate})"
    if "layers" in tables:
        for stage in ("raw", "post"):
            if rows := select(tables["layers"], **here, stage=stage):
                title = f"{model}, {pooling}, {stage_name(stage, post)}: {scored}"
                found[f"layer_pairs_{stage}"] = partial(layers.pair_map, rows, title)
        best = select(tables["layers_best"], **here)
        title = f"{model}, {pooling}: {scored}"
        found["layers_best"] = partial(layers.best_by_size, best, title, post)
    if "heads" in tables:
        chosen = select(tables["heads_best"], task=task)
        dev = chosen[0]["dev_set"].rsplit(" ", 1) if chosen else [task, "dev"]
        rows = select(tables["heads"], task=dev[0], split=dev[1], aggregate="all")
        found["heads"] = partial(heads.head_map, rows, chosen, f"{model}: {' '.join(dev)}")
    if "dims" in tables:
        rows = select(tables["dims"], **here)
        found["dims"] = partial(dims.score_by_k, rows, f"{model}, {pooling}: {scored}")
    if "weights" in tables:
        title = f"{model}: attention diagonals beside tf-idf"
        found["weights"] = partial(weights.weight_map, tables["weights"], title)
    if "table1" in tables:
        rows = select(tables["table1"], aggregate=aggregate, subset="")
        title = f"{model}: rows of WhiteningBERT's Table 1 ({aggregate})"
        found["table1"] = partial(recipes.scores, _table1(rows, aggregate, post), title)
    return found


def _table1(rows: Rows, aggregate: str, post: str) -> list[recipes.Recipe]:
    """One line for each row of the table, in its order."""
    return [
        line
        for name in dict.fromkeys(row["row"] for row in rows)
        for line in recipes.lines(
            name, [row for row in rows if row["row"] == name], aggregate, post
        )
    ]
