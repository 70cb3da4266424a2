"""Whole commands of encode.py on tiny models."""

from __future__ import annotations

import csv
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra

from benchmarks import memory
from whitepool.loading import load

from tiny import WORDS

SCRIPT = Path(__file__).resolve().parents[1] / "encode.py"
TEXTS = [" ".join(WORDS[i % 7 : i % 7 + 1 + i % 9]) for i in range(50)]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(
    tmp_path: Path,
    checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Run the script inside this process, in ``tmp_path``; its exit status and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("\n".join(TEXTS), encoding="utf-8")

    def run(*overrides: str) -> tuple[int, str]:
        GlobalHydra.instance().clear()
        if not any(o.startswith("recipe=") for o in overrides):
            overrides = ("model=bert", f"model.path={checkpoint('bert')}", *overrides)
        if "trainer=auto" not in overrides:
            overrides = ("trainer=cpu", *overrides)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *overrides])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().err

    return run


def vectors(folder: str) -> Any:
    return np.concatenate([np.load(path) for path in sorted(Path(folder).glob("*.npy"))])


def test_a_model_with_a_head(command: Command, checkpoint: Callable[[str], Path]) -> None:
    code, printed = command(
        "input=x.txt", "output=v", "format=npy", "pooling=first_last", "shard_rows=30"
    )
    assert code == 0, printed
    encoder = load(checkpoint("bert"), pooling="first_last", device="cpu")
    assert np.abs(vectors("v") - encoder.encode(TEXTS)).max() < 1e-5
    assert "50 vectors of 32 dimensions in 2 shards: v" in printed
    (run_folder,) = Path().glob("outputs/*/*")
    assert (run_folder / "config.yaml").exists()
    code, printed = command(
        "input=x.txt", "output=v", "format=npy", "pooling=first_last", "shard_rows=30"
    )
    assert "going on after 50 vectors that are there" in printed
    code, printed = command("input=x.txt", "output=v", "format=npy", "pooling=cls", "shard_rows=30")
    assert code == 1
    assert "output=v was begun with encoder.pooling.tokens._target_" in printed
    code, _ = command(
        "input=x.txt", "output=v", "format=npy", "pooling=cls", "shard_rows=30", "overwrite=true"
    )
    assert code == 0
    cls = load(checkpoint("bert"), pooling="cls", device="cpu")
    assert np.abs(vectors("v") - cls.encode(TEXTS)).max() < 1e-5


def test_a_recipe(command: Command, checkpoint: Callable[[str], Path]) -> None:
    encoder = load(
        checkpoint("bert"), whitening="pca", k=5, device="cpu", prompts={"query": "is a"}
    )
    encoder.fit(TEXTS).save("recipe")
    code, printed = command(
        "input=[x.txt,x.txt]", "output=v", "format=npy", "recipe=recipe", "prompt_name=query"
    )
    assert code == 0, printed
    expected = encoder.encode_query(TEXTS)
    assert vectors("v").shape == (50, 5)  # a file that is given twice is read once
    assert np.abs(vectors("v") - expected).max() < 1e-4 * np.abs(expected).max()
    manifest = json.loads(Path("v/manifest.json").read_text(encoding="utf-8"))
    assert manifest["made_from"]["encoder"]["post"]["k"] == 5

    encoder.fit(TEXTS[:25]).save("recipe")
    code, printed = command(
        "input=x.txt", "output=v", "format=npy", "recipe=recipe", "prompt_name=query"
    )
    assert (code, "output=v was begun with encoder.post.fit" in printed) == (1, True)
    for override in ("model=bert", "pooling=cls", "pooling.layers=[1]"):
        code, printed = command("input=x.txt", "output=w", "recipe=recipe", override)
        name = override.partition("=")[0]
        assert f"recipe=recipe brings its own model and pooling: leave {name}= out" in printed


def test_a_recipe_has_its_own_precision_unless_another_is_asked_for(
    command: Command, checkpoint: Callable[[str], Path]
) -> None:
    load(checkpoint("bert"), dtype="bfloat16", device="cpu").save("recipe")
    for folder, more, dtype in (
        ("v", (), "bfloat16"),
        ("w", ("trainer.precision=32-true",), "float32"),
    ):
        code, printed = command("input=x.txt", f"output={folder}", "recipe=recipe", *more)
        assert code == 0, printed
        manifest = json.loads(Path(folder, "manifest.json").read_text(encoding="utf-8"))
        assert manifest["made_from"]["encoder"]["model"]["dtype"] == dtype


