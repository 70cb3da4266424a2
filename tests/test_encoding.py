"""Whole runs that reuse what earlier ones kept: the same results, to the last bit."""

from __future__ import annotations

import json
import os
import random
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from safetensors.numpy import load_file, save_file

from test_evaluate import SCRIPT, results

from tiny import WORDS, make_checkpoint

Evaluate = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kept files of this test's own cache."""
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.fixture
def evaluate(
    tmp_path: Path,
    kept: Path,
    pairs: Path,
    checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Evaluate:
    """Runs the script inside this process; the results of its jobs, in order, with their maps."""
    runs = 0

    def run(*overrides: str, status: int = 0, model: Path | None = None) -> list[dict[str, Any]]:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"run{runs}"
        common = [
            "model=bert",
            f"model.path={model or checkpoint('bert')}",
            "trainer=cpu",
            "trainer.enable_progress_bar=false",
            "logger=none",
            "figures=false",
            "bootstrap=10",
            f"hydra.run.dir={folder}",
            f"hydra.sweep.dir={folder}",
        ]
        if not any(o.startswith("data=") for o in overrides):
            common += ["data=pairs", f"data.path={pairs}"]
        GlobalHydra.instance().clear()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *overrides, *common])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        assert ended.value.code == status
        found = []
        for path in sorted(folder.rglob("results.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            fitted = path.parent / "whitening.safetensors"
            content["maps"] = load_file(fitted) if fitted.exists() else {}
            content["log"] = "".join(p.read_text() for p in path.parent.glob("*.log"))
            found.append(content)
        return found

    return run


def reused(jobs: list[dict[str, Any]]) -> list[bool]:
    return [job["vectors"]["reused"] for job in jobs]


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Every score, and every bit of every map."""
    assert found["scores"] == wanted["scores"]
    assert found["differences"] == wanted["differences"]
    assert found["fit"] == wanted["fit"]
    assert found["maps"].keys() == wanted["maps"].keys()
    for name, x in wanted["maps"].items():
        assert found["maps"][name].tobytes() == x.tobytes()


@pytest.fixture
def corpora(tmp_path: Path) -> dict[str, str]:
    """Overrides that choose one of two corpora."""
    found = {}
    for name, words in (("a", WORDS), ("b", WORDS[::2])):
        draw = random.Random(name)
        lines = [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(90)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
        found[name] = f"corpus.path={tmp_path / name}.txt"
    return found


def test_token_weights_of_a_corpus_are_part_of_the_key(
    evaluate: Evaluate, corpora: dict[str, str]
) -> None:
    a, b, again, off = (
        evaluate("pooling=idf", "corpus=text", corpora[name], *more)[0]
        for name, more in (("a", []), ("b", []), ("a", []), ("a", ["cache=off"]))
    )
    assert reused([a, b, again, off]) == [False, False, True, False]
    assert a["vectors"]["key"] == again["vectors"]["key"] != b["vectors"]["key"]
    assert_same(again, off)
    assert a["scores"] != b["scores"]


def test_a_map_of_a_corpus_on_vectors_that_were_kept(
    evaluate: Evaluate, corpora: dict[str, str]
) -> None:
    """The corpus is no part of the key: vectors before the map do not depend on it."""
    on_corpus = ("whitening.fit_on=corpus", "corpus=text")
    (fresh,) = evaluate(*on_corpus, corpora["a"], "cache=off")
    (plain,) = evaluate("whitening=off")
    (a,) = evaluate(*on_corpus, corpora["a"])
    (b,) = evaluate(*on_corpus, corpora["b"])
    assert reused([plain, a, b]) == [False, True, True]
    assert {job["vectors"]["key"] for job in (a, b)} == {plain["vectors"]["key"]}
    assert_same(a, fresh)
    assert a["scores"] != b["scores"]
    assert list(a["fit"]["sets"]) == ["corpus"]


def test_a_multirun_encodes_each_head_once(evaluate: Evaluate, kept: Path) -> None:
    sweep = ("-m", "pooling=avg,cls", "whitening=off,pca", "batch_tokens=40")
    fresh = evaluate(*sweep, "cache=off")
    assert not kept.exists()
    assert reused(fresh) == [False] * 4
    assert all(job["vectors"]["key"] is None for job in fresh)
    first = evaluate(*sweep)
    assert reused(first) == [False, True, False, True]
    assert len({job["vectors"]["key"] for job in first}) == 2
    for one, two in zip(fresh, first, strict=True):
        assert_same(two, one)
        assert one["sentences_per_second"] > 0
        assert (two["sentences_per_second"] is None) == two["vectors"]["reused"]
    key = first[1]["vectors"]["key"]
    unique = first[1]["counts"]["unique"]
    line = f"vectors of {unique} sentences reused from {key[:12]}: not encoded again"
    assert line in first[1]["log"]
    assert "reused" not in first[0]["log"]
    assert len(list(kept.iterdir())) == 4  # vectors and moments of two heads


def test_maps_are_the_same_whether_moments_were_kept_or_not(evaluate: Evaluate, kept: Path) -> None:
    """Several fit sets, and batches that end in the middle of an update."""
    (fresh,) = evaluate("cache=off", "batch_tokens=40")
    (first,) = evaluate("batch_tokens=40")
    names = {path.name for path in kept.iterdir()}
    (moments,) = names - {f"{first['vectors']['key']}.safetensors"}
    (with_moments,) = evaluate("batch_tokens=40")
    (kept / moments).unlink()
    (without,) = evaluate("batch_tokens=40")
    assert reused([with_moments, without]) == [True, True]
    for job in (first, with_moments, without):
        assert_same(job, fresh)
    assert {path.name for path in kept.iterdir()} == names
    (less,) = evaluate("batch_tokens=40", "whitening.k=5")
    assert reused([less]) == [True]
    assert less["maps"]["mine/basis"].shape[1] == 5


def test_damage_is_told_of_and_computed_anew(evaluate: Evaluate, kept: Path) -> None:
    (first,) = evaluate()
    path = kept / f"{first['vectors']['key']}.safetensors"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-1000] ^= 1
    for damaged in (whole[:-1], flipped):
        path.write_bytes(damaged)
        (again,) = evaluate()
        assert reused([again]) == [False]
        assert again["log"].count("cannot be reused") == 1
        assert_same(again, first)
        assert reused(evaluate()) == [True]


def test_what_changes_the_vectors_is_never_served_from_the_cache(
    evaluate: Evaluate,
    tmp_path: Path,
    pairs: Path,
) -> None:
    ditto = ("pooling=ditto", "pooling.block=0", "pooling.head=0", "whitening=off")
    other = make_checkpoint("bert", tmp_path / "other", seed=3)
    edited = tmp_path / "mine.tsv"
    edited.write_text(pairs.read_text().replace("guitar", "food", 1))
    jobs = [
        *evaluate(*ditto),
        *evaluate(*ditto, model=other),
        *evaluate(*ditto, "model.max_length=5"),
        *evaluate(*ditto, "data=pairs", f"data.path={edited}"),
        *evaluate(*ditto[:2], "pooling.head=1", "whitening=off"),
        *evaluate(*ditto, "pooling.layers=[-1]"),
    ]
    assert reused(jobs) == [False] * 6
    assert len({job["headline"]["value"] for job in jobs}) == 6
    assert reused(evaluate(*ditto)) == [True]


def test_vectors_that_are_not_finite_are_not_kept(
    evaluate: Evaluate, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = make_checkpoint("bert", tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    evaluate(model=broken, status=1)
    assert "is not finite" in capsys.readouterr().err
    assert not kept.exists()


def test_a_cache_that_cannot_be_written_costs_a_warning(evaluate: Evaluate, kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_text("a file where the folder should be")
    (job,) = evaluate()
    assert reused([job]) == [False]
    assert "nothing is kept for later runs" in job["log"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["cache.max_size=4"], "cache.max_size is 4: give a number with a unit"),
        (["cache.max_size=0GiB"], "cache.max_size is '0GiB': give a number with a unit"),
        (["cache=maybe"], "there is no cache=maybe: choose one of off, on"),
        (["cache.name=maybe"], "cache.name is 'maybe': choose one of on, off"),
    ],
)
def test_settings_are_checked_first(
    evaluate: Evaluate, overrides: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(*overrides, "model.path=/nowhere", status=1)
    assert message in capsys.readouterr().err


def test_a_limit_keeps_the_newest(evaluate: Evaluate, kept: Path) -> None:
    """Room for the vectors of one head (about 12 kB) and not for two."""
    sweep = ("whitening=off", "cache.max_size=25KB")
    evaluate("pooling=avg", *sweep)
    (path,) = kept.iterdir()
    assert path.stat().st_size < 25_000 < 2 * path.stat().st_size
    evaluate("pooling=cls", *sweep)
    (left,) = kept.iterdir()
    assert left != path
    assert reused(evaluate("pooling=cls", *sweep)) == [True]


@pytest.mark.slow
def test_two_processes_on_an_empty_cache(
    tmp_path: Path,
    pairs: Path,
    checkpoint: Callable[[str], Path],
) -> None:
    cache = tmp_path / "cache"
    environment = {**os.environ, "WHITEPOOL_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    processes = [
        subprocess.Popen(
            [
                sys.executable, str(SCRIPT), "model=bert", f"model.path={checkpoint('bert')}",
                "data=pairs", f"data.path={pairs}", "logger=none", "bootstrap=10",
                "figures=false",
            ],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]  # fmt: skip
    for process in processes:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    one, two = (results(folder) for folder in folders)
    assert one["scores"] == two["scores"]
    assert one["vectors"]["key"] == two["vectors"]["key"]
    assert len(list((cache / "vectors").iterdir())) == 2  # vectors and moments, once
    fitted = [next(folder.rglob("whitening.safetensors")) for folder in folders]
    a, b = map(load_file, fitted)
    assert all(a[name].tobytes() == b[name].tobytes() for name in a)
