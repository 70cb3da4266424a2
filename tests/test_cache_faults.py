"""Kept vectors and moments that are cut, changed, or being written: never other scores."""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.evaluation import evaluate

import tiny_suite


@pytest.mark.parametrize("times", [4, pytest.param(200, marks=pytest.mark.nightly)])
def test_damaged_files_never_give_other_scores(
    times: int,
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Cut anywhere, or a bit changed anywhere, of vectors, moments or both."""
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    config = tiny_suite.composed(checkpoint("bert"), tmp_path / "run")
    wanted = evaluate(config)
    rows = json.loads((tmp_path / "run" / "results.json").read_text())["scores"]
    kept = {path: path.read_bytes() for path in (tmp_path / "cache" / "vectors").iterdir()}
    assert len(kept) == 2
    draw, harmless = random.Random(times), 0
    for turn in range(times):
        harmed = draw.sample(sorted(kept), 1 + turn % 2)
        for path in harmed:
            content = bytearray(kept[path])
            place = draw.randrange(len(content))
            if draw.random() < 0.5:
                del content[place:]
            else:
                content[place] ^= 1 << draw.randrange(8)
            path.write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert evaluate(config) == wanted
        assert json.loads((tmp_path / "run" / "results.json").read_text())["scores"] == rows
        told = [m for m in caplog.messages if "cannot be reused" in m]
        harmless += not told  # a blank of the header
        assert {path.name for path in kept} == {
            path.name for path in (tmp_path / "cache" / "vectors").iterdir()
        }
    assert harmless <= max(1, times // 20)
    print(f"damaged {times}, harmless {harmless}")


def test_files_that_another_process_is_writing(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not write as we do: over the file itself, over and over, a part at a time."""
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    config = tiny_suite.composed(checkpoint("bert"), tmp_path / "run")
    wanted = evaluate(config)
    kept = {path: path.read_bytes() for path in (tmp_path / "cache" / "vectors").iterdir()}
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            for path, content in kept.items():
                with path.open("r+b" if path.exists() else "wb") as file:
                    for start in range(0, len(content), 997):
                        file.write(content[start : start + 997])
                        file.flush()
                    file.truncate(len(content) // 2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {evaluate(config) for _ in range(3)} == {wanted}
    finally:
        ended.set()
        writer.join()


HERE = str(Path(__file__).parent)
RUN = """
import sys
from pathlib import Path
import tiny_suite
from whitepool.evaluation import evaluate
evaluate(tiny_suite.composed(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def test_runs_that_start_at_once_on_an_empty_cache(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [HERE, *sys.path])))
    evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path / "alone", "cache=off"))
    runs = [
        subprocess.Popen([sys.executable, "-c", RUN, checkpoint("bert"), tmp_path / name])
        for name in ("a", "b", "c")
    ]
    assert [run.wait(timeout=300) for run in runs] == [0] * 3
    rows = [
        json.loads((tmp_path / name / "results.json").read_text())["scores"]
        for name in ("alone", "a", "b", "c")
    ]
    assert rows[1:] == rows[:1] * 3
    left = list((tmp_path / "cache" / "vectors").iterdir())
    assert [path.suffix for path in left] == [".safetensors"] * 2
