"""Commands that are killed at random moments and begun again: argv is FOLDER KILLS SEED JOBS.

JOBS is JSON: for each job the words of a `whitepool` command, and the folders or files that it
leaves, which must be the same to the last byte. Each runs in a folder of its own, first unbroken in
FOLDER/whole, then again and again in FOLDER/broken, killed and begun anew until one comes to its
end. This goes on until there were enough kills. Each run is a child process, forked once everything
is imported; a kill comes after the first file has been written.

Prints, as JSON, how many kills each job had, and how many found something of what it leaves.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import whitepool.bulk.run
import whitepool.export.module
import whitepool.training  # noqa: F401
from whitepool.bulk import reading
from whitepool.commands import console, hydra_job  # noqa: F401

reading.WINDOW = 20  # rows, so that a shard has several windows
PASSING = re.compile(r"\.(new|old)-|\.partial$")


def begin(place: Path, words: Sequence[str]) -> int:
    """The process of a run that has just begun."""
    place.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    os.chdir(place)
    log = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["whitepool", *words]
    status: object = 1
    try:
        status = console.main()
    except SystemExit as ended:
        status = ended.code
    finally:
        os._exit(int(status or 0))  # type: ignore[call-overload]


def contents(place: Path, kept: Sequence[str]) -> dict[str, bytes]:
    """The files that a job leaves, and the names of all that it only had while it was at work."""
    result = {}
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        if path.is_file() and any(f"{name}/".startswith(f"{whole}/") for whole in kept):
            result[name] = path.read_bytes()
        elif PASSING.search(name):
            result[name] = b""
    return result


def broken(
    folder: Path, words: Sequence[str], kept: Sequence[str], kills: int, draw: random.Random
) -> tuple[int, int]:
    """Kill a job so many times; how many of them found something of it, and its milliseconds."""
    whole, place = folder / "whole", folder / "broken"
    started = time.monotonic()
    first = None
    child = begin(whole, words)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if first is None and any(whole.rglob("*.yaml")):
            first = time.monotonic() - started
        time.sleep(0.001)
    seconds = time.monotonic() - started
    wanted = contents(whole, kept)
    assert first is not None
    assert all(any(name.startswith(one) for name in wanted) for one in kept), wanted.keys()

    killed = found = 0
    while killed < kills:
        child = begin(place, words)
        time.sleep(draw.uniform(first, seconds))
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL), place.with_suffix(".log").read_text()
        killed += status != 0
        found += status != 0 and any(name in wanted for name in contents(place, kept))
        if killed == kills:
            status = os.waitstatus_to_exitcode(os.waitpid(begin(place, words), 0)[1])
            assert status == 0, place.with_suffix(".log").read_text()
        if status == 0:
            assert contents(place, kept) == wanted
            shutil.rmtree(place)
    return found, round(1000 * seconds)


folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
result = {}
for name, (words, kept) in json.loads(sys.argv[4]).items():
    found, milliseconds = broken(folder / name, words, kept, kills, draw)
    result[name] = {"kills": kills, "found": found, "milliseconds": milliseconds}
sys.stdout.write(json.dumps(result))
