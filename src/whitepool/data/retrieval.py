"""Labelled retrieval sets in BEIR's form: a folder, or a data set of the hub that holds the same.

``corpus.jsonl`` has one document a line (``_id``, ``title``, ``text``), ``queries.jsonl`` one query
(``_id``, ``text``), both also gzipped; ``qrels/test.tsv`` has a header row and tab-separated
``query-id``, ``corpus-id`` and ``score``; ``qrels/test.jsonl``, with these keys, will do too. A
document's text is its title and text with a space between. Source: github.com/beir-cellar/beir.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whitepool.data import hub, pairs_file, text
from whitepool.data.pairs import PairSet, Qrels, Task
from whitepool.errors import UserError

log = logging.getLogger(__name__)

JUDGED = ("query-id", "corpus-id", "score")


def load_retrieval(
    path: str | Path | None = None,
    split: str = "test",
    name: str | None = None,
    dataset: str | None = None,
    revision: str | None = None,
) -> tuple[Task, ...]:
    """Read a retrieval set.

    Args:
        path: a folder.
        split: name of the file of judgements, without its extension.
        name: how results call it; the folder's or data set's by default.
        dataset: id of a data set of the hub with these files, in place of ``path``.
        revision: its commit; None for the newest.

    Returns:
        One task of kind ``retrieval``, of the queries that have a relevant document.

    Raises:
        UserError: neither or both of path and dataset, a file is missing or malformed, judgements
            of a query or document that is not there, or no query at all.
    """
    if (path is None) == (dataset is None):
        raise UserError("data=retrieval reads one of data.path= and data.dataset=: give one.")
    if dataset is not None:
        folder, source = _snapshot(dataset, revision, split), f"{dataset}@{revision or 'newest'}"
    else:
        assert path is not None
        folder = Path(path).expanduser()
        source = str(folder)
    corpus, raw_corpus = _texts(folder, "corpus")
    queries, raw_queries = _texts(folder, "queries")
    judged, raw_judged, file = _judgements(folder, split)
    graded: dict[str, dict[str, float]] = {}
    for query, document, grade, where in judged:
        for kind, known, key in (("query", queries, query), ("document", corpus, document)):
            if key not in known:
                raise UserError(f"{where}: there is no {kind} {key!r}; {text.FETCH_AGAIN}.")
        before = graded.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            raise UserError(
                f"{where}: document {document!r} has the grade {grade:g} for query {query!r}, and "
                f"{before:g} above; {text.FETCH_AGAIN}."
            )
    if repeated := len(judged) - sum(map(len, graded.values())):
        log.warning("%s has %d judgements twice or more: each counts once.", file, repeated)
    positive = {
        query: [(document, grade) for document, grade in some.items() if grade > 0]
        for query, some in graded.items()
    }
    wanted = {query: some for query, some in positive.items() if some}
    if not wanted:
        raise UserError(f"{file} names no relevant document; {text.FETCH_AGAIN}.")
    if without := len(graded) - len(wanted):
        log.warning("%d judged queries have no relevant document and are left out.", without)
    task = name or (dataset.rpartition("/")[2] if dataset else folder.name)
    one = PairSet(
        task=task,
        subset="",
        split=split,
        first=tuple(queries[query] for query in wanted),
        second=tuple(corpus.values()),
        gold=np.zeros(len(wanted)),
        source=source,
        sha256=text.checksum(raw_corpus, raw_queries, raw_judged),
        qrels=_qrels(list(corpus), wanted),
    )
    return (Task(task, (one,), kind="retrieval"),)


def _qrels(documents: list[str], wanted: dict[str, list[tuple[str, float]]]) -> Qrels:
    place = {document: i for i, document in enumerate(documents)}
    order = np.empty(len(documents), dtype=np.int64)
    order[sorted(range(len(documents)), key=documents.__getitem__)] = np.arange(len(documents))
    flat = [
        (query, place[document], grade)
        for query, some in enumerate(wanted.values())
        for document, grade in some
    ]
    return Qrels(
        query=np.array([query for query, *_ in flat]),
        document=np.array([document for _, document, _ in flat]),
        grade=np.array([grade for *_, grade in flat]),
        same=np.array([place.get(query, -1) for query in wanted]),
        order=order,
    )


def _find(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        f"there is no {' or '.join(names)} in {folder}; give a folder in BEIR's form with "
        "data.path=."
    )


def _content(path: Path) -> bytes:
    raw = text.read_bytes(path)
    return hub.gunzip(raw, path) if path.suffix == ".gz" else raw


def _records(raw: bytes, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for line, content in enumerate(text.row_lines(raw, path), start=1):
        where = f"{path}, line {line}"
        yield where, text.json_object(content, where)


def _texts(folder: Path, stem: str) -> tuple[dict[str, str], bytes]:
    """Texts by id, and the file's content."""
    path = _find(folder, f"{stem}.jsonl", f"{stem}.jsonl.gz")
    raw = _content(path)
    texts: dict[str, str] = {}
    for where, record in _records(raw, path):
        name = _string(record, "_id", where)
        if name in texts:
            raise UserError(f"{where}: the id {name!r} comes twice; {text.FETCH_AGAIN}.")
        title = _string(record, "title", where) if record.get("title") else ""
        texts[name] = f"{title} {_string(record, 'text', where)}".strip()
    return texts, raw


def _string(record: dict[str, Any], key: str, where: str) -> str:
    if key not in record:
        found = ", ".join(record) or "none"
        raise UserError(f"{where}: no key {key} (keys found: {found}); {text.FETCH_AGAIN}.")
    return pairs_file.sentence_of(record[key], key, where)


def _judgements(folder: Path, split: str) -> tuple[list[tuple[str, str, float, str]], bytes, Path]:
    """Query, document, grade and place in the file of each judgement."""
    path = _find(folder, f"qrels/{split}.tsv", f"qrels/{split}.jsonl", f"qrels/{split}.jsonl.gz")
    raw = _content(path)
    if path.suffix == ".tsv":
        rows = [
            (
                query,
                document,
                text.parse_score(grade, f"{path}, line {line}"),
                f"{path}, line {line}",
            )
            for line, (query, document, grade) in pairs_file.tsv_cells(raw, path, JUDGED)
        ]
    else:
        rows = [
            (
                _string(record, "query-id", where),
                _string(record, "corpus-id", where),
                text.parse_score(record.get("score"), where),
                where,
            )
            for where, record in _records(raw, path)
        ]
    return rows, raw, path


def _snapshot(dataset: str, revision: str | None, split: str) -> Path:
    if revision is None:
        log.warning("%s is unpinned: it may be another tomorrow; give data.revision=.", dataset)
    patterns = ["corpus.jsonl*", "queries.jsonl*", f"qrels/{split}.*"]
    return hub.snapshot(dataset, revision, patterns)
