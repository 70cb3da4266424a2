"""Tables, protocols and aggregates on hand-made sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from whitepool.data import PairSet, Task
from whitepool.data.datamodule import plan_batches
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.protocol import EvalProtocol
from whitepool.scores import DIFFERENCE, headline, score


def pair_set(
    task: str, subset: str, pairs: list[tuple[str, str]], split: str = "test", flat: bool = False
) -> PairSet:
    first, second = zip(*pairs, strict=True)
    gold = np.arange(len(pairs), dtype=np.float64)
    return PairSet(task, subset, split, first, second, gold, "made", "0", flattened=flat)


def tokenize(texts: list[str]) -> tuple[list[tuple[int, ...]], list[bool]]:
    """Letters as tokens, lower case, so that different texts can have equal ids."""
    return [tuple(map(ord, t.lower().strip())) for t in texts], [len(t) > 4 for t in texts]


A = pair_set("sts12", "A", [("a", "b"), ("A", "c"), ("  ", "long text")])
B = pair_set("sts12", "B", [("b", "d"), ("d", "d")])
DEV = pair_set("stsb", "", [("x", "y"), ("a", "y")], split="dev")
TEST = pair_set("stsb", "", [("a", "z"), ("z", "b")])
TASKS = (Task("sts12", (A, B)), Task("stsb", (TEST,), (DEV,)))


def build(other_splits: bool = False) -> SentenceTable:
    return SentenceTable.build(TASKS, tokenize, other_splits)  # type: ignore[arg-type]


def test_equal_token_ids_share_a_row() -> None:
    table = build()
    assert len(set(table.ids)) == len(table.ids)
    (a, _), (upper, _), (blank, _) = table.scored[0].pairs
    assert a == upper
    assert table.ids[blank] == ()
    assert (table.sentences, table.blank, table.truncated) == (14, 1, 1)


def test_fit_sets_count_repeats_and_leave_blanks_out() -> None:
    table = build(other_splits=True)
    row = {ids: i for i, ids in enumerate(table.ids)}
    task = table.fit_sets("task")
    assert list(task) == ["sts12", "stsb"]
    assert task["sts12"][row[(ord("d"),)]] == 3
    assert task["sts12"][row[(ord("a"),)]] == 2
    assert task["sts12"][row[()]] == 0
    assert task["stsb"][row[(ord("y"),)]] == 2  # of the dev split
    assert build().fit_sets("task")["stsb"].sum() == 4
    assert table.fit_sets("subset")["sts12.B"].sum() == 4
    assert table.fit_sets("suite")["suite"].sum() == 9 + 8
    for scored in table.scored:
        for fit_on in ("subset", "task", "suite"):
            assert table.fit_set_of(scored, fit_on) in table.fit_sets(fit_on)


def test_batches_hold_every_row_once_within_budget() -> None:
    lengths = [3, 0, 9, 1, 4, 4, 20, 0, 2]
    batches = plan_batches(lengths, 12)
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == [i for i, n in enumerate(lengths) if n]
    for batch in batches:
        assert len(batch) * max(lengths[r] for r in batch) <= 12 or len(batch) == 1


@pytest.fixture
def scored() -> tuple[SentenceTable, dict[str, list[np.ndarray]]]:
    generator = np.random.default_rng(0)
    sets = []
    for task, subset, n in (("sts12", "A", 40), ("sts12", "B", 25), ("stsb", "", 30)):
        texts = [(f"{subset}{i}", f"{subset}{i}x") for i in range(n)]
        sets.append(pair_set(task, subset, texts))
    tasks = (Task("sts12", tuple(sets[:2])), Task("stsb", (sets[2],)))
    table = SentenceTable.build(tasks, tokenize)  # type: ignore[arg-type]
    stages = {
        stage: [np.arange(len(s)) + generator.normal(size=len(s)) * noise for s in sets]
        for stage, noise in (("raw", 20.0), ("post", 10.0))
    }
    return table, stages


def test_aggregates_equal_their_definitions(
    scored: tuple[SentenceTable, dict[str, list[np.ndarray]]],
) -> None:
    table, stages = scored
    scores = score(table.scored, stages, samples=100)
    for stage, xs in stages.items():
        a, b, c = (
            100 * stats.spearmanr(x, s.gold).statistic
            for x, s in zip(xs, table.scored, strict=True)
        )
        gold = np.concatenate([s.gold for s in table.scored[:2]])
        together = 100 * stats.spearmanr(np.concatenate(xs[:2]), gold).statistic
        wanted = {"all": together, "mean": (a + b) / 2, "wmean": (40 * a + 25 * b) / 65}
        for aggregate, value in wanted.items():
            assert scores.get("sts12", aggregate, stage=stage).value == pytest.approx(value)
            average = scores.get("avg", aggregate, stage=stage).value
            assert average == pytest.approx((value + c) / 2)
            assert scores.get("stsb", aggregate, stage=stage).value == pytest.approx(c)
        assert scores.get("sts12", subset="B", stage=stage).value == pytest.approx(b)
    difference = scores.get("sts12", "mean", stage=DIFFERENCE)
    raw, post = (scores.get("sts12", "mean", stage=s) for s in ("raw", "post"))
    assert difference.value == pytest.approx(post.value - raw.value)
    assert difference.low < difference.value < difference.high
    assert raw.low < raw.value < raw.high
    protocol = EvalProtocol("su", "wmean", "task")
    assert headline(scores, protocol) == scores.get("avg", "wmean", stage="post")


def test_constant_predictions_are_undefined_and_left_out(
    scored: tuple[SentenceTable, dict[str, list[np.ndarray]]],
) -> None:
    table, stages = scored
    xs = [np.full(40, 0.3), *stages["raw"][1:]]
    scores = score(table.scored, {"raw": xs}, samples=20)
    assert scores.undefined == ["sts12.A"]
    assert math.isnan(scores.get("sts12", subset="A").value)
    assert scores.get("sts12", "mean").value == scores.get("sts12", subset="B").value


def test_intervals_do_not_depend_on_the_other_tasks(
    scored: tuple[SentenceTable, dict[str, list[np.ndarray]]],
) -> None:
    table, stages = scored
    alone = score(table.scored[2:], {s: xs[2:] for s, xs in stages.items()}, samples=50)
    assert alone.get("stsb") == score(table.scored, stages, samples=50).get("stsb")


def test_flattened_years_have_only_the_concatenated_aggregate() -> None:
    flat = pair_set("sts12", "", [("a", "b"), ("c", "d"), ("e", "f")], flat=True)
    table = SentenceTable.build((Task("sts12", (flat,)),), tokenize)  # type: ignore[arg-type]
    scores = score(table.scored, {"raw": [np.array([1.0, 3.0, 2.0])]}, samples=5)
    assert scores.get("sts12", "all").value == pytest.approx(50.0)
    assert math.isnan(scores.get("sts12", "mean").value)
    EvalProtocol("mteb", "all", "task").check(table)
    with pytest.raises(UserError, match=r"takes the mean over sub-tasks.*sts12"):
        EvalProtocol("whiteningbert", "mean", "task").check(table)


def test_protocol_choices_are_listed() -> None:
    with pytest.raises(UserError, match="choose one of all, mean, wmean"):
        EvalProtocol("x", "median", "task")  # type: ignore[arg-type]
