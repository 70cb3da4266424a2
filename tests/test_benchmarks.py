"""The benchmarks' quick form runs, and what it reports is what was done; no thresholds."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from benchmarks import (
    grids,
    growth,
    machine,
    memory,
    models,
    ours,
    peers,
    profile,
    rounds,
    scale,
    search,
    sentences,
    suite,
)
from benchmarks.__main__ import main
from whitepool.errors import UserError
from whitepool.precision import fast_bfloat16_cpu
from whitepool.states import Needs


def quick(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    file = tmp_path / "found.json"
    assert main([*arguments, "--quick", "--json", str(file)]) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return sentences.unique([sentences.made_up()], None)


@pytest.fixture(scope="module")
def folder(texts: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.folder("tiny", tmp_path_factory.mktemp("models"), texts)


def test_encode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precisions = "32-true,bf16-true"
    found = quick(tmp_path, "encode", "--peers", "none", "--precision", precisions)
    assert [s["name"] for s in found["speeds"]] == ["whitepool 32-true", "whitepool bf16-true"]
    exact, rounded = found["speeds"]
    assert exact["agreement"] == pytest.approx(1, abs=1e-6)
    assert 0.99 < rounded["agreement"] < 1
    (change,) = found["score changes"]
    assert 0 < change["largest cosine change"] < 0.05
    assert found["sentences"] == 120
    assert found["machine"]["versions"]["torch"] == torch.__version__
    printed = capsys.readouterr().out
    assert "| whitepool 32-true " in printed
    assert ("no amx_bf16" in printed) == (not fast_bfloat16_cpu())


def test_suite_scores_are_those_of_sentences_encoded_one_by_one(
    tmp_path: Path, folder: Path
) -> None:
    found = quick(tmp_path, "suite", "--peers", "none", "--precision", "32-true")
    (score,) = found["scores"].values()
    plm = ours.load(folder, "32-true")

    def singly(some: Sequence[str], _: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.concatenate([ours.encode(plm, [text], ours.mean(-1)) for text in some])

    assert score == pytest.approx(suite.score_with(singly, 1, [sentences.made_up()]), abs=1e-3)


def test_analyses(tmp_path: Path) -> None:
    found = quick(tmp_path, "analyses")
    parts = {row["part"].split(",")[0] for row in found["results"]}
    assert parts == {"early stop", "layers", "heads", "subsets", "k"}


def test_profile(tmp_path: Path) -> None:
    found = quick(tmp_path, "profile")
    kinds = {"tokenising", "linear layers", "attention", "activation", "LayerNorm", "pooling"}
    assert kinds < set(found["seconds"])
    assert all(seconds > 0 for seconds in found["seconds"].values())


def test_exports(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    found = quick(tmp_path, "exports")
    assert len(found["seconds"]) == 11  # three recipes in three ways, their base in two
    assert all(taken[0] > 0 for taken in found["seconds"].values())


def test_what_runs_within_another_counts_for_itself() -> None:
    watch = profile.Watch()
    with watch.during("outer"), watch.during("inner"):
        time.sleep(0.05)
    assert watch.seconds["inner"] >= 0.05 > watch.seconds["outer"]


def test_scale(tmp_path: Path) -> None:
    found = quick(tmp_path, "scale")
    (size,) = found["sizes"]
    assert (size["sentences"], size["dim"]) == (120, 32)
    assert size["peak"] >= size["before"] > 50
    assert size["vectors"] == pytest.approx(120 * 32 * 4e-6)
    assert all(size[part] > 0 for part in ("table", "encode", "whiten", "score"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("encode", "--peers", "faiss"), "--peers has 'faiss': choose from sentence-transformers"),
        (("encode", "--precision", "16"), "--precision has '16': choose from 32-true, bf16-true"),
        (("encode", "--sentences", "121"), "--sentences is 121: give 1 to 120"),
        (("encode", "--model", "bart"), "--model is 'bart': choose one of all_minilm"),
        (("analyses", "--parts", "all"), "--parts has all: choose from early_stop"),
        (("scale", "--sizes", "many"), "--sizes has 'many': give whole numbers from 4"),
        (("memory", "--commands", "export"), "--commands has export: choose from encode, train."),
        (("scale", "--sizes", "3"), "--sizes has '3': give whole numbers from 4"),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--quick"]) == 1
    assert capsys.readouterr().err.startswith(f"Error: {message}")


def test_a_peer_given_by_name_must_be_there(folder: Path, tmp_path: Path) -> None:
    def absent(*_: Path) -> peers.Encode:
        raise ImportError(name="openvino")

    before = peers.PEERS["openvino"]
    peers.PEERS["openvino"] = absent
    try:
        with pytest.raises(UserError, match="peer openvino cannot run: openvino is not there"):
            peers.load(["openvino"], folder, tmp_path)
    finally:
        peers.PEERS["openvino"] = before


def test_repeated_sentences_are_distinct_and_as_long(texts: Sequence[str]) -> None:
    many = sentences.repeated(texts, 1000)
    assert len(set(many)) == 1000
    assert set(many[:120]) == set(texts)
    words = [len(text.split()) for text in many[120:240]]
    assert statistics.mean(words) == statistics.mean(len(text.split()) + 1 for text in texts)


def test_operations_count_every_product(folder: Path, texts: Sequence[str]) -> None:
    """Against torch's own counter, on a batch without padding."""
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoModel

    plm = ours.load(folder, "32-true")
    model = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
    counter = FlopCounterMode(display=False)
    with counter:
        model(torch.ones(3, 7, dtype=torch.long))
    assert machine.operations(plm, [7] * 3) == pytest.approx(1e-9 * counter.get_total_flops())


