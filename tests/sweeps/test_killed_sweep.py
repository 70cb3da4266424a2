"""kill -9 in the middle of a multirun: resumed, it leaves what an unbroken one leaves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import scripted

SCRIPT = Path(__file__).with_name("killing_sweep.py")


@pytest.mark.parametrize(
    ("kills", "seed"), [(1, 0), pytest.param(20, 1, marks=pytest.mark.nightly)]
)
def test_a_killed_multirun(
    tmp_path: Path, checkpoint: Callable[[str], Path], pairs: Path, kills: int, seed: int
) -> None:
    heads = "cls,avg" if kills == 1 else "cls,avg,first_last"
    words = [
        "evaluate", "-m", f"pooling={heads}", "model=local",
        f"model.path={checkpoint('bert')}", "data=pairs", f"data.path={pairs}", "trainer=cpu",
        "trainer.enable_progress_bar=false", "figures=false", "logger=none", "bootstrap=10",
        "hydra.sweep.dir=run", "resume=true",
    ]  # fmt: skip
    printed = scripted.run(SCRIPT, tmp_path, kills, seed, json.dumps(words), limit=1200)
    sys.stdout.write(printed)
    assert json.loads(printed)["kills"] == kills
