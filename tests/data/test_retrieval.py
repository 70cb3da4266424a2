"""Retrieval sets in BEIR's form, whole runs on them, and STS pairs as one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whitepool.data import load_retrieval, load_sts
from whitepool.data.corpus import of_pairs
from whitepool.errors import UserError

CORPUS = [
    {"_id": "d1", "title": "A dog", "text": "runs in the park"},
    {"_id": "d2", "title": "", "text": "the cat eats food"},
    {"_id": "d3", "text": "a man plays guitar"},
]
QUERIES = [
    {"_id": "q1", "text": "dog"},
    {"_id": "q2", "text": "music"},
    {"_id": "q3", "text": "of another split"},
    {"_id": "d2", "text": "cat food"},
]
QRELS = ["query-id\tcorpus-id\tscore", "q1\td1\t2", "q1\td2\t0", "d2\td3\t1", "q2\td2\t0"]


def write(folder: Path, corpus: Any = CORPUS, queries: Any = QUERIES, qrels: Any = QRELS) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, records in (("corpus", corpus), ("queries", queries)):
        lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
        (folder / f"{name}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join([*qrels, ""]), encoding="utf-8")
    return folder


def test_a_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (task,) = load_retrieval(write(tmp_path / "mine"))
    assert (task.name, task.kind) == ("mine", "retrieval")
    (one,) = task.scored
    assert one.first == ("dog", "cat food")
    assert one.second == ("A dog runs in the park", "the cat eats food", "a man plays guitar")
    assert len(one) == 2
    qrels = one.qrels
    assert qrels is not None
    assert [x.tolist() for x in (qrels.query, qrels.document, qrels.grade)] == [
        [0, 1], [0, 2], [2.0, 1.0],
    ]  # fmt: skip
    assert qrels.same.tolist() == [-1, 1]
    assert "1 judged queries have no relevant document and are left out." in caplog.text
    texts = [t.text for source in of_pairs((task,)).sources for t in source.read()]
    assert texts == [*one.first, *one.second]


def test_gzipped_files_and_judgements_in_json(tmp_path: Path) -> None:
    plain = load_retrieval(write(tmp_path / "a"), name="x")[0].scored[0]
    folder = write(tmp_path / "b")
    for stem in ("corpus", "queries"):
        path = folder / f"{stem}.jsonl"
        (folder / f"{stem}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    keys = QRELS[0].split("\t")
    records = [dict(zip(keys, line.split("\t"), strict=True)) for line in QRELS[1:]]
    (folder / "qrels" / "test.tsv").unlink()
    lines = [json.dumps({**r, "score": int(r["score"])}) for r in records]
    (folder / "qrels" / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    other = load_retrieval(folder, name="x")[0].scored[0]
    assert (other.first, other.second) == (plain.first, plain.second)
    assert other.qrels is not None
    assert plain.qrels is not None
    assert np.array_equal(other.qrels.document, plain.qrels.document)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl, line 4: the id 'd1' comes twice"),
        ({"corpus": ["[]"]}, "corpus.jsonl, line 1: not a JSON object"),
        ({"corpus": ["{"]}, "corpus.jsonl, line 1: not valid JSON"),
        ({"queries": [{"_id": "q1"}]}, "queries.jsonl, line 1: no key text (keys found: _id)"),
        ({"queries": [{"_id": 1, "text": "x"}]}, "line 1: _id is 1, not a text"),
        ({"qrels": [QRELS[0], "q9\td1\t1"]}, "test.tsv, line 2: there is no query 'q9'"),
        ({"qrels": [QRELS[0], "q1\td9\t1"]}, "test.tsv, line 2: there is no document 'd9'"),
        ({"qrels": [QRELS[0], "q1\td1\tx"]}, "test.tsv, line 2: the score 'x' is not a number"),
        ({"qrels": [QRELS[0], "q1\td1\t0"]}, "test.tsv names no relevant document"),
        ({"qrels": ["q1\td1\t1"]}, "test.tsv, line 1: no column query-id"),
    ],
)
def test_malformed(tmp_path: Path, given: dict[str, Any], fault: str) -> None:
    folder = write(tmp_path / "mine", **given)
    with pytest.raises(UserError) as found:
        load_retrieval(folder)
    assert fault in str(found.value)


def test_arguments(tmp_path: Path) -> None:
    for given in ({}, {"path": "a", "dataset": "b/c"}):
        with pytest.raises(UserError, match=r"one of data\.path= and data\.dataset=: give one"):
            load_retrieval(**given)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"there is no corpus\.jsonl or corpus\.jsonl\.gz in"):
        load_retrieval(tmp_path)
    folder = write(tmp_path / "mine")
    with pytest.raises(UserError, match=r"there is no qrels/dev\.tsv or qrels/dev\.jsonl"):
        load_retrieval(folder, split="dev")


def test_a_data_set_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    folder, asked = write(tmp_path / "mine"), []

    def snapshot(repo: str, **options: Any) -> str:
        asked.append((repo, options))
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    (task,) = load_retrieval(dataset="org/scifact", revision="a" * 40)
    assert task.name == "scifact"
    assert task.scored[0].source == f"org/scifact@{'a' * 40}"
    assert asked[0][1]["revision"] == "a" * 40
    assert "qrels/test.*" in asked[0][1]["allow_patterns"]


def composed_run(folder: Path, checkpoint: Path, output: Path, *overrides: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir

    from whitepool.evaluation import evaluate

    chosen = ["model=local", f"model.path={checkpoint}", "logger=none", "trainer=cpu", "cache=off"]
    chosen += [f"output_dir={output}", "data=retrieval", f"data.path={folder}", *overrides]
    conf = Path(__file__).resolve().parents[2] / "conf"
    with initialize_config_dir(str(conf), version_base="1.3"):
        evaluate(compose("evaluate", overrides=chosen))
    results: dict[str, Any] = json.loads((output / "results.json").read_text())
    return results


def test_a_run(tmp_path: Path, checkpoint: Any) -> None:
    words = "a an the man woman dog cat plays runs eats music guitar food in on park".split()
    corpus = [
        {"_id": f"d{i}", "text": f"{a} {b}"}
        for i, (a, b) in enumerate(zip(words[:-3], words[3:], strict=True))
    ]
    queries = [{"_id": f"q{i}", "text": f"{w} park"} for i, w in enumerate(words[:9])]
    qrels = [QRELS[0], *(f"q{i}\td{i}\t1" for i in range(9))]
    folder = write(tmp_path / "mine", corpus, queries, qrels)
    results = composed_run(folder, checkpoint("bert"), tmp_path / "run", "bootstrap=20")
    assert results["headline"]["metric"] == "ndcg@10"
    found = {(r["stage"], r["metric"]): r for r in results["scores"] if r["aggregate"] == "all"}
    assert {stage for stage, _ in found} == {"raw", "post"}
    assert {metric for _, metric in found} == {"ndcg@10", "mrr@10", "recall@100"}
    assert {r["n"] for r in found.values()} == {9}
    assert found["raw", "recall@100"]["value"] == 100
    low, value, high = (found["raw", "ndcg@10"][key] for key in ("low", "value", "high"))
    assert 0 <= low <= value <= high <= 100
    assert results["fit"]["sets"]["mine"]["vectors"] == len(corpus) + len(queries)
    with pytest.raises(UserError, match="mine is a task of another kind: choose analysis=none"):
        composed_run(folder, checkpoint("bert"), tmp_path / "b", "analysis=layers")


def of_sts(pairs: Any, folder: Path, least: float = 4.5) -> Path:
    """First sentences as queries, second ones as documents; pairs of score 4.5 and up relevant."""
    documents = {t: f"d{i}" for i, t in enumerate(dict.fromkeys(pairs.second))}
    relevant: dict[str, dict[str, int]] = {}
    for a, b, gold in zip(pairs.first, pairs.second, pairs.gold, strict=True):
        if gold >= least:
            relevant.setdefault(a, {})[documents[b]] = 1
    queries = {t: f"q{i}" for i, t in enumerate(relevant)}

    def records(texts: dict[str, str]) -> Iterator[dict[str, str]]:
        return ({"_id": name, "text": t} for t, name in texts.items())

    judged: Sequence[str] = [
        f"{queries[t]}\t{document}\t1" for t, own in relevant.items() for document in own
    ]
    return write(folder, records(documents), records(queries), [QRELS[0], *judged])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["stsb", "sickr"])
def test_real_pairs_of_sts(tmp_path: Path, task: str, request: pytest.FixtureRequest) -> None:
    """all-MiniLM finds them: a model of meaning must, whatever whitening does."""
    from whitepool.assets import fetch

    root = None if task == "stsb" else request.getfixturevalue("shared") / "senteval"
    (read,) = load_sts([task], root=root)
    folder = of_sts(read.scored[0], tmp_path / task)
    results = composed_run(folder, fetch("all_minilm"), tmp_path / "run", "bootstrap=100")
    found = {
        (r["stage"], r["metric"]): r["value"] for r in results["scores"] if r["aggregate"] == "all"
    }
    assert found["raw", "recall@100"] > 95
    assert found["raw", "ndcg@10"] > {"stsb": 90, "sickr": 70}[task]
    assert found["post", "ndcg@10"] < found["raw", "ndcg@10"]
