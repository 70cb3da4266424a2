"""Labelled retrieval: the documents ranked for each query, and how good the ranking is.

    nDCG@10 = sum_r g(r) / log2(r + 1) over the first 10 ranks, divided by that of the best order
    MRR@10 = 1 / rank of the first relevant document, 0 beyond rank 10
    recall@100 = share of the relevant documents among the first 100

g is the grade of a document, 0 where it was not judged; relevant is one with a grade above 0. A
document that has the query's own id is left out of its ranking, as BEIR does, and of equal cosines
the greater id comes first, as in trec_eval. Sources: Thakur et al. 2021, "BEIR"; trec_eval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whitepool.data.pairs import Qrels
from whitepool.similarity import DECIMALS, unit

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

METRICS = ("ndcg@10", "mrr@10", "recall@100")
DEPTH = 100
MEMORY = 2**23  # cosines held at a time


@dataclass(frozen=True, eq=False)
class Ranking:
    """Queries and documents as rows of a table, with what is relevant.

    Attributes:
        queries: (query,), rows.
        documents: (document,), rows.
        qrels: which documents are relevant.
    """

    queries: Rows
    documents: Rows
    qrels: Qrels


def query_scores(vectors: NDArray[np.floating], ranking: Ranking) -> Floats:
    """nDCG@10, MRR@10 and recall@100 of each query, (metric, query).

    Args:
        vectors: (row, dim), those of the ranking's rows. The cosine with a zero vector is 0.
        ranking: rows of ``vectors``.
    """
    x = unit(vectors)
    qrels = ranking.qrels
    # With the greatest id first, a stable sort leaves equal cosines in trec_eval's order.
    by_id = np.argsort(-qrels.order)
    place = np.empty_like(by_id)
    place[by_id] = np.arange(len(by_id))
    documents = x[ranking.documents[by_id]]
    result = np.zeros((len(METRICS), len(ranking.queries)))
    step = max(1, MEMORY // max(1, len(documents)))
    for start in range(0, len(ranking.queries), step):
        rows = ranking.queries[start : start + step]
        cosines = np.round(x[rows] @ documents.T, DECIMALS) + 0.0
        for offset, own in enumerate(cosines):
            query = start + offset
            if (same := qrels.same[query]) >= 0:
                own[place[same]] = -np.inf
            found = by_id[first_of(own, DEPTH)]
            if same >= 0:
                found = found[found != same]
            result[:, query] = _scores(found, *qrels.relevant(query))
    return result


def first_of(values: Floats, depth: int) -> Rows:
    """Places of the ``depth`` greatest values, greatest first, the first of equal ones first."""
    if len(values) > depth:
        least = np.partition(values, len(values) - depth)[len(values) - depth]
        some = np.flatnonzero(values >= least)
    else:
        some = np.arange(len(values))
    return some[np.argsort(-values[some], kind="stable")][:depth]


def _scores(found: Rows, documents: Rows, grades: Floats) -> list[float]:
    """The three scores of one query, from its ranking and its relevant documents."""
    grade_of = dict(zip(documents.tolist(), grades.tolist(), strict=True))
    gains = np.array([grade_of.get(document, 0.0) for document in found.tolist()])
    discount = np.log2(np.arange(2, 12))
    ideal = np.sort(grades)[::-1][:10]
    best = float((ideal / discount[: len(ideal)]).sum())
    top = gains[:10]
    hits = np.flatnonzero(top > 0)
    return [
        float((top / discount[: len(top)]).sum()) / best,
        1.0 / (hits[0] + 1) if len(hits) else 0.0,
        float((gains > 0).sum()) / len(documents),
    ]
