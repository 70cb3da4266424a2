"""Whole analyses on a tiny model and suite, against single runs of their recipes."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whitepool.errors import UserError
from whitepool.evaluation import evaluate

import tiny_suite

Table = list[dict[str, str]]
KEY = ("task", "subset", "aggregate", "stage")


def run(checkpoint: Path, output: Path, *overrides: str) -> float:
    return evaluate(tiny_suite.composed(checkpoint, output, *overrides))


def read(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def by_key(rows: Table, **where: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(row[k] for k in KEY): float(row["value"] or "nan")
        for row in rows
        if row["metric"] == "spearman" and all(row[k] == v for k, v in where.items())
    }


@pytest.fixture(scope="module")
def bert(checkpoint: Callable[[str], Path]) -> Path:
    return checkpoint("bert")


@pytest.fixture(scope="module")
def everything(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of all analyses."""
    output = tmp_path_factory.mktemp("all")
    score = run(
        bert, output, "analysis=all", "protocol=whiteningbert", "analysis.whiten_sizes=[1,2,4]"
    )
    assert json.loads((output / "results.json").read_text())["headline"]["value"] == score
    return output


@pytest.mark.parametrize("layers", [(3,), (0, 3), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
def test_layers_equal_single_runs(
    bert: Path, everything: Path, tmp_path: Path, layers: tuple[int, ...]
) -> None:
    """To 1e-9, raw and whitened; 4 layers of 32 dimensions, some covariances of rank 31."""
    choice = ["protocol=whiteningbert", "pooling=layers", f"pooling.layers={list(layers)}"]
    run(bert, tmp_path, *choice)
    wanted = by_key(read(tmp_path / "scores.csv"))
    if len(layers) == 3:
        wanted = {key: value for key, value in wanted.items() if key[-1] == "raw"}
    found = by_key(read(everything / "layers.csv"), layers="+".join(map(str, layers)))
    assert found.keys() == wanted.keys()
    assert ("sts12", "B", "", "raw") in found
    assert ("avg", "", "wmean", "raw") in found
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, abs=1e-9), key


@pytest.mark.parametrize("fit_on", ["subset", "suite"])
def test_whitening_by_cholesky_equals_a_single_run(
    checkpoint: Callable[[str], Path], tmp_path: Path, fit_on: str
) -> None:
    """A decoder's layers have no norm behind them, so that their covariances have full rank."""
    choice = [f"whitening.fit_on={fit_on}", "model.name=gpt2"]
    run(checkpoint("gpt2"), tmp_path / "grid", *choice, "analysis=layers")
    run(checkpoint("gpt2"), tmp_path / "single", *choice, "pooling=layers", "pooling.layers=[1,2]")
    found = by_key(read(tmp_path / "grid" / "layers.csv"), layers="1+2")
    assert found == pytest.approx(by_key(read(tmp_path / "single" / "scores.csv")), abs=1e-9)


def test_all_subsets_are_there_and_the_best_of_each_size_is_named(everything: Path) -> None:
    rows = read(everything / "layers.csv")
    assert len({row["layers"] for row in rows}) == 15
    assert list(rows[0]) == "layers size task subset aggregate stage metric value n".split()
    best = read(everything / "layers_best.csv")
    for row in best:
        rivals = by_key(
            [r for r in rows if r["size"] == row["size"]],
            layers=row["layers"],
        )
        values = [float(r["value"]) for r in rows if all(r[k] == row[k] for k in (*KEY, "size"))]
        assert float(row["value"]) == max(values) == rivals[tuple(row[k] for k in KEY)]
    assert {(row["size"], row["stage"]) for row in best} == {
        *((str(n), "raw") for n in range(1, 5)), *((str(n), "post") for n in (1, 2, 4))
    }  # fmt: skip


def test_table1_equals_single_runs(bert: Path, everything: Path, tmp_path: Path) -> None:
    rows = read(everything / "table1.csv")
    runs = {
        "cls": {"cls_last": "raw"},
        "avg": {"avg_last": "raw"},
        "first_last": {"avg_1_last": "raw", "avg_1_last_whitened": "post"},
    }
    for pooling, stages in runs.items():
        run(bert, tmp_path / pooling, "protocol=whiteningbert", f"pooling={pooling}")
        single = read(tmp_path / pooling / "scores.csv")
        for row, stage in stages.items():
            found, wanted = by_key(rows, row=row), by_key(single, stage=stage)
            assert found == pytest.approx(wanted, abs=1e-9), row
    of_layer = by_key(read(everything / "layers.csv"), layers="1", stage="raw")
    assert by_key(rows, row="avg_1") == pytest.approx(of_layer, abs=1e-9)
    # The paper has an sts12 too, but not of these pairs.
    assert {r["published"] for r in rows} == {""}


@pytest.mark.parametrize("fit_on", ["task", "suite"])
def test_chunks_change_nothing(
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    fit_on: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Chunks of pairs too, with fit sets that lie in several, and other splits fitted on.

    One sentence per batch, since vectors depend on their batch in the last bits of float32, and a
    model whose covariances have no direction that is made of those.
    """
    caplog.set_level("INFO")
    model = checkpoint("gpt2")
    choice = ["analysis=all", "~analysis.grids.heads", "~analysis.grids.dims", "protocol=su"]
    choice += [f"whitening.fit_on={fit_on}", "pooling=ditto", "pooling.block=1", "pooling.head=1"]
    choice += ["batch_tokens=1"]
    whole = run(model, tmp_path / "whole", *choice)
    assert " in 1 chunk," in caplog.text
    caplog.clear()
    assert run(model, tmp_path / "cut", *choice, "analysis.max_memory=800KiB") == whole
    chunks = re.findall(r"in (\d+) chunks", caplog.text)
    assert int(chunks[0]) > 3
    for name in ("layers", "layers_best", "table1"):
        found, wanted = (read(tmp_path / folder / f"{name}.csv") for folder in ("cut", "whole"))
        assert found == wanted, name


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["analysis=layers", "pooling=max"], "the chosen one is not linear"),
        (["analysis=layers", "analysis.max_size=0"], "analysis.max_size is .*give whole numbers"),
        (["analysis=layers", "analysis.whiten_sizes=[1,a]"], "analysis.whiten_sizes is"),
        (["analysis=layers", "analysis.whiten_sizes=[9]"], "has 9, but there are 4 layers"),
        (["analysis=table1", "analysis.max_memory=1KiB"], "one pair of sentences needs"),
        (["analysis=table1", "analysis.max_memory=much"], "analysis.max_memory is 'much'"),
        (["analysis=layers", "pooling=idf"], "analysis=layers takes no token weights that a corp"),
        (["analysis=layers", "whitening.k=31"], "fit set sts12: .*over the effective rank"),
        (["analysis=layers", "whitening=flow"], "whitening=flow is trained on vectors: choose"),
    ],
)
def test_mistakes_are_one_sentence(
    bert: Path, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run(bert, tmp_path, *overrides)


def test_fewer_directions_are_those_of_a_single_run(bert: Path, tmp_path: Path) -> None:
    run(bert, tmp_path / "grid", "analysis=layers", "analysis.max_size=1", "whitening.k=8")
    run(bert, tmp_path / "single", "pooling=layers", "pooling.layers=[1,2]", "whitening.k=8")
    found = by_key(read(tmp_path / "grid" / "layers.csv"), layers="1+2")
    wanted = by_key(read(tmp_path / "single" / "scores.csv"), stage="post")
    assert {key[-1] for key in found} == {"post"}  # max_size=1 leaves the raw pairs out
    assert found == pytest.approx(wanted, abs=1e-9)


def test_without_whitening_there_are_raw_scores_only(bert: Path, tmp_path: Path) -> None:
    score = run(bert, tmp_path, "analysis=layers", "whitening=off", "analysis.max_size=2")
    rows = read(tmp_path / "layers.csv")
    assert {row["stage"] for row in rows} == {"raw"}
    assert {row["size"] for row in rows} == {"1", "2"}
    top = [float(r["value"]) for r in rows if (r["task"], r["aggregate"]) == ("avg", "all")]
    assert score == max(top)
    assert not math.isnan(score)


def test_results_say_what_was_done(everything: Path) -> None:
    content: dict[str, Any] = json.loads((everything / "results.json").read_text())
    assert content["tables"]["layers.csv"] == len(read(everything / "layers.csv"))
    assert content["headline"]["layers"] == content["best"]["layers"][0]["layers"]
    assert content["headline"]["task"] == "avg"
    assert content["headline"]["aggregate"] == "mean"
    assert content["recipe"]["model"]["sha256"]
    assert content["counts"]["blank"] == 1
    assert [d["pairs"] for d in content["data"]] == [40, 65, 50, 70]
    assert content["protocol"]["name"] == "whiteningbert"
    assert not list(everything.glob(".*.part*"))


@pytest.mark.slow
def test_minilm_on_stsb(tmp_path: Path) -> None:
    """Single runs of the embedded model on real pairs, raw and whitened, to 1e-6.

    A single run averages layers in float32, the grid in float64; a swap of two neighbouring ranks
    among 1,379 would be 1e-7 or more.
    """
    config = tiny_suite.composed(tmp_path, tmp_path / "grid", "analysis=all", "model=all_minilm")
    config.model.path = None
    config.data = {"_target_": "whitepool.data.load_sts", "tasks": ["stsb"]}
    evaluate(config)
    grid = read(tmp_path / "grid" / "layers.csv")
    assert len({row["layers"] for row in grid}) == 127
    for layers in ([6], [1, 6], [0, 3]):
        choice = ["model=all_minilm", "pooling=layers", f"pooling.layers={layers}"]
        single = tiny_suite.composed(tmp_path, tmp_path / "single", *choice)
        single.model.path, single.data = None, config.data
        evaluate(single)
        wanted = by_key(read(tmp_path / "single" / "scores.csv"))
        found = by_key(grid, layers="+".join(map(str, layers)))
        assert found == pytest.approx(wanted, abs=1e-6), layers
    assert by_key(grid, layers="6")["stsb", "", "all", "raw"] == pytest.approx(82.03, abs=0.01)
