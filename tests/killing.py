"""Commands that are stopped at random moments and begun again: argv is FOLDER TIMES SEED JOBS.

TIMES is how often each is killed, terminated and interrupted, as 20,3,3. JOBS is JSON: for each job
the words of a `whitepool` command, and the folders or files that it leaves, which must be the same
to the last byte, times aside. Each runs in a folder of its own, first unbroken in FOLDER/whole,
then again and again in FOLDER/broken, stopped and begun anew until one comes to its end, with a
cache that stopped runs have left something in. Each run is a child process, forked once everything
is imported; a signal comes after the first file has been written.

A run that is asked to stop (SIGTERM, SIGINT) has to end with the status that says so, without a
traceback, and with nothing half-written beside what it leaves.

Prints a line of JSON for each job: how often it was stopped, and how often that found something of
what it leaves.
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
from typing import NoReturn

import whitepool.bulk.run
import whitepool.evaluation
import whitepool.export.module
import whitepool.training  # noqa: F401
from whitepool.bulk import reading
from whitepool.commands import console, hydra_job  # noqa: F401

reading.WINDOW = 20  # rows, so that a shard has several windows
PASSING = re.compile(r"\.(new|old)-|\.part(ial)?$")
TIMED = ("seconds", "sentences_per_second")
ASKED = {signal.SIGTERM: (143, "Terminated."), signal.SIGINT: (130, "Interrupted.")}


def begin(place: Path, words: Sequence[str]) -> int:
    """The process of a run, once its command has begun."""
    place.mkdir(parents=True, exist_ok=True)
    ready, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        os.read(ready, 1)
        os.close(ready)
        return child
    status: object = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once the command has come to its end
        os.chdir(place)
        os.environ["WHITEPOOL_CACHE"] = f"{place}_cache"
        log = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["whitepool", *words]
        run = console._run

        def running(arguments: Sequence[str]) -> int:
            os.write(told, b"x")
            return run(arguments)

        console._run = running
        status = console.main()
    except SystemExit as ended:
        status = ended.code
    finally:
        leave(status)


def leave(status: object) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(status or 0))  # type: ignore[call-overload]


def contents(place: Path, kept: Sequence[str]) -> dict[str, bytes]:
    """The files that a job leaves, and the names of all that it only had while it was at work."""
    result = {}
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        if PASSING.search(name):
            result[name] = b""
        elif path.is_file() and any(f"{name}/".startswith(f"{whole}/") for whole in kept):
            result[name] = timeless(path, place)
    return result


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> dict[str, tuple[object, object]]:
    """The files that are not the same in both, and the first place where they are not."""
    result: dict[str, tuple[object, object]] = {}
    for name in sorted({*one, *other}):
        a, b = one.get(name), other.get(name)
        if a is not None and b is not None and a != b:
            pairs = enumerate(zip(a, b, strict=False))
            at = max(next((n for n, (x, y) in pairs if x != y), min(len(a), len(b))) - 40, 0)
            a, b = a[at : at + 100], b[at : at + 100]
        if a != b:
            result[name] = a, b
    return result


def timeless(path: Path, place: Path) -> bytes:
    """A file's content, without what differs from run to run in results.json."""
    if path.name != "results.json":
        return path.read_bytes()
    content = json.loads(path.read_text(encoding="utf-8").replace(str(place), ""))
    for name in TIMED:
        del content[name]
    del content["vectors"]["reused"]
    return json.dumps(content).encode()


def ended(child: int, after: float | None, sent: signal.Signals) -> tuple[int, float]:
    """The status of a run that is sent a signal after so many seconds, and how long it took."""
    started = time.monotonic()
    while True:
        process, status = os.waitpid(child, os.WNOHANG)
        passed = time.monotonic() - started
        if process:
            return os.waitstatus_to_exitcode(status), passed
        if after is not None and passed >= after:
            os.kill(child, sent)
            after = None
        time.sleep(0.001)


def broken(
    folder: Path, words: Sequence[str], kept: Sequence[str], signals: Sequence[signal.Signals],
    draw: random.Random,
) -> tuple[int, int]:  # fmt: skip
    """Stop a job by each signal; how many of them found something of it, and its milliseconds."""
    whole, place = folder / "whole", folder / "broken"
    child = begin(whole, words)
    started = time.monotonic()
    first = None
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if first is None and any(whole.rglob("*.yaml")):
            first = time.monotonic() - started
        time.sleep(0.001)
    seconds = time.monotonic() - started
    wanted = contents(whole, kept)
    assert first is not None, whole.with_suffix(".log").read_text()
    assert all(any(name.startswith(one) for name in wanted) for one in kept), wanted.keys()

    found, waiting = 0, list(signals)  # from its end: nothing is killed before others are asked
    while True:
        child = begin(place, words)
        after = draw.uniform(first, seconds) if waiting else None
        status, took = ended(child, after, waiting[-1] if waiting else signal.SIGKILL)
        log = place.with_suffix(".log").read_text()
        if status == 0:
            found_now = contents(place, kept)
            assert found_now == wanted, differing(found_now, wanted)
            shutil.rmtree(place)
            if not waiting:
                return found, round(1000 * seconds)
            first, seconds = first * took / seconds, took  # the machine is quicker now
            continue
        sent = waiting.pop()
        left = contents(place, kept)
        found += any(name in wanted for name in left)
        if sent == signal.SIGKILL:
            assert status == -sent, log
            continue
        assert (status, log.splitlines()[-1]) == ASKED[sent], log
        assert "Traceback" not in log, log
        assert not [name for name in left if PASSING.search(name)], left.keys()


folder, seed = Path(sys.argv[1]), int(sys.argv[3])
times = [int(n) for n in sys.argv[2].split(",")]
draw = random.Random(seed)
for name, (words, kept) in json.loads(sys.argv[4]).items():
    signals = [s for s, n in zip((signal.SIGKILL, *ASKED), times, strict=True) for _ in range(n)]
    found, milliseconds = broken(folder / name, words, kept, signals, draw)
    counts = {"stops": len(signals), "found": found, "milliseconds": milliseconds}
    sys.stdout.write(json.dumps({name: counts}) + "\n")
    sys.stdout.flush()
