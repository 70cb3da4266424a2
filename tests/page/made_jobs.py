"""Pages made of results that are made up, for tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from whitepool.jobs import Job

TASKS = ("sts12", "stsb", "avg")


def rows(
    seed: int, stages: tuple[str, ...] = ("raw", "post"), tasks: tuple[str, ...] = TASKS
) -> list[dict[str, Any]]:
    """Scores as in results.json."""
    draw = random.Random(seed)
    found = []
    for task in tasks:
        for metric in ("spearman", "pearson"):
            for aggregate in ("all", "mean"):
                for stage in stages:
                    value = draw.uniform(40, 80)
                    found.append(
                        {
                            "task": task, "subset": "", "aggregate": aggregate, "stage": stage,
                            "metric": metric, "value": value, "low": value - 2,
                            "high": value + 2.5, "n": 100,
                        }
                    )  # fmt: skip
    return found


def job(
    number: int,
    *overrides: str,
    folder: Path = Path("multirun"),
    whitening: str = "pca",
    scores: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> Job:
    """A finished run."""
    found = rows(number) if scores is None else scores
    groups = dict(o.split("=", 1) for o in overrides if "." not in o.partition("=")[0])
    config = {
        "model": {"name": groups.get("model", "bert")},
        "pooling": {"name": groups.get("pooling", "avg")},
        "whitening": {"name": groups.get("whitening", whitening)},
    }
    results = {
        "headline": found[-1],
        "scores": found,
        "protocol": {"name": "simcse", "aggregate": "all"},
        "config": config,
        "data": [{"task": "stsb", "subset": "", "split": "test", "pairs": 1379}],
        "fit": {"on": "each task's test sentences"},
        "undefined": [],
        "seconds": 1.5,
        "device": "cpu",
        "versions": {"python": "3.11"},
    }
    return Job(folder / str(number), overrides, results, **changes)
