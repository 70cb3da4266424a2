"""Stopped at any moment: the same command again leaves what one unbroken run leaves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import scripted
from tiny import WORDS

SCRIPT = Path(__file__).with_name("killing.py")


@pytest.mark.parametrize(
    ("times", "seed"), [((3, 1, 0), 0), pytest.param((20, 10, 10), 1, marks=pytest.mark.nightly)]
)
def test_stopped_commands(
    tmp_path: Path,
    checkpoint: Callable[[str], Path],
    pairs: Path,
    times: tuple[int, int, int],
    seed: int,
) -> None:
    """kill -9, SIGTERM and SIGINT, so many times each."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("sentence_transformers")
    texts = [" ".join(WORDS[i % 7 : i % 7 + i % 9]) + f" {i}" * (i % 11 > 0) for i in range(250)]
    file = tmp_path / "x.txt"
    file.write_text("\n".join(texts), encoding="utf-8")
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", "hydra.run.dir=run"]
    encode = ["encode", *model, f"input={file}", "output=vectors", "on_bad=skip", "shard_rows=30"]
    train = ["train", *model, "corpus=text", f"corpus.path={file}", "figures=false"]
    train += ["whitening.k=8", "output=recipe", "export=exported", "overwrite=true"]
    evaluate = ["evaluate", *model, "data=pairs", f"data.path={pairs}", "figures=false"]
    left = ("results.json", "scores.csv", "predictions.safetensors", "whitening.safetensors")
    jobs = {
        "evaluate": (evaluate, [*(f"run/{name}" for name in left), "run/recipe"]),
        "encode": (encode, ["vectors"]),
        "train": (train, ["recipe", "exported", "run/moments.safetensors"]),
    }
    rounds = ",".join(map(str, times))
    printed = scripted.run(SCRIPT, tmp_path, rounds, seed, json.dumps(jobs), limit=2400)
    found = {k: v for line in printed.splitlines() for k, v in json.loads(line).items()}
    sys.stdout.write(printed)
    assert {name: job["stops"] for name, job in found.items()} == dict.fromkeys(jobs, sum(times))
