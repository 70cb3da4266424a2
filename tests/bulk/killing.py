"""Runs that are killed at random moments and begun again: argv is MODEL FILE FOLDER KILLS SEED.

A run that is not killed fills FOLDER/whole. Then FOLDER/broken is filled by runs that are killed,
until one comes to its end; that folder must be the same to the last byte. This goes on until there
were enough kills. Each run is a child process, forked once the model is loaded.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from whitepool.bulk import reading
from whitepool.bulk.folder import open_folder
from whitepool.bulk.job import Job
from whitepool.bulk.settings import Settings
from whitepool.data.row_sources import open_input
from whitepool.loading import load

reading.WINDOW = 20
model, file = sys.argv[1:3]
folder = Path(sys.argv[3])
kills, seed = map(int, sys.argv[4:])
settings = Settings(shard_rows=30, on_bad="skip", keep_text=True)
job = Job(load(model, device="cpu"), settings, open_input(file), has_ids=False)
draw = random.Random(seed)


def begin(output: Path) -> int:
    child = os.fork()
    if child == 0:
        with open_folder(output, {"file": file}, "skip", overwrite=False) as opened:
            job.fill(opened, show=False)
        os._exit(0)
    return child


def contents(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output.iterdir()}


started = time.monotonic()
assert os.waitpid(begin(folder / "whole"), 0)[1] == 0
seconds = time.monotonic() - started
whole = contents(folder / "whole")
assert len(whole) > 5

killed = shards_kept = 0
while killed < kills:
    child = begin(folder / "broken")
    time.sleep(draw.uniform(0, seconds))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    found = contents(folder / "broken") if (folder / "broken").exists() else {}
    if os.WIFSIGNALED(status):
        killed += 1
        shards_kept += sum(name.startswith("vectors") for name in found)
    if killed == kills:
        assert os.waitpid(begin(folder / "broken"), 0)[1] == 0
        found = contents(folder / "broken")
    if killed == kills or not os.WIFSIGNALED(status):
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        assert found == whole
        shutil.rmtree(folder / "broken")
print(killed, shards_kept)
