"""Whole commands on tiny models: what a run prints, leaves and refuses."""

from __future__ import annotations

import csv
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from scipy import stats

from whitepool.comparison import compare
from whitepool.predictions import load_predictions
from whitepool.whitening import load_maps

from tiny import make_checkpoint

SCRIPT = Path(__file__).resolve().parents[1] / "evaluate.py"
Run = subprocess.CompletedProcess[str]


def command(folder: Path, *overrides: str, **environment: str) -> Run:
    """Run evaluate.py with ``folder`` as the current directory."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB", "HYDRA"))}
    clean |= {"HOME": str(folder), "HF_HUB_OFFLINE": "1", "COLUMNS": "100", **environment}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *overrides, "figures=false"],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny RoBERTa that has Ditto's published head (block 0, head 4) and 320 dimensions."""
    folder = tmp_path_factory.mktemp("roberta320")
    return make_checkpoint("roberta", folder, hidden_size=320, num_attention_heads=8)


def results(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("outputs/*/*/results.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_a_run_leaves_scores_maps_and_provenance(
    tmp_path: Path, pairs: Path, checkpoint: Callable[[str], Path]
) -> None:
    run = command(
        tmp_path,
        "model=bert",
        f"model.path={checkpoint('bert')}",
        "data=pairs",
        f"data.path={pairs}",
    )
    assert run.returncode == 0, run.stderr
    (folder,) = tmp_path.glob("outputs/*/*")
    assert "mine" in run.stdout
    assert "difference" in run.stdout
    assert "1 sentences are blank, or hold no word" in run.stderr
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = "task subset aggregate stage metric value low high n missing published difference"
    assert list(rows[0]) == columns.split()
    assert {(r["task"], r["subset"], r["aggregate"], r["stage"], r["metric"]) for r in rows} == {
        ("mine", "", aggregate, stage, metric)
        for aggregate in ("all", "mean", "wmean")
        for stage in ("raw", "post")
        for metric in ("spearman", "pearson")
    }
    assert len({r["value"] for r in rows if (r["stage"], r["metric"]) == ("raw", "spearman")}) == 1
    content = results(tmp_path)
    assert content["schema"] == 1
    assert content["counts"]["blank"] == 1
    assert content["recipe"]["model"]["sha256"]
    assert content["data"][0]["pairs"] == 61
    assert content["versions"]["torch"] == torch.__version__
    assert len(content["scores"]) == len(rows)
    kept = load_predictions(folder)
    (found,) = compare(kept, kept, ("raw", "post"), samples=1000, seed=0)
    (row,) = (
        r for r in content["differences"] if (r["aggregate"], r["metric"]) == ("all", "spearman")
    )
    assert [row[k] for k in ("value", "low", "high")] == [found.value, found.low, found.high]
    maps, provenance = load_maps(folder / "whitening.safetensors")
    assert maps["mine"].count == 121  # the blank sentence is left out
    assert provenance["model"]["name"] == "bert"
    assert provenance["covariance"] == "n - 1"
    assert (folder / "config.yaml").exists()
    assert (folder / "csv" / "metrics.csv").exists()


def test_the_score_equals_a_loop_written_from_scratch(
    tmp_path: Path, pairs: Path, checkpoint: Callable[[str], Path]
) -> None:
    """transformers, numpy and scipy, one sentence at a time."""
    import numpy as np
    from transformers import AutoModel, AutoTokenizer

    run = command(
        tmp_path, "model=bert", f"model.path={checkpoint('bert')}", "data=pairs",
        f"data.path={pairs}", "pooling=first_last", "batch_tokens=40",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    model = AutoModel.from_pretrained(checkpoint("bert")).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint("bert"))

    def encode(text: str) -> Any:
        with torch.no_grad():
            out = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        mean = (out.hidden_states[1][0] + out.hidden_states[-1][0]).double().mean(0) / 2
        return mean.numpy() if text else np.zeros(len(mean))

    lines = pairs.read_text(encoding="utf-8").split("\n")[1:-1]
    table = [line.split("\t") for line in lines]
    x = np.array([[encode(a), encode(b)] for a, b, _ in table])  # (pair, 2, dim)
    gold = [float(score) for *_, score in table]
    flat = x.reshape(-1, x.shape[-1])[np.array([[bool(a), bool(b)] for a, b, _ in table]).ravel()]
    values, directions = np.linalg.eigh(np.cov(flat, rowvar=False))
    keep = values > values.max() * len(values) * np.finfo(float).eps
    z = (x - flat.mean(0)) @ (directions[:, keep] / np.sqrt(values[keep]))
    z[x.any(-1) == 0] = 0

    def spearman(v: Any) -> float:
        norm = np.linalg.norm(v, axis=-1).prod(1)
        cosines = (v[:, 0] * v[:, 1]).sum(-1) / np.where(norm > 0, norm, 1)
        return float(100 * stats.spearmanr(cosines.round(9), gold).statistic)

    rows = results(tmp_path)["scores"]
    found = {r["stage"]: r["value"] for r in rows if r["metric"] == "spearman"}
    assert found["raw"] == pytest.approx(spearman(x), abs=1e-6)
    assert found["post"] == pytest.approx(spearman(z), abs=0.5)  # float32 states, 60 pairs


def test_roberta_ditto_whitening_k(tmp_path: Path, pairs: Path, roberta: Path) -> None:
    """The command of the README, against a folder; 121 vectors span no more than 120."""
    overrides = ["model=roberta", f"model.path={roberta}", "pooling=ditto", "data=pairs",
                 f"data.path={pairs}"]  # fmt: skip
    run = command(tmp_path, *overrides, "whitening.k=64")
    assert run.returncode == 0, run.stderr
    assert results(tmp_path)["fit"]["sets"]["mine"]["k"] == 64
    assert "mine: the 121 vectors span" in run.stderr
    assert "of 320 dimensions (effective rank): the first 64 are kept." in run.stderr
    assert results(tmp_path)["recipe"]["pooling"]["tokens"]["head"] == 4
    run = command(tmp_path, *overrides, "whitening.k=256")
    assert run.returncode == 1
    assert "whitening.k=256 is over the effective rank" in run.stderr
    assert "Traceback" not in run.stderr


def test_multirun_leaves_a_folder_per_job_and_a_summary(
    tmp_path: Path, pairs: Path, roberta: Path
) -> None:
    run = command(
        tmp_path, "-m", "pooling=cls,avg,first_last,ditto", "whitening=off,pca", "model=roberta",
        f"model.path={roberta}", "data=pairs", f"data.path={pairs}",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    (summary,) = tmp_path.glob("multirun/*/*/summary.csv")
    with summary.open(newline="", encoding="utf-8") as file:
        jobs = list(csv.DictReader(file))
    assert [job["job"] for job in jobs] == [str(i) for i in range(8)]
    assert all(job["status"] == "done" for job in jobs)
    assert len(list(summary.parent.glob("*/results.json"))) == 8
    assert len(list(summary.parent.glob("*/whitening.safetensors"))) == 4
    assert "pooling=ditto whitening=pca" in run.stdout


def test_a_multirun_of_analyses_is_summed_up_by_their_headlines(
    tmp_path: Path, pairs: Path, checkpoint: Callable[[str], Path]
) -> None:
    run = command(
        tmp_path, "-m", "analysis=table1,all", "model=bert", f"model.path={checkpoint('bert')}",
        "data=pairs", f"data.path={pairs}",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    (summary,) = tmp_path.glob("multirun/*/*/summary.csv")
    with summary.open(newline="", encoding="utf-8") as file:
        jobs = list(csv.DictReader(file))
    assert [job["status"] for job in jobs] == ["done", "done"]
    for job in jobs:
        content = json.loads((summary.parent / job["job"] / "results.json").read_text())
        assert float(job["score"]) == content["headline"]["value"]
    assert "bert, layers: best 8 of 25, Spearman x100 on mine, all" in run.stdout
    assert (summary.parent / "1" / "csv" / "metrics.csv").read_text().count("layers/best") == 1


def test_a_failing_job_does_not_take_the_others_down(
    tmp_path: Path, pairs: Path, checkpoint: Callable[[str], Path]
) -> None:
    run = command(
        tmp_path, "-m", "pooling=avg,pooler,ditto", "pooling.head=1", "pooling.block=0",
        "pooling.smoothing=0.1", "corpus=text", f"corpus.path={pairs}",
        "model=distilbert", f"model.path={checkpoint('distilbert')}", "data=pairs",
        f"data.path={pairs}",
    )  # fmt: skip
    assert run.returncode == 1
    (summary,) = tmp_path.glob("multirun/*/*/summary.csv")
    with summary.open(newline="", encoding="utf-8") as file:
        status = [job["status"] for job in csv.DictReader(file)]
    assert status == ["done", "failed", "done"]
    assert "model distilbert has no pooler" in run.stdout
    # Ditto takes block and head; nothing takes the others.
    assert "No job took corpus, pooling.smoothing: ignored in all of them." in run.stdout
    assert "Traceback" in (summary.parent / "1" / "error.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["whitening.kk=3"], "there is no setting whitening.kk: did you mean whitening.k?"),
        (["model=nope"], "there is no model=nope: choose one of albert, albert_large, all_minilm"),
        (["data=pairs"], "data.path has no value"),
        (["pooling=cls", "pooling.head=3"], "pooling=cls takes no pooling.head"),
        (["whitening=off", "whitening.k=3"], "whitening=off takes no whitening.k"),
        (["pooling=ditto"], "give pooling.block= and pooling.head="),
        (
            ["analysis=nope"],
            "there is no analysis=nope: choose one of all, dims, geometry, heads, layers, none",
        ),
        (["analysis.max_memory=1GiB"], "there is no setting analysis.max_memory"),
        (["analysis=layers", "analysis.max_sise=2"], "did you mean analysis.max_size?"),
        (["analysis=layers", "pooling=max", "model=bert"], "analysis=layers mixes the layers of"),
        (["whitening.k=0"], "give a whole number from 1"),
        (["model=local"], "no model was given: pass model.path=FOLDER"),
        (["model.path=/nowhere"], "model folder '/nowhere' does not exist"),
        (["whitening.fit_on=all"], "choose one of subset, task, suite, corpus"),
        (["whitening.fit_on=corpus"], "whitening.fit_on=corpus has no corpus: choose one"),
        (["corpus=text", "corpus.path={pairs}"], "set whitening.fit_on=corpus, or leave it out"),
        (
            ["corpus=text", "corpus.path={pairs}", "analysis=dims", "whitening.fit_on=corpus"],
            "analysis=dims fits on the scored sentences alone, so it takes no whitening",
        ),
        (["corpus.limit=5"], "corpus.limit=5 has nothing to sample: choose a corpus"),
        (["corpus=text", "corpus.path=no.txt"], "corpus.path=no.txt does not exist"),
        (["pooling=pooler", "pooling.activation=relu"], "choose tanh or none"),
        (["logger.name=mlflow"], "choose one of none, csv, wandb"),
        (["data=pairs", "data.path=absent.tsv"], "absent.tsv"),
        (["pooling.layers=[7]", "model=bert"], "layer 7 does not exist: this model has 3 blocks"),
        (["trainer.precision=16-true"], "choose one of 32-true, bf16-true, auto"),
        (["model.max_length=900", "model=bert"], "maximum length 900 is outside 3 to 64"),
    ],
)
def test_errors_are_one_sentence(
    tmp_path: Path,
    pairs: Path,
    checkpoint: Callable[[str], Path],
    overrides: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The script run inside this process, which saves the imports of a new one."""
    overrides = [o.format(pairs=pairs) for o in overrides]
    if not any(o.startswith("data=") for o in overrides):
        overrides = [*overrides, "data=pairs", f"data.path={pairs}"]
    if "model=bert" in overrides:
        overrides = [*overrides, f"model.path={checkpoint('bert')}"]
    GlobalHydra.instance().clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *overrides])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    printed = capsys.readouterr().err
    assert ended.value.code == 1
    assert message in printed
    assert "Traceback" not in printed


def test_full_error_shows_the_traceback(tmp_path: Path) -> None:
    run = command(tmp_path, "model=local", "data=stsb", HYDRA_FULL_ERROR="1")
    assert run.returncode == 1
    assert "Traceback" in run.stderr


def test_help_lists_groups_and_examples(tmp_path: Path) -> None:
    run = command(tmp_path, "--help")
    assert run.returncode == 0
    for text in (
        "pooling: avg, cls",
        "whitening: auto, center, flow, off, pca",
        "cache: off, on",
        "max_size: 4GiB",
        "python evaluate.py model=roberta",
    ):
        assert text in run.stdout


def test_import_is_light() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import whitepool, whitepool.whitening;"
        "bad = {'hydra', 'wandb', 'pytorch_lightning', 'transformers', 'torchmetrics'};"
        "print(sorted(bad & (set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_csv_and_no_logger_never_import_wandb(
    tmp_path: Path, pairs: Path, checkpoint: Callable[[str], Path]
) -> None:
    (tmp_path / "wandb.py").write_text("raise ImportError('wandb was imported')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for logger in ("csv", "none"):
        run = command(
            tmp_path, f"logger={logger}", "model=bert", f"model.path={checkpoint('bert')}",
            "data=pairs", f"data.path={pairs}", "whitening=off", PYTHONPATH=path,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
