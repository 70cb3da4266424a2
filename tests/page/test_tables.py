"""What the tables of a report say, and the command of each row."""

from __future__ import annotations

import csv
import dataclasses
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from whitepool.data.table import SentenceTable
from whitepool.jobs import Job, number, read_job
from whitepool.page import commands, tables
from whitepool.page.pairs import misjudged

import made_jobs as made
import tiny_suite


def cells(table: tables.Table, line: int) -> dict[str, str]:
    found = table.lines[line].cells
    return dict(zip(table.columns, (cell.text for cell in found), strict=True))


def test_recipes_by_tasks() -> None:
    jobs = [
        made.job(0, "pooling=cls", "whitening=pca", "whitening.k=8", "model=bert", "seed=1"),
        made.job(1, "pooling=avg", "whitening=pca", "whitening.k=4", "model=bert", "seed=1"),
    ]
    table = tables.recipes(jobs)
    assert table is not None
    assert table.columns == ("model", "pooling", "whitening", "settings", "sts12", "stsb", "avg")
    assert table.numeric == {"sts12", "stsb", "avg"}
    lines = [cells(table, i) for i in range(4)]
    assert [line["whitening"] for line in lines] == ["off", "pca", "off", "pca"]
    assert [line["settings"] for line in lines] == ["", "whitening.k=8", "", "whitening.k=4"]
    wanted = {(r["task"], r["stage"]): r for r in made.rows(1)
              if (r["metric"], r["aggregate"]) == ("spearman", "all")}  # fmt: skip
    for task in made.TASKS:
        cell = table.lines[3].cells[table.columns.index(task)]
        row = wanted[task, "post"]
        assert (cell.text, cell.value) == (f"{row['value']:.2f}", row["value"])
        assert cell.detail == f"{row['low']:.1f} to {row['high']:.1f}"
    assert [line.config for line in table.lines] == [0, 0, 1, 1]


def test_one_recipe_is_one_row_however_often_it_was_run() -> None:
    same = made.rows(7)
    raw = [row for row in same if row["stage"] == "raw"]
    jobs = [
        made.job(0, "whitening=off", scores=raw),
        made.job(1, "whitening=pca", scores=same),
    ]
    table = tables.recipes(jobs)
    assert table is not None
    assert [cells(table, i)["whitening"] for i in range(len(table.lines))] == ["off", "pca"]


def test_undefined_and_published_scores() -> None:
    row = {"value": None, "low": None, "high": None}
    assert tables.score(row) == tables.Cell("undefined", None)
    assert tables.score({"value": math.nan}) == tables.Cell("undefined", None)
    published = {"value": 78.0, "low": 77.0, "high": 79.0, "published": 77.5}
    assert tables.score(published).detail == "77.0 to 79.0; published 77.50 (+0.50)"
    given = tables.score({**published, "difference": 0.4})
    assert given.detail.endswith("published 77.50 (+0.40)")
    assert tables.score(None) == tables.Cell("", None)


def test_the_metric_is_the_one_that_a_task_is_judged_by() -> None:
    rows = [
        {"task": t, "subset": "", "aggregate": "all", "stage": "raw", "metric": m, "value": v}
        for t, m, v in [("bq", "accuracy", 70), ("bq", "spearman", 30), ("stsb", "spearman", 80)]
    ]
    found = tables.by_stage(rows, "all")["raw"]
    assert {task: row["value"] for task, row in found.items()} == {"bq": 70, "stsb": 80}


