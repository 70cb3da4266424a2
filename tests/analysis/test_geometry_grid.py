"""`analysis=geometry` on a tiny model and suite, against the padded path and plain loops."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from whitepool.analysis.measured import MEASURES, side_by_side
from whitepool.evaluation import evaluate
from whitepool.jobs import read_job
from whitepool.page import content
from whitepool.plm import FrozenPLM
from whitepool.states import Needs, pad

import tiny_suite

Table = list[dict[str, str]]


def read(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("geometry")
    config = tiny_suite.composed(
        checkpoint("bert"), output, "analysis=geometry", "pooling=ditto", "pooling.block=1",
        "pooling.head=2", "pooling.layers=[-1]", "figures=true",
    )  # fmt: skip
    evaluate(config)
    return output


@pytest.fixture(scope="module")
def states(plm: Callable[[str], FrozenPLM]) -> tuple[list[tuple[int, ...]], Any]:
    """The unique sentences of the suite as one padded batch."""
    model = plm("bert")
    sets = [s for task in tiny_suite.load() for s in task.scored]
    texts = dict.fromkeys(t for s in sets for t in s.first + s.second)
    ids = [x for x in dict.fromkeys(model.tokenize(list(texts)).ids) if x]
    every = tuple((block, head) for block in range(3) for head in range(4))
    with torch.inference_mode():
        return ids, model(pad(ids, 1), Needs((-1,), every))


def tfidf(ids: list[tuple[int, ...]]) -> list[list[float]]:
    """By the formula; [CLS] and [SEP] are 0 and 2."""
    n = len(ids)
    having = Counter(token for sentence in ids for token in set(sentence))
    result = []
    for sentence in ids:
        words = [token for token in sentence if token not in (0, 2)]
        weight = {
            w: words.count(w) / len(words) * (math.log((1 + n) / (1 + having[w])) + 1)
            for w in words
        }
        result.append([weight.get(token, math.nan) for token in sentence])
    return result


def test_weights_against_loops(folder: Path, states: Any) -> None:
    ids, out = states
    wanted = tfidf(ids)
    rows = read(folder / "weights.csv")
    assert [(r["block"], r["head"]) for r in rows[1:]] == [
        (str(b), str(h)) for b in range(3) for h in range(4)
    ]
    assert (rows[0]["weights"], rows[0]["block"]) == ("chosen", "")
    for row in rows:
        key = (int(row["block"]), int(row["head"])) if row["block"] else (1, 2)
        diagonal = out.diagonals[key].numpy()
        some = [
            (float(diagonal[i, t]), value)
            for i, values in enumerate(wanted)
            for t, value in enumerate(values)
            if not math.isnan(value)
        ]
        weights, target = zip(*some, strict=True)
        assert int(row["tokens"]) == len(some)
        rho, r = stats.spearmanr(weights, target)[0], stats.pearsonr(weights, target)[0]
        # Float32 rounding may order two near-equal weights either way.
        assert float(row["spearman_tfidf"]) == pytest.approx(100 * rho, abs=0.02)
        assert float(row["pearson_tfidf"]) == pytest.approx(100 * r, abs=1e-3)


def vectors(model: FrozenPLM, texts: list[str]) -> np.ndarray:
    ids = [x for x in dict.fromkeys(model.tokenize(texts).ids) if x]
    with torch.inference_mode():
        out = model(pad(ids, 1), Needs((-1,), ((1, 2),)))
    diagonal, hidden = out.diagonals[1, 2].double(), out.hidden[3].double()
    return (diagonal.unsqueeze(1) @ hidden).squeeze(1).numpy()


def test_measures_against_loops(folder: Path, plm: Callable[[str], FrozenPLM]) -> None:
    rows = read(folder / "geometry.csv")
    found = {(r["task"], r["subset"], r["stage"], r["metric"]): r["value"] for r in rows}
    (alone,) = tiny_suite.load()[1].scored
    x = vectors(plm("bert"), [*alone.first, *alone.second])
    for stage in ("raw", "post"):
        if stage == "post":  # fitted on every occurrence, scored on unique sentences
            every = list(alone.first + alone.second)
            model = plm("bert")
            place = {i: n for n, i in enumerate(dict.fromkeys(model.tokenize(every).ids))}
            counted = x[[place[i] for i in model.tokenize(every).ids]]
            values, axes = np.linalg.eigh(np.cov(counted.T))
            keep = values > values[-1] * 32 * np.finfo(float).eps
            x = (x - counted.mean(0)) @ (axes[:, keep] / np.sqrt(values[keep]))
        u = x / np.linalg.norm(x, axis=1)[:, None]
        others = ~np.eye(len(x), dtype=bool)
        value = {m: float(found["mine", "", stage, m]) for m in ("anisotropy", "entropy_rank")}
        assert value["anisotropy"] == pytest.approx((u @ u.T)[others].mean(), abs=2e-4)
        shares = np.clip(np.linalg.eigvalsh(np.cov(x.T)), 1e-300, None)
        shares = shares / shares.sum()
        rank = np.exp(-(shares * np.log(shares)).sum())
        assert value["entropy_rank"] == pytest.approx(rank, rel=1e-3)
    for r in rows:
        assert r["value"] or (r["task"], r["metric"]) == ("sts12", "alignment"), r


def test_a_stage_has_its_spearman_and_whitening_is_rounder(folder: Path) -> None:
    rows = read(folder / "geometry.csv")
    assert {r["stage"] for r in rows} == {"raw", "post"}
    assert {r["subset"] for r in rows if r["task"] == "sts12"} == {"", "A", "B", "C"}
    at = {
        (r["task"], r["subset"], r["aggregate"], r["stage"], r["metric"]): r["value"] for r in rows
    }
    assert float(at["mine", "", "mean", "post", "isoscore"]) > float(
        at["mine", "", "mean", "raw", "isoscore"]
    )
    assert at["avg", "", "all", "raw", "spearman"]


def test_measures_are_shown_side_by_side(folder: Path) -> None:
    """In the report, and in rows of their own; the figure has the attention diagonals."""
    job = read_job(folder)
    rows = side_by_side(job.table("geometry"))
    assert {row["measure"] for row in rows} == set(MEASURES)
    assert {row["task"] for row in rows} == {"mine", "sts12", "avg"}
    raw = {
        (r["task"], r["metric"]): r["value"] for r in read(folder / "geometry.csv")
        if r["stage"] == "raw" and r["subset"] == "" and r["aggregate"] == "mean"
    }  # fmt: skip
    for row in rows:
        assert str(row["raw"]) == raw[row["task"], row["measure"]]
    table, weights = (section for section in content.of_run(job).sections)
    assert [line.cells[1].text for line in table.tables[0].lines] == [r["measure"] for r in rows]
    heat = weights.charts[0].views[0].data[0]["z"]
    top = max(float(r["spearman_tfidf"]) for r in job.table("weights", weights="diagonal"))
    assert max(max(row) for row in heat) == top
    assert (folder / "figures" / "weights.png").exists()
