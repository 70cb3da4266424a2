"""A multirun that is killed at random moments and resumed: argv is FOLDER KILLS SEED WORDS.

WORDS is JSON: those of a `whitepool` command, which resumes hydra.sweep.dir=run. It runs in a
folder of its own, first unbroken in FOLDER/whole, then again and again in FOLDER/broken, killed and
begun anew until one comes to its end. What is left then must be what the unbroken one left, times
apart. This goes on until there were enough kills. Each run is a child process, forked once
everything is imported; a kill comes after the first job has begun.

Prints, as JSON, how many kills there were, and how many found a job that was finished.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import transformers.models.bert.modeling_bert  # noqa: F401

import whitepool.evaluation  # noqa: F401
from whitepool.commands import console, hydra_job  # noqa: F401
from whitepool.sweeps.marker import FILE, read

TIMES = ("seconds", "sentences_per_second", "vectors")  # vectors: whether they were reused
OWN = (".lock", "multirun.yaml", ".hydra", "evaluate.log")  # of a run, and not of its results


def begin(place: Path, words: list[str]) -> int:
    """The process of a run that has just begun."""
    place.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    os.chdir(place)
    os.environ["WHITEPOOL_CACHE"] = str(place / "cache")
    log = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ["whitepool", *words]
    status: Any = 1
    try:
        status = console.main()
    except SystemExit as ended:
        status = ended.code
    finally:
        os._exit(int(status or 0))


def contents(place: Path) -> dict[str, Any]:
    """All that a multirun left, by name: bytes, or content without times."""
    found: dict[str, Any] = {}
    for path in (place / "run").rglob("*"):
        name = path.relative_to(place).as_posix()
        if path.is_dir() or any(part in OWN for part in path.parts):
            continue
        raw = path.read_bytes().replace(str(place).encode(), b"PLACE")
        found[name] = raw
        if path.name in ("results.json", "job.json"):
            found[name] = {k: v for k, v in json.loads(raw).items() if k not in TIMES}
        if path.name == "summary.csv":
            rows = csv.DictReader(raw.decode().splitlines())
            found[name] = [{k: v for k, v in row.items() if k not in TIMES} for row in rows]
    return found


def finished(place: Path) -> int:
    """How many jobs are."""
    states = [read(path.parent) for path in place.glob(f"run/*/{FILE}")]
    return sum(state is not None and state.finished for state in states)


def ended(place: Path, child: int, after: float | None = None) -> tuple[int, float]:
    """The status of a run that is killed after so many seconds, and how long it took.

    It has to be 0 unless it was killed.
    """
    began = time.monotonic()
    while True:
        process, status = os.waitpid(child, os.WNOHANG)
        passed = time.monotonic() - began
        if process:
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, -signal.SIGKILL), place.with_suffix(".log").read_text()
            return code, passed
        if after is not None and passed >= after:
            os.kill(child, signal.SIGKILL)
            after = None
        time.sleep(0.001)


folder, kills, draw = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
words = json.loads(sys.argv[4])
whole, place = folder / "whole", folder / "broken"
started, first = time.monotonic(), None
child = begin(whole, words)
while os.waitpid(child, os.WNOHANG) == (0, 0):
    if first is None and any(whole.glob(f"run/*/{FILE}")):
        first = time.monotonic() - started
    time.sleep(0.001)
seconds = time.monotonic() - started
assert first is not None, whole.with_suffix(".log").read_text()
wanted = contents(whole)
jobs = finished(whole)
assert jobs > 1, whole.with_suffix(".log").read_text()

killed = found = 0
while killed < kills:
    last = seconds if kills > 1 else (first + seconds) / 2
    status, took = ended(place, begin(place, words), draw.uniform(first, last))
    killed += status != 0
    found += status != 0 and 0 < finished(place) < jobs
    if status == 0 and killed < kills:
        first, seconds = first * took / seconds, took  # the machine is quicker now
    if killed == kills:
        status, _ = ended(place, begin(place, words))
        assert status == 0
    if status == 0:
        left = contents(place)
        assert left.keys() == wanted.keys(), left.keys() ^ wanted.keys()
        for name, content in wanted.items():
            assert left[name] == content, (name, left[name], content)
        shutil.rmtree(place)
sys.stdout.write(json.dumps({"kills": killed, "found": found}))
