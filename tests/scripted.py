"""Scripts that do to a process what no test could do to its own, and print what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(script: Path, *words: object, limit: float) -> str:
    """What a script prints, with one thread.

    Args:
        script: its file.
        words: for its command line.
        limit: seconds.
    """
    done = subprocess.run(
        [sys.executable, str(script), *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        timeout=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
