"""Vectors in a search index: what the first k directions of whitening cost and save.

Documents are the distinct sentences of the data, and, up to the number asked for, two of them drawn
at random as one text: a sentence with a number at its end would be its own nearest neighbour.
Queries are sentences of pairs that people scored 4 or more of 5; they are in no document, and their
partner is one. Index: HNSW (Malkov and Yashunin 2018) as usearch has it, with its own settings.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import memory
from whitepool.data.pairs import Task
from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.whitening import Whitening

Floats = NDArray[np.float32]
Found = NDArray[np.int64]  # (query, TOP)
TOP = 10
SOME = 100  # queries that exact search is timed with
SIMILAR = 4.0  # gold score of a query and its partner, at least


@dataclass(frozen=True)
class Collection:
    """Texts to search in and for.

    Attributes:
        documents: all distinct.
        queries: none of them in a document.
        partners: number of each query's paraphrase among the documents.
    """

    documents: list[str]
    queries: list[str]
    partners: list[int]


@dataclass(frozen=True)
class Result:
    """What was measured of one set of vectors.

    Attributes:
        vectors: which.
        dim: of a vector.
        vector_bytes: of a vector, as float32.
        index_bytes: of the index on disk, by vector.
        build: seconds to build the index.
        exact: queries per second by a product with all vectors, one query at a time.
        index: queries per second by the index, one at a time.
        recall: share of the exact ten nearest that the index finds.
        same: share of the exact ten nearest in all directions that the index finds.
        partner: share of queries whose partner the index has among its ten.
        partner_exact: the same by exact search.
    """

    vectors: str
    dim: int
    vector_bytes: int
    index_bytes: float
    build: float
    exact: float
    index: float
    recall: float
    same: float
    partner: float
    partner_exact: float


def collect(
    tasks: Sequence[Task], documents: int, queries: int, least: float = SIMILAR
) -> Collection:
    """Draw queries and documents at random, always the same.

    Args:
        tasks: the pairs.
        documents: how many.
        queries: how many.
        least: gold score of a query and its partner.

    Raises:
        UserError: too few similar pairs for so many queries, or fewer documents than sentences.
    """
    draw = random.Random(0)
    pairs = [
        (a, b)
        for task in tasks
        for s in task.scored
        for a, b, gold in zip(s.first, s.second, s.gold.tolist(), strict=True)
        if gold >= least and a.strip() and b.strip() and a != b
    ]
    draw.shuffle(pairs)
    partner_of: dict[str, str] = {}
    partners: set[str] = set()
    for a, b in pairs:
        if len(partner_of) < queries and not {a, b} & (partner_of.keys() | partners):
            partner_of[a] = b
            partners.add(b)
    if len(partner_of) < queries:
        raise UserError(
            f"--queries is {queries}: give at most {len(partner_of)}, what the data have."
        )
    sets = [s for task in tasks for s in (*task.scored, *task.other_splits)]
    texts = dict.fromkeys(t for s in sets for t in s.first + s.second if t.strip())
    singles = [text for text in texts if text not in partner_of]
    if documents < len(singles):
        raise UserError(f"--documents is {documents}: give at least {len(singles)}.")
    found = dict.fromkeys(singles)
    while len(found) < documents:
        found[" ".join(draw.sample(singles, 2))] = None
    number = {text: i for i, text in enumerate(found)}
    return Collection(list(found), list(partner_of), [number[text] for text in partner_of.values()])


def whitened(documents: Floats, queries: Floats) -> tuple[Floats, Floats]:
    """Both through the whitening that is fitted on the documents."""
    moments = Moments(documents.shape[1])
    for rows in np.array_split(np.arange(len(documents)), max(1, len(documents) // 8192)):
        moments.update(torch.from_numpy(documents[rows]))
    affine = Whitening().fit(moments)
    first, second = (affine(torch.from_numpy(x).double()).float() for x in (documents, queries))
    return first.numpy(), second.numpy()


def unit(vectors: Floats) -> Floats:
    """Vectors of length 1."""
    result: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(result, dtype=np.float32)


def exact_search(documents: Floats, query: Floats) -> Found:
    """The nearest documents by cosine, nearest first, (TOP,)."""
    found: Found = nearest(documents @ query[:, None])[0]
    return found


def nearest(cosines: Floats) -> Found:
    """Numbers of the largest cosines, largest first: (document, query) to (query, TOP)."""
    some = np.argpartition(-cosines, TOP, axis=0)[:TOP]
    order = np.argsort(-np.take_along_axis(cosines, some, axis=0), axis=0, kind="stable")
    found: Found = np.take_along_axis(some, order, axis=0).T
    return found


def search(
    name: str,
    documents: Floats,
    queries: Floats,
    partners: Sequence[int],
    work: Path,
    *,
    reference: Found | None = None,
    rounds: int = 3,
) -> tuple[Result, Found]:
    """Build an index, search in it and exactly.

    Args:
        name: of the vectors.
        documents: of length 1, (document, dim).
        queries: of length 1, (query, dim).
        partners: number of each query's paraphrase.
        work: folder for the index.
        reference: the exact ten nearest in all directions; None for those found here.
        rounds: how often all queries are timed.

    Returns:
        What was measured, and the exact ten nearest here.

    Raises:
        UserError: usearch is not there.
    """
    try:
        from usearch.index import Index
    except ImportError as error:
        raise UserError(
            f'search needs {error.name}: pip install -e ".[search]" -c constraints.txt.'
        ) from error
    index = Index(ndim=documents.shape[1], metric="cos", dtype="f32")
    started = time.perf_counter()
    index.add(np.arange(len(documents)), documents)
    build = time.perf_counter() - started
    file = work / f"{name}.usearch"
    index.save(file)

    def by_index(query: Floats) -> Found:
        keys: Found = index.search(query, TOP).keys.astype(np.int64)
        return keys

    exact = np.concatenate(
        [
            nearest(documents @ some.T)
            for some in np.array_split(queries, max(1, len(queries) // 50))
        ]
    )
    _, exact_speed = _timed(partial(exact_search, documents), queries[:SOME], rounds)
    near, speed = _timed(by_index, queries, rounds)
    of_partners = np.array(partners)[:, None]
    result = Result(
        vectors=name,
        dim=documents.shape[1],
        vector_bytes=documents.itemsize * documents.shape[1],
        index_bytes=file.stat().st_size / len(documents),
        build=build,
        exact=exact_speed,
        index=speed,
        recall=overlap(near, exact),
        same=overlap(near, exact if reference is None else reference),
        partner=float((near == of_partners).any(1).mean()),
        partner_exact=float((exact == of_partners).any(1).mean()),
    )
    return result, exact


def _timed(find: Callable[[Floats], Found], queries: Floats, rounds: int) -> tuple[Found, float]:
    """What is found, and queries per second in the median round."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        found = [find(query) for query in queries]
        seconds.append(time.perf_counter() - started)
    return np.stack(found), len(queries) / statistics.median(seconds)


