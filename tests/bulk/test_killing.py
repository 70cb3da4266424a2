"""kill -9 at any moment: the next run goes on, and what it leaves is what one run leaves."""

from __future__ import annotations

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
def test_killed_runs(
    tmp_path: Path, checkpoint: Callable[[str], Path], kills: int, seed: int
) -> None:
    pytest.importorskip("pyarrow")
    texts = [" ".join(WORDS[i % 7 : i % 7 + i % 9]) + f" {i}" * (i % 11 > 0) for i in range(250)]
    path = tmp_path / "x.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    run = subprocess.run(
        [sys.executable, str(SCRIPT), checkpoint("bert"), path, tmp_path, str(kills), str(seed)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) == kills
