"""Coverage-guided fuzzing of every reader; `pip install "whitepool[fuzz]"`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from file_cases import FILES
from reader_cases import READERS, Reader

RUNS = 20_000
SCRIPT = Path(__file__).with_name("guided.py")


@pytest.mark.nightly
@pytest.mark.parametrize("reader", [*READERS, *FILES], ids=lambda reader: reader.name)
def test_guided(reader: Reader, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    here = [SCRIPT.parent, SCRIPT.parents[1], SCRIPT.parents[2] / "src"]
    run = subprocess.run(
        [sys.executable, SCRIPT, reader.name, str(RUNS), "1"],
        cwd=tmp_path,  # where a case that fails is left
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, here))},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = re.search(r": (\d+) read, (\d+) refused", run.stdout)
    assert found, run.stdout
    assert sum(map(int, found.groups())) == RUNS
    sys.stdout.write(run.stdout)
