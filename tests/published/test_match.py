"""A published value stands beside a score of the same recipe on the same data, and no other."""

from __future__ import annotations

from typing import Any

import full_size
import numpy as np
import pytest

from whitepool.analysis.table1 import WHITENED, Table1
from whitepool.pooling import FirstToken, LastToken, LinearPooling, MaxPooling, ModelPooler, Uniform
from whitepool.pooling.base import Pooling
from whitepool.protocol import EvalProtocol
from whitepool.published.compare import cells, compared, difference, record
from whitepool.published.match import Match, find, ran
from whitepool.scores import Row
from whitepool.whitening import Whitening

WB = EvalProtocol("whiteningbert", "mean", "task")
SU = EvalProtocol("su", "wmean", "task", all_splits=True, max_length=64)
FIRST_LAST = LinearPooling(Uniform(), [1, -1])


@pytest.fixture(scope="module")
def own_files() -> Any:
    return full_size.table(full_size.seven("whiteningbert"))


@pytest.fixture(scope="module")
def senteval() -> Any:
    return full_size.table(full_size.seven(), other_splits=True)


def matches(
    table: Any,
    pooling: Pooling = FIRST_LAST,
    post: Any = None,
    protocol: EvalProtocol = WB,
    model: str = "bert",
    length: int | None = None,
    corpus: str = "",
) -> dict[tuple[str, str, str, str], float]:
    lengths = dict.fromkeys((task.name for task in table.tasks), length)
    run = ran(model, 12, pooling, post, protocol, table, lengths=lengths, corpus=corpus)
    return {(m.table, m.task, m.aggregate, m.stage): m.published for m in find(run)}


T1, T2 = "WhiteningBERT Table 1", "WhiteningBERT Table 2"


def test_the_papers_recipe_on_the_papers_files(own_files: Any) -> None:
    found = matches(own_files, post=Whitening())
    assert found[T1, "stsb", "mean", "raw"] == 59.05
    assert found[T1, "stsb", "mean", "post"] == 68.68
    assert found[T2, "stsb", "mean", "post"] == 68.72
    assert found[T2, "avg", "mean", "post"] == 67.77
    assert found[T1, "stsb", "all", "raw"] == 59.05  # one file has one score
    assert (T1, "sts12", "all", "raw") not in found
    assert {table for table, *_ in found} == {T1, T2}
    raw_alone = matches(own_files)
    assert raw_alone == {key: value for key, value in found.items() if key[3] == "raw"}


def test_layers_count_from_either_end_in_any_order(own_files: Any) -> None:
    wanted = matches(own_files)
    for layers in ([1, 12], [12, 1], [-1, -12]):
        assert matches(own_files, LinearPooling(Uniform(), layers)) == wanted


@pytest.mark.parametrize(
    "other",
    [
        {"model": "electra"},
        {"pooling": LinearPooling(LastToken(), [1, -1])},
        {"pooling": LinearPooling(Uniform(), [2, -1])},
        {"pooling": MaxPooling([1, -1])},
        {"length": 64},
    ],
)
def test_another_recipe_has_no_published_value(own_files: Any, other: dict[str, Any]) -> None:
    assert matches(own_files, **{"post": Whitening(), **other}) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"post": Whitening(256)},
        {"post": Whitening(), "protocol": EvalProtocol("p", "mean", "subset")},
        {"post": Whitening(), "protocol": EvalProtocol("p", "mean", "suite")},
        {"post": Whitening(), "corpus": "nli"},
    ],
)
def test_another_map_leaves_the_raw_values(own_files: Any, other: dict[str, Any]) -> None:
    assert matches(own_files, **other) == matches(own_files)


def test_the_form_of_the_texts_counts(own_files: Any, senteval: Any) -> None:
    original = full_size.table(full_size.seven())
    assert {t for t, *_ in matches(original, post=Whitening())} == set()
    assert matches(own_files, protocol=SU, length=64) == {}
    assert (
        matches(senteval, protocol=SU, length=64)["SimCSE Table B.3", "stsb", "wmean", "raw"]
        == 59.04
    )