def test_bad_rows_are_listed_and_told_of(command: Command) -> None:
    Path("y.csv").write_bytes(b'id,body\n7,a dog\n8,\xff\n9,\n10,"a\ncat"\n')
    code, printed = command(
        "input=y.csv", "output=v", "format=npy", "read.column=body", "read.id=id", "on_bad=skip"
    )
    assert code == 0, printed
    assert "2 of 4 rows are bad, on_bad=skip: they are listed in v/bad_rows.csv" in printed
    with Path("v/bad_rows.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["file", "line", "reason"],
            ["y.csv", "3", "not valid UTF-8"],
            ["y.csv", "4", "blank"],
        ]
    assert Path("v/ids-00000.csv").read_text(encoding="utf-8") == "id\n7\n10\n"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "output has no value: give output="),
        (["output=v", "input=y.txt"], "input=y.txt does not exist"),
        (["output=v", "whitening=pca"], "whitepool train output=FOLDER, then encode with recipe="),
        (["output=v", "pooling=idf"], "whitepool train output=FOLDER, then encode with recipe="),
        (["output=v", "format=json"], "format is 'json': choose one of parquet, npy."),
        (["output=v", "truncate_dim=33"], "truncate_dim is 33: give 1 to 32."),
        (["output=v", "prompt_name=q"], "prompt_name is 'q': choose one of query, document."),
        (["output=v", "pooling=cls", "pooling.head=3"], "pooling=cls takes no pooling.head"),
        (["output=v", "pooling.layers=[7]"], "layer 7 does not exist: this model has 3 blocks"),
        (["output=v", "recipe=nowhere"], "recipe folder nowhere does not exist"),
        (["output=x.txt"], "output=x.txt is a file: give a folder."),
        (["output=."], "output=. holds other things than vectors"),
        (["output=v", "reed.id=a"], "there is no setting reed"),
    ],
)
def test_errors_are_one_sentence(command: Command, overrides: list[str], message: str) -> None:
    given = (
        overrides if any(o.startswith("input=") for o in overrides) else ["input=x.txt", *overrides]
    )
    code, printed = command(*given)
    assert code == 1
    assert message in printed
    assert "Traceback" not in printed
    assert not Path("v").exists()


def whole(
    checkpoint: Callable[[str], Path], *overrides: str, **options: Any
) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    model = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu"]
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *model, *overrides],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.slow
def test_standard_input_and_help(tmp_path: Path, checkpoint: Callable[[str], Path]) -> None:
    raw = "\n".join(TEXTS).encode()
    run = whole(checkpoint, "input=-", "output=v", cwd=tmp_path, stdin=subprocess.PIPE)
    _, printed = run.communicate(raw, timeout=600)
    assert run.returncode == 0, printed
    assert b"50 vectors of 32 dimensions" in printed
    run = whole(checkpoint, "--help", cwd=tmp_path)
    printed, _ = run.communicate(timeout=600)
    for text in (b"pooling: avg, cls", b"on_bad: error", b"zcat dump.txt.gz | python encode.py"):
        assert text in printed


@pytest.mark.slow
def test_ctrl_c_and_on(tmp_path: Path, checkpoint: Callable[[str], Path]) -> None:
    """Interrupted once a shard is there: one message, and the same command finishes the folder."""
    lines = [f"{text} {i}" for i in range(80) for text in TEXTS]
    (tmp_path / "x.txt").write_text("\n".join(lines), encoding="utf-8")
    settings, whole_shards = ["input=x.txt", "shard_rows=200"], len(lines) // 200
    run = whole(checkpoint, *settings, "output=v", cwd=tmp_path)
    while not (tmp_path / "v" / "vectors-00001.parquet").exists():
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, printed = run.communicate(timeout=600)
    assert run.returncode == 130
    assert b"the same command goes on from there.\n" in printed
    assert b"Interrupted." in printed
    assert b"Traceback" not in printed
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "v").glob("vectors*")}
    assert 1 < len(before) < whole_shards
    for output in ("v", "w"):
        run = whole(checkpoint, *settings, f"output={output}", cwd=tmp_path)
        _, printed = run.communicate(timeout=600)
        assert run.returncode == 0, printed
    v, w = tmp_path / "v", tmp_path / "w"
    assert {p.name: p.read_bytes() for p in v.iterdir()} == {
        p.name: p.read_bytes() for p in w.iterdir()
    }
    kept = [name for name, time in before.items() if (v / name).stat().st_mtime_ns == time]
    assert len(kept) >= len(before) - 1  # of the last, the manifest may not have told yet


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_memory_does_not_grow_with_the_input(
    tmp_path: Path, checkpoint: Callable[[str], Path]
) -> None:
    """200,000 rows against 20,000: peak resident memory within 300 MB."""
    peaks = []
    model = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu", "pooling.layers=[1]"]
    for rows in (20_000, 200_000):
        texts = (f"{TEXTS[i % 50]} {i}" for i in range(rows))
        (tmp_path / f"{rows}.txt").write_text("\n".join(texts), encoding="utf-8")
        given = ["encode", *model, f"input={rows}.txt", f"output=v{rows}"]
        _, peak = memory.run(given, tmp_path, threads=1)
        peaks.append(peak)
    print("peak MB", peaks)
    assert 100 < peaks[0] < 2000
    assert peaks[1] - peaks[0] < 300


@pytest.mark.slow
def test_embedded_minilm(command: Command, tmp_path: Path) -> None:
    """The README's command, on the model it is about."""
    GlobalHydra.instance().clear()
    encoder = load("all_minilm", whitening="pca", k=16, device="cpu").fit(TEXTS)
    encoder.save(tmp_path / "new")
    code, printed = command("input=x.txt", "output=v", "format=npy", "recipe=new")
    assert code == 0, printed
    expected = encoder.encode(TEXTS)
    assert np.abs(vectors("v") - expected).max() < 1e-3 * np.abs(expected).max()