def overlap(found: Found, wanted: Found) -> float:
    """Mean share of each row's wanted documents that are found."""
    both = (found[:, :, None] == wanted[:, None, :]).any(1)  # (query, TOP)
    return float(both.mean())


def encoded(
    folder: Path,
    texts: Sequence[str],
    name: str,
    work: Path,
    *,
    layers: Sequence[int],
    threads: int,
) -> Floats:
    """Vectors by `whitepool encode`, which goes on where an earlier run in ``work`` was broken off.

    Args:
        folder: the model.
        texts: none with a line end in it.
        name: of the files in ``work``.
        work: what is there of the same texts and model is used.
        layers: of the mean.
        threads: of the processor.
    """
    (work / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    model = ["model=local", f"model.path={folder}", "trainer=cpu", "hydra.run.dir=run"]
    head = f"pooling.layers=[{','.join(map(str, layers))}]"
    into = [f"input={name}.txt", f"output={name}", "format=npy", "shard_rows=8192"]
    memory.run(["encode", *model, head, *into], work, threads)
    shards = sorted((work / name).glob("*.npy"))
    vectors: Floats = np.concatenate([np.load(x, allow_pickle=False) for x in shards])
    return vectors


def measure(
    folder: Path,
    collection: Collection,
    sizes: Sequence[int],
    work: Path,
    *,
    layers: Sequence[int],
    threads: int,
    rounds: int,
) -> list[Result]:
    """Raw vectors, whitened ones in all directions, and their first ``sizes`` directions.

    Raises:
        UserError: usearch is not there, or a size that is over the rank.
    """
    work.mkdir(parents=True, exist_ok=True)
    raw, asked = (
        encoded(folder, texts, name, work, layers=layers, threads=threads)
        for name, texts in (
            ("documents", collection.documents),
            ("queries", collection.queries),
        )
    )
    documents, queries = whitened(raw, asked)
    rank = documents.shape[1]
    if wrong := [size for size in sizes if size > rank]:
        raise UserError(f"--k has {wrong[0]}: give 1 to {rank}, the directions with variance.")
    options: dict[str, Any] = {"rounds": rounds}
    first, _ = search("raw", unit(raw), unit(asked), collection.partners, work, **options)
    results = [first]
    in_all: Found | None = None
    for k in sorted({rank, *sizes}, reverse=True):
        result, exact = search(
            f"whitened, k={k}",
            unit(documents[:, :k]),
            unit(queries[:, :k]),
            collection.partners,
            work,
            reference=in_all,
            **options,
        )
        in_all = exact if in_all is None else in_all
        results.append(result)
    return results


def rows(results: Sequence[Result]) -> list[dict[str, str]]:
    """The table that is printed."""
    return [
        {
            "vectors": r.vectors,
            "bytes": f"{r.vector_bytes:,}",
            "bytes in the index": f"{r.index_bytes:,.0f}",
            "queries/s exact": f"{r.exact:,.0f}",
            "queries/s index": f"{r.index:,.0f}",
            "recall@10": f"{r.recall:.3f}",
            "of all directions' 10": "" if r.vectors == "raw" else f"{r.same:.3f}",
            "partner in 10": f"{r.partner:.3f}",
            "partner in exact 10": f"{r.partner_exact:.3f}",
            "build s": f"{r.build:.1f}",
        }
        for r in results
    ]
