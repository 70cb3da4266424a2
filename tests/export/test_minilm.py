"""Exports of all-MiniLM-L6-v2: every head, and its scores through other programs' evaluators."""

from __future__ import annotations

import csv
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra

import whitepool
from whitepool.data.pairs import PairSet
from whitepool.data.stsb import read_embedded
from whitepool.pooling import LinearPooling, VocabularyWeights

from made import HEADS, same

pytest.importorskip(
    "sentence_transformers", reason='pip install "whitepool[sentence-transformers]"'
)
pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).resolve().parents[2] / "evaluate.py"


@pytest.fixture(scope="module")
def stsb() -> PairSet:
    return read_embedded("stsb", "", "test")


@pytest.mark.nightly  # test_product has a sample for every day
@pytest.mark.parametrize("whitening", [None, "pca"])
@pytest.mark.parametrize(
    "head",
    [head for head in HEADS if not head.startswith("pooler")],  # which has no weights
)
def test_every_head(stsb: PairSet, tmp_path: Path, head: str, whitening: str | None) -> None:
    """Vectors equal ours, long texts among them, batch by batch with padding."""
    pooling = HEADS[head]
    if isinstance(pooling, LinearPooling) and isinstance(pooling.tokens, VocabularyWeights):
        weights = torch.rand(30522, generator=torch.Generator().manual_seed(0)).double()
        pooling = LinearPooling(VocabularyWeights(weights), pooling.layers)
    encoder = whitepool.load("all_minilm", pooling=pooling, whitening=whitening, device="cpu")
    if whitening:
        encoder.fit([*stsb.first[:300], *stsb.second[:300]])
    model = whitepool.sentence_transformer(encoder.export(tmp_path / "out"), device="cpu")
    texts = [*stsb.first[300:330], " ".join(stsb.first[:60])]
    assert same(encoder.encode(texts), model.encode(texts, batch_size=8))


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Runs evaluate.py in this process; gives its run folder."""

    def run(*overrides: str) -> Path:
        folder = tmp_path / "run"
        GlobalHydra.instance().clear()
        given = [f"hydra.run.dir={folder}", "trainer.enable_progress_bar=false", *overrides]
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given])
        handler, threads = signal.getsignal(signal.SIGINT), torch.get_num_threads()
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        signal.signal(signal.SIGINT, handler)
        torch.set_num_threads(threads)
        assert ended.value.code == 0
        return folder

    return run


@pytest.mark.parametrize("pairs", [250, pytest.param(1379, marks=pytest.mark.nightly)])
def test_scores_through_other_evaluators(
    evaluate: Callable[..., Path], stsb: PairSet, tmp_path: Path, pairs: int
) -> None:
    """evaluate.py, sentence-transformers and mteb agree on MiniLM, whitened, on STS-B."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    first, second = stsb.first[:pairs], stsb.second[:pairs]
    gold = stsb.gold[:pairs].tolist()
    lines = zip(first, second, map(str, gold), strict=True)
    file = tmp_path / "pairs.tsv"
    text = "\n".join(["sentence1\tsentence2\tscore", *map("\t".join, lines)])
    file.write_text(text + "\n", encoding="utf-8")
    run = evaluate("data=pairs", f"data.path={file}", "trainer=cpu", "cache=off", "bootstrap=0")
    with (run / "scores.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    (wanted,) = [
        float(row["value"])
        for row in rows
        if (row["aggregate"], row["stage"], row["metric"]) == ("all", "post", "spearman")
        and row["task"] != "avg"
    ]
    encoder = whitepool.load(run / "recipe", device="cpu")
    folder = encoder.export(tmp_path / "exported")
    assert f" | {wanted:.2f} |" in (folder / "README.md").read_text()
    model = SentenceTransformer(str(folder), device="cpu")
    evaluator = EmbeddingSimilarityEvaluator(list(first), list(second), gold)
    assert 100 * evaluator(model)["spearman_cosine"] == pytest.approx(wanted, abs=0.01)

    pytest.importorskip("mteb", reason='pip install "whitepool[mteb]"')
    from test_mteb import local_task, score_of
    from whitepool.mteb import MtebModel

    task = local_task("EmbeddedSTSB", first, second, gold)
    for ours_or_theirs in (MtebModel(encoder), model):
        assert score_of(ours_or_theirs, task) == pytest.approx(wanted, abs=0.01)