def test_the_fit_set_is_counted(senteval: Any) -> None:
    key = ("BERT-whitening-pytorch", "stsb", "wmean", "post")
    given: dict[str, Any] = {"post": Whitening(256), "protocol": SU, "length": 64}
    assert matches(senteval, **given)[key] == 71.43
    test_alone = full_size.table(full_size.seven())
    found = matches(test_alone, **given)
    assert key not in found
    assert found[key[0], "sts12", "wmean", "post"] == 63.9  # a year has no other split
    nli = matches(senteval, post=Whitening(256), protocol=SU, length=64, corpus="nli")
    assert nli[key] == 67.57


def test_the_mean_over_tasks_needs_them_all_and_no_other(own_files: Any) -> None:
    tasks = full_size.seven("whiteningbert")
    six = matches(full_size.table(full_size.without(tasks, "sts13")))
    assert {task for _, task, *_ in six} == {"sts12", "sts14", "sts15", "sts16", "stsb", "sickr"}
    eight = (*tasks, full_size.Task("mine", (full_size.pairs("mine", "", "test", 5),)))
    found = matches(full_size.table(eight))
    assert (T1, "avg", "mean", "raw") not in found
    assert (T1, "sts13", "mean", "raw") in found
    part = matches(full_size.table(full_size.missing(tasks, "sts12")))
    assert {"sts12", "avg"}.isdisjoint({task for _, task, *_ in part})


def test_heads_without_layers(senteval: Any) -> None:
    found = matches(senteval, ModelPooler(), model="simcse_sup")
    assert found["SimCSE Table 5", "stsb", "all", "raw"] == 84.26
    assert found["SimCSE Table B.3", "stsb", "wmean", "raw"] == 84.25
    assert matches(senteval, ModelPooler("none"), model="simcse_sup") == {}
    unsup = matches(senteval, LinearPooling(FirstToken(), [-1]), model="simcse_unsup")
    assert unsup["SimCSE Table 5", "avg", "all", "raw"] == 76.25


def test_table1_takes_its_values_from_the_same_place(own_files: Any) -> None:
    class Plm:
        name, depth, limit, max_length = "bert", 12, 512, 512

    plm: Any = Plm()
    found = Table1(Whitening())._published(plm, WB, own_files)
    assert found["cls_last", "sts12", "mean"] == 32.5
    assert found["avg_1", "avg", "mean"] == 62.23
    assert found["avg_last", "stsb", "mean"] == 47.29
    assert found[WHITENED, "sts12", "mean"] == 61.94
    assert {row for row, *_ in found} == {
        "cls_last", "avg_last", "avg_1", "avg_1_last", WHITENED,
    }  # fmt: skip
    assert (WHITENED, "stsb", "mean") not in Table1(Whitening(256))._published(plm, WB, own_files)


def test_comparison() -> None:
    def row(task: str, value: float, subset: str = "", aggregate: str = "mean") -> Row:
        return Row(task, subset, aggregate, "raw", "spearman", value, np.nan, np.nan, 5)

    def match(task: str, value: float, table: str) -> Match:
        return Match(task, "mean", "raw", "spearman", value, table, "row", "source", "")

    rows = [row("a", 50.004), row("a", 1.0, "sub", ""), row("b", float("nan")), row("c", 7.0)]
    pairs = compared(rows, [match("b", 3.0, "t"), match("a", 50.1, "t"), match("a", 50.2, "u")])
    assert [(r.task, m.published) for r, m in pairs] == [("b", 3.0), ("a", 50.1), ("a", 50.2)]
    assert [difference(*pair) for pair in pairs] == [None, -0.1, -0.2]
    assert cells(rows, pairs) == [
        {"published": 50.1, "difference": -0.1},
        {"published": None, "difference": None},
        {"published": 3.0, "difference": None},
        {"published": None, "difference": None},
    ]
    assert record(*pairs[1]) == {
        "task": "a", "aggregate": "mean", "stage": "raw", "metric": "spearman", "published": 50.1,
        "table": "t", "row": "row", "source": "source", "note": "", "measured": 50.004,
        "difference": -0.1,
    }  # fmt: skip