def test_analyses_by_tasks_best_first(tmp_path: Path) -> None:
    columns = ["layers", "size", "task", "subset", "aggregate", "stage", "metric", "value", "n"]
    rows = [
        [mix, 1, task, subset, aggregate, stage, "spearman", value, 9]
        for mix, stage, value in (("0", "raw", 40.5), ("1+12", "raw", ""), ("2", "post", 50.25))
        for task in ("stsb", "avg")
        for subset, aggregate in (("", "all"), ("", "mean"), ("A", ""))
    ]
    with (tmp_path / "layers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    job = dataclasses.replace(made.job(0, "analysis=layers"), folder=tmp_path)
    assert job.results is not None
    job.results["headline"] = {"task": "avg"}
    table = tables.analysis(job, 3, "layers")
    assert table.columns == ("layers", "stage", "stsb", "avg")
    assert table.numeric == {"stsb", "avg"}
    assert [cells(table, i)["layers"] for i in range(3)] == ["2", "0", "1+12"]
    assert cells(table, 0) == {"layers": "2", "stage": "whitened", "stsb": "50.25", "avg": "50.25"}
    assert cells(table, 2)["avg"] == "undefined"
    assert table.lines[0].command == "python evaluate.py 'pooling.layers=[2]'"
    assert (table.lines[0].config, table.total) == (3, 3)


def test_dev_scores_have_a_column_of_their_own(tmp_path: Path) -> None:
    columns = ["block", "head", "layers", "split", "task", "subset", "aggregate", "stage",
               "metric", "value", "n"]  # fmt: skip
    rows = [
        [b, 0, "[-1]", split, "stsb", "", "all", "raw", "spearman", value + b, 9]
        for b in (0, 1)
        for split, value in (("test", 60), ("dev", 70))
    ]
    with (tmp_path / "heads.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    job = dataclasses.replace(made.job(0, "analysis=heads"), folder=tmp_path)
    assert job.results is not None
    job.results["headline"] = {"task": "stsb", "split": "test"}
    table = tables.analysis(job, 0, "heads")
    assert table.columns == ("block", "head", "layers", "stage", "stsb", "stsb dev")
    assert [cell.value for cell in table.lines[0].cells[-2:]] == [61, 71]


@pytest.mark.parametrize(
    ("table", "row", "wanted"),
    [
        ("layers", {"layers": "1+12", "stage": "post"},
         "data=stsb pooling=ditto whitening.k=9 pooling.layers=[1,12]"),
        ("heads", {"block": 3, "head": 4, "layers": "[0,-1]", "stage": "raw"},
         "data=stsb pooling=ditto pooling.block=3 pooling.head=4 pooling.layers=[0,-1] "
         "whitening=off"),
        ("dims", {"k": 5, "stage": "post"}, "data=stsb pooling=ditto whitening.k=5"),
        ("dims", {"k": 5, "stage": "raw"}, "data=stsb pooling=ditto"),
        ("dims", {"k": 5, "stage": "rotated"},
         "analysis=all analysis.max_size=2 data=stsb pooling=ditto whitening.k=9"),
        ("table1", {"row": "avg_1_last", "pooling": "avg", "layers": "1+6", "stage": "raw"},
         "data=stsb whitening.k=9 pooling=avg pooling.layers=[1,6]"),
    ],
)  # fmt: skip
def test_commands_of_analyses(table: str, row: dict[str, Any], wanted: str) -> None:
    typed = ("analysis=all", "analysis.max_size=2", "data=stsb", "pooling=ditto", "whitening.k=9")
    found = shlex.split(commands.of_row(Job(Path("x"), typed, None), table, row))
    assert found == ["python", "evaluate.py", *wanted.split()]
    followed = Job(Path("x"), (*typed, "recipe=mine"), None)
    assert commands.of_row(followed, table, row) == commands.of_job(followed)


def test_commands_are_quoted_and_run_one_job() -> None:
    job = Job(Path("x"), ("data.path=my file.tsv", "data.name='$(rm)'"), None, swept=True)
    assert commands.of_job(job).startswith("python evaluate.py 'data.path=my file.tsv' ")
    assert shlex.split(commands.of_job(job))[2:] == [*job.overrides, "hydra.mode=RUN"]
    assert commands.of_job(Job(Path("x"), (), None)) == "python evaluate.py"


def test_the_program_is_the_one_that_was_typed(tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text("- model=bert\n")
    (tmp_path / ".hydra" / "hydra.yaml").write_text(
        "hydra: {job: {name: evaluate}, help: {app_name: whitepool evaluate}, "
        "sweeper: {params: {a: 1}}}\n"
    )
    job = read_job(tmp_path)
    assert (job.program, job.overrides, job.swept) == ("whitepool evaluate", ("model=bert",), True)
    assert (job.results, job.error) == (None, "ended without results")


def test_numbers_of_csv_files_are_numbers() -> None:
    found = [number(x) for x in ("3", "-2.5", "", "1+12", "[-1]", "avg")]
    assert found == [3, -2.5, "", "1+12", "[-1]", "avg"]


def test_misjudged_pairs_are_those_with_the_farthest_ranks(plm: Any) -> None:
    table = SentenceTable.build(tiny_suite.load(), plm("bert").tokenize)
    rng = np.random.default_rng(0)
    by_stage = {
        stage: [rng.uniform(-1, 1, len(s.gold)).round(1) for s in table.scored]
        for stage in ("raw", "post")
    }
    found = misjudged(table, by_stage, "whitened")
    assert len(found.lines) == 50
    assert found.total == 225
    gaps = []
    for place, s in enumerate(table.scored):
        ranks = [(stats.rankdata(x) - 1) / (len(x) - 1) for x in (by_stage["post"][place], s.gold)]
        gaps += list(abs(ranks[0] - ranks[1]))
    shown = []
    for line in found.lines:
        own, _, cosine = (
            float(cell.detail.removeprefix("rank ").removesuffix(" %")) for cell in line.cells[3:]
        )
        shown.append(abs(own - cosine) / 100)
    np.testing.assert_allclose(shown, sorted(gaps, reverse=True)[:50], atol=0.0101)
    assert found.lines[0].cells[1].text in table.texts
