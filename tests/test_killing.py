"""kill -9 at any moment: the same command again leaves what one unbroken run leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tiny import WORDS

SCRIPT = Path(__file__).with_name("killing.py")


@pytest.mark.parametrize(
    ("kills", "seed"), [(3, 0), pytest.param(20, 1, marks=pytest.mark.nightly)]
)
def test_killed_commands(
    tmp_path: Path, checkpoint: Callable[[str], Path], kills: int, seed: int
) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("sentence_transformers")
    texts = [" ".join(WORDS[i % 7 : i % 7 + i % 9]) + f" {i}" * (i % 11 > 0) for i in range(250)]
    file = tmp_path / "x.txt"
    file.write_text("\n".join(texts), encoding="utf-8")
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", "hydra.run.dir=run"]
    encode = ["encode", *model, f"input={file}", "output=vectors", "on_bad=skip", "shard_rows=30"]
    train = ["train", *model, "corpus=text", f"corpus.path={file}", "figures=false"]
    train += ["whitening.k=8", "output=recipe", "export=exported", "overwrite=true"]
    jobs = {
        "encode": (encode, ["vectors"]),
        "train": (train, ["recipe", "exported", "run/moments.safetensors"]),
    }
    run = subprocess.run(
        [sys.executable, str(SCRIPT), tmp_path, str(kills), str(seed), json.dumps(jobs)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    sys.stdout.write(run.stdout)
    assert {name: job["kills"] for name, job in found.items()} == {"encode": kills, "train": kills}
