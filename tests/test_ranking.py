"""Retrieval scores against a loop from their definitions, and trec_eval where it is there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool import ranking
from whitepool.data.pairs import Qrels
from whitepool.data.retrieval import _qrels
from whitepool.measures import QueryMean
from whitepool.ranking import METRICS, Ranking, first_of, query_scores

Judged = dict[str, dict[str, int]]


def case(seed: int, queries: int, documents: int, *, ties: bool) -> tuple[Any, list[str], Judged]:
    """Vectors of queries, then documents; ids of documents; grades."""
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(queries + documents, 4))
    if ties:
        vectors = np.round(vectors)
    ids = [f"d{i}" for i in draw.permutation(documents)]
    judged: Judged = {}
    for query in range(queries):
        some = draw.choice(documents, size=draw.integers(1, min(15, documents) + 1), replace=False)
        judged[f"q{query}"] = {ids[i]: int(draw.integers(1, 4)) for i in some}
    return vectors, ids, judged


def ranked(vectors: Any, ids: list[str], judged: Judged) -> Ranking:
    qrels = _qrels(ids, {q: [(d, float(g)) for d, g in own.items()] for q, own in judged.items()})
    n = len(judged)
    return Ranking(np.arange(n), np.arange(n, n + len(ids)), qrels)


def run(vectors: Any, ids: list[str], judged: Judged) -> dict[str, dict[str, float]]:
    """Cosines by query and document, the document of the query's own id left out."""
    found: dict[str, dict[str, float]] = {}
    for q, query in enumerate(judged):
        found[query] = {}
        for d, document in enumerate(ids):
            a, b = vectors[q], vectors[len(judged) + d]
            size = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
            if document != query:
                found[query][document] = round(float(a @ b) / size, 12) if size else 0.0
    return found


def slow(cosines: dict[str, float], grades: dict[str, int]) -> list[float]:
    order = sorted(cosines, reverse=True)  # of equal cosines the greater id first
    order.sort(key=lambda document: -cosines[document])
    dcg = sum(grades.get(d, 0) / math.log2(r + 2) for r, d in enumerate(order[:10]))
    best = sorted(grades.values(), reverse=True)[:10]
    mrr = 0.0
    for r, document in enumerate(order[:10]):
        if grades.get(document, 0) > 0:
            mrr = 1 / (r + 1)
            break
    recall = sum(d in grades for d in order[:100]) / len(grades)
    return [dcg / sum(g / math.log2(r + 2) for r, g in enumerate(best)), mrr, recall]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1, 5, 30, 130]), st.booleans())
def test_a_loop_from_the_definitions(seed: int, queries: int, documents: int, ties: bool) -> None:
    vectors, ids, judged = case(seed, queries, documents, ties=ties)
    found = query_scores(vectors, ranked(vectors, ids, judged))
    cosines = run(vectors, ids, judged)
    for q, query in enumerate(judged):
        np.testing.assert_allclose(found[:, q], slow(cosines[query], judged[query]), atol=1e-12)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, ids, judged = case(3, 7, 40, ties=True)
    whole = query_scores(vectors, ranked(vectors, ids, judged))
    monkeypatch.setattr(ranking, "MEMORY", 85)
    assert np.array_equal(query_scores(vectors, ranked(vectors, ids, judged)), whole)


def test_a_querys_own_document_is_left_out() -> None:
    vectors = np.array([[1.0, 0], [1, 0], [1, 1], [0, 1]])
    judged = {"a": {"b": 1}}
    found = query_scores(vectors, ranked(vectors, ["a", "b", "c"], judged))
    assert found[:, 0].tolist() == [1, 1, 1]
    other = query_scores(vectors, ranked(vectors, ["x", "b", "c"], judged))
    assert other[:, 0].tolist() == pytest.approx([1 / math.log2(3), 0.5, 1])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, -1.0]), min_size=1, max_size=30), st.integers(1, 9))
def test_the_first_of_many_values(values: list[float], depth: int) -> None:
    wanted = sorted(range(len(values)), key=lambda i: (-values[i], i))[:depth]
    assert first_of(np.array(values), depth).tolist() == wanted


def test_trec_eval() -> None:
    """By pytrec_eval, which computes in float32: the vectors here have no near ties."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    for ties in (False, True):
        vectors, ids, judged = case(5, 40, 150, ties=ties)
        names = {"ndcg@10": "ndcg_cut_10", "recall@100": "recall_100"}
        found = query_scores(vectors, ranked(vectors, ids, judged))
        evaluator = pytrec_eval.RelevanceEvaluator(judged, set(names.values()))
        wanted = evaluator.evaluate(run(vectors, ids, judged))
        for metric, theirs in names.items():
            own = found[METRICS.index(metric)]
            values = [wanted[query][theirs] for query in judged]
            np.testing.assert_allclose(own, values, atol=1e-6, err_msg=f"{metric}, ties {ties}")


def test_means_are_over_queries_and_stages_are_resampled_together() -> None:
    x = np.random.default_rng(0).uniform(size=(2, 3, 50))
    x[1] = x[0]
    values = QueryMean()(x, np.zeros(50), samples=30, seed=1)
    assert values.shape == (3, 2, 31)
    np.testing.assert_allclose(values[:, :, 0], x.mean(-1).T)
    assert np.array_equal(values[:, 0], values[:, 1])
    assert values[0, 0, 1:].std() > 0.01


def test_relevant() -> None:
    qrels: Qrels = _qrels(["b", "a"], {"x": [("a", 2.0)], "b": [("a", 1.0), ("b", 3.0)]})
    assert [a.tolist() for a in qrels.relevant(0)] == [[1], [2.0]]
    assert [a.tolist() for a in qrels.relevant(1)] == [[1, 0], [1.0, 3.0]]
    assert (qrels.same.tolist(), qrels.order.tolist()) == ([-1, 0], [1, 0])