def test_peak_memory_is_this_process_s_own(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t  500000 kB\nVmRSS:\t  400000 kB\n")
    assert scale.peak_memory(status) == 512
    assert scale.peak_memory() > 50


def test_rounds_take_turns() -> None:
    order: list[str] = []
    runs = {name: (lambda name=name: order.append(name)) for name in "abc"}
    times = rounds.alternate(runs, 3)
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"
    assert [len(taken) for taken in times.values()] == [3, 3, 3]
    assert rounds.ratios([2, 9], [1, 3]) == [2, 3]


def test_a_pass_gives_every_row_once(folder: Path) -> None:
    subject = grids.Subject.load(folder, [sentences.made_up()], 64)
    rows = [row for rows, _ in subject.passes(Needs((1,))) for row in rows.tolist()]
    assert sorted(rows) == list(range(len(subject.table)))


@pytest.mark.slow  # a command in a process of its own
def test_memory(tmp_path: Path) -> None:
    found = quick(tmp_path, "memory", "--commands", "encode")
    (peak,) = found["peaks"]
    assert (peak["command"], peak["sentences"]) == ("encode", 120)
    assert 100 < peak["peak"] < 3000


def test_growth_is_over_the_smallest_size_of_the_same_command() -> None:
    peaks = [
        memory.Peak("encode", 10, 1.0, 400.0),
        memory.Peak("train", 10, 1.0, 500.0),
        memory.Peak("encode", 100, 2.0, 430.0),
        memory.Peak("train", 100, 2.0, 490.0),
    ]
    assert [row["growth MB"] for row in memory.rows(peaks)] == ["+0", "+0", "+30", "-10"]


@pytest.mark.slow  # two commands in processes of their own
def test_search(tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    found = quick(tmp_path, "search")
    names = [result["vectors"] for result in found["results"]]
    assert names == ["raw", f"whitened, k={found['results'][1]['dim']}", "whitened, k=8"]
    for result in found["results"]:
        assert result["vector_bytes"] == 4 * result["dim"] < result["index_bytes"]
        assert result["recall"] > 0.9  # 300 documents
    assert found["results"][1]["same"] == found["results"][1]["recall"]


def test_no_query_is_in_a_document_and_partners_are_of_pairs() -> None:
    task = sentences.made_up()
    collection = search.collect([task], 300, 20, least=0)
    assert len(set(collection.documents)) == 300
    assert not set(collection.queries) & set(collection.documents)
    singles = set(task.scored[0].first + task.scored[0].second) - set(collection.queries)
    assert set(collection.documents[: len(singles)]) == singles
    assert all(
        any(text == f"{a} {b}" for a in singles for b in singles)
        for text in collection.documents[len(singles) :: 40]
    )
    pairs = set(zip(task.scored[0].first, task.scored[0].second, strict=True))
    partners = [collection.documents[number] for number in collection.partners]
    assert set(zip(collection.queries, partners, strict=True)) < pairs
    with pytest.raises(UserError, match="--queries is 61: give at most 60"):
        search.collect([task], 300, 61, least=0)
    with pytest.raises(UserError, match="--documents is 99: give at least 100"):
        search.collect([task], 99, 20, least=0)


def test_nearest_and_their_overlap() -> None:
    draw = np.random.default_rng(0)
    documents = search.unit(draw.normal(size=(500, 7)).astype(np.float32))
    query = documents[3]
    nearest = search.exact_search(documents, query)
    assert nearest.tolist() == np.argsort(-(documents @ query))[:10].tolist()
    wanted = np.stack([nearest, nearest[::-1]])
    assert search.overlap(wanted, wanted[::-1]) == 1
    other = np.where(np.arange(10) < 3, wanted, -1)
    assert search.overlap(other, wanted) == pytest.approx(0.3)


def test_documents_are_white_and_queries_go_the_same_way() -> None:
    draw = np.random.default_rng(0)
    raw = (draw.normal(size=(9000, 5)) @ draw.normal(size=(5, 5)) + 3).astype(np.float32)
    documents, queries = search.whitened(raw, raw[:4])
    assert np.cov(documents, rowvar=False) == pytest.approx(np.eye(5), abs=1e-3)
    assert np.allclose(queries, documents[:4], atol=1e-5)


def test_methods_are_scored_as_the_api_encodes_them(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import whitepool

    page = tmp_path / "methods.md"
    found = quick(tmp_path, "methods", "--output", str(page))["tiny"]
    (task,) = sentences.load(None, quick=True)
    (scored,) = task.scored
    scores = {row["head"]: row for row in found["scores"]}
    for head, step in (("echo", "raw"), ("prompteol", "raw"), ("max", "center"), ("avg", "zca")):
        encoder = whitepool.load(
            folder, pooling=head, whitening=None if step == "raw" else step, device="cpu"
        )
        if step != "raw":
            encoder.fit([*scored.first, *scored.second])
        a, b = encoder.encode(scored.first), encoder.encode(scored.second)
        cosines = encoder.similarity_pairwise(a, b)
        wanted = 100 * stats.spearmanr(cosines.round(6), scored.gold).statistic
        assert float(scores[head][step].split()[0]) == pytest.approx(wanted, abs=0.2)
    assert scores["avg"]["zipfian"] == ""
    assert scores["static"]["zipfian"] == ""
    assert scores["static_words"]["zipfian"]
    (claim,) = (row for row in found["claims"] if row["recipes"] == "avg + pca against avg")
    values = [float(scores["avg"][step].split()[0]) for step in ("pca", "raw")]
    assert float(claim["difference"].split()[0]) == pytest.approx(values[0] - values[1], abs=0.11)
    assert f"| avg | {scores['avg']['raw']} |" in page.read_text(encoding="utf-8")
    assert "usif is left out: 0% of" in capsys.readouterr().out


def test_methods_in_pieces_are_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is kept is not measured again, and stands where it would have stood."""
    from benchmarks import method_tables

    pieces = ["methods", "--keep", str(tmp_path / "kept")]
    first = quick(tmp_path, *pieces, "--heads", "static_words,avg")["tiny"]["scores"]
    assert [row["head"] for row in first] == ["avg", "static_words"]
    both = quick(tmp_path, *pieces, "--heads", "last_token,avg")["tiny"]
    assert [row["head"] for row in both["scores"]] == ["last_token", "avg", "static_words"]
    assert both["scores"][1:] == first
    assert any("static_words + zipfian" in row["recipes"] for row in both["claims"])
    monkeypatch.setattr(method_tables, "predictions", None)  # nothing is left to measure
    assert quick(tmp_path, *pieces, "--heads", "avg")["tiny"] == both

    capsys.readouterr()
    assert main([*pieces, "--quick", "--heads", "cls"]) == 1
    assert "--heads has cls, which tiny has not: choose of last_token" in capsys.readouterr().err
    (kept,) = (tmp_path / "kept" / "tiny").glob("avg*")
    assert kept.name == "avg.safetensors"
    from safetensors.numpy import save_file

    save_file({"raw/0": np.zeros(3)}, kept)
    assert main([*pieces, "--quick", "--heads", "avg"]) == 1
    assert "has cosines of 3 pairs and the data have 60" in capsys.readouterr().err


def test_growth(tmp_path: Path) -> None:
    found = quick(tmp_path, "growth")["costs"]
    assert {cost["part"] for cost in found} == set(growth.PARTS)
    assert all(cost["seconds"] > 0 and cost["operations"] > 0 for cost in found)
    sizes = [(c["count"], c["dim"]) for c in found if c["part"] == "moments"]
    assert sizes == [(200, 8), (400, 8), (200, 16)]
