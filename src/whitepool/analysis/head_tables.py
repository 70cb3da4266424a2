"""What a grid of heads is reported as: every score, and the heads that a dev split chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from whitepool.analysis.base import Rows
from whitepool.analysis.grid_scores import GridScore
from whitepool.analysis.selection import ranks
from whitepool.states import BlockHead, Layer

CONTENDERS = 5  # best heads of each choice that a search in a short type leaves open


class Recipe(NamedTuple):
    """One recipe of the grid: Ditto's block and head, 0-based, and the layers it sums over."""

    block: int
    head: int
    layers: tuple[Layer, ...]


def spelt(layers: Sequence[Layer]) -> str:
    """Layers as one types them, ``[0,-1]``."""
    return f"[{','.join(map(str, layers))}]"


def every_score(recipes: Sequence[Recipe], scores: Sequence[GridScore]) -> Rows:
    """A row for each recipe and score."""
    return [
        {
            "block": recipe.block,
            "head": recipe.head,
            "layers": spelt(recipe.layers),
            "split": score.split,
            "task": score.task,
            "subset": score.subset,
            "aggregate": score.aggregate,
            "stage": "raw",
            "metric": "spearman",
            "value": float(value),
            "n": score.n,
        }
        for score in scores
        for recipe, value in zip(recipes, score.values, strict=True)
    ]


def best(
    recipes: Sequence[Recipe],
    reported: Mapping[str, GridScore],
    dev: Mapping[str, GridScore],
    published: BlockHead | None,
    dtype: str,
) -> Rows:
    """For each task and list of layers the head chosen on a dev split, and the published one.

    Args:
        recipes: the grid.
        reported: the score of each task, ``avg`` among them.
        dev: the score that chooses for each task.
        published: head that is published for the model.
        dtype: type of the states the scores came from.

    Returns:
        Rows with the recipe, its dev score and its rank there among all recipes, its value and
        rank on the reported pairs, and in the columns ``oracle_*_not_for_selection`` the best
        head of the list on the reported pairs, which no one could have chosen.
    """
    rows: Rows = []
    for task, score in reported.items():
        chosen_by = dev[task]
        rank_on_dev, rank = ranks(chosen_by.values), ranks(score.values)
        for layers in dict.fromkeys(recipe.layers for recipe in recipes):
            members = [i for i, recipe in enumerate(recipes) if recipe.layers == layers]
            oracle = min(members, key=lambda i: rank[i])
            picks = {"selected": min(members, key=lambda i: rank_on_dev[i])}
            for i in members:
                if recipes[i][:2] == published:
                    picks["published"] = i
            rows += [
                {
                    "task": task,
                    "aggregate": score.aggregate,
                    "metric": "spearman",
                    "choice": choice,
                    "block": recipes[i].block,
                    "head": recipes[i].head,
                    "layers": spelt(layers),
                    "dev_set": f"{chosen_by.task} {chosen_by.split}",
                    "dev": float(chosen_by.values[i]),
                    "dev_rank": int(rank_on_dev[i]),
                    "split": score.split,
                    "value": float(score.values[i]),
                    "rank": int(rank[i]),
                    "recipes": len(recipes),
                    "n": score.n,
                    "oracle_block_not_for_selection": recipes[oracle].block,
                    "oracle_head_not_for_selection": recipes[oracle].head,
                    "oracle_value_not_for_selection": float(score.values[oracle]),
                    "dtype": dtype,
                }
                for choice, i in picks.items()
            ]
    return rows


def contenders(
    recipes: Sequence[Recipe],
    reported: Mapping[str, GridScore],
    dev: Mapping[str, GridScore],
    published: BlockHead | None,
) -> list[BlockHead]:
    """Heads that `best` would name, and those that come close to being chosen."""
    found: list[BlockHead] = [published] if published else []
    for layers in dict.fromkeys(recipe.layers for recipe in recipes):
        members = np.array([i for i, recipe in enumerate(recipes) if recipe.layers == layers])
        for score, most in [(s, CONTENDERS) for s in dev.values()] + [
            (s, 1) for s in reported.values()
        ]:
            order = np.argsort(ranks(score.values[members]), kind="stable")[:most]
            found += [recipes[i][:2] for i in members[order]]
    return list(dict.fromkeys(found))


def sentence(row: Mapping[str, object]) -> str:
    """A row of `best` in words."""
    return (
        f"{row['task']}: {row['choice']} head {row['block']},{row['head']} (block, head) of layers "
        f"{row['layers']}: {row['value']:.2f}; on {row['dev_set']} {row['dev']:.2f}, rank "
        f"{row['dev_rank']} of {row['recipes']}; best of these layers, not for selection: "
        f"{row['oracle_value_not_for_selection']:.2f}"
    )
