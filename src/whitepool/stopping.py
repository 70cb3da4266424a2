"""Runs that are told to stop: by Ctrl-C (SIGINT), or by a system or scheduler (SIGTERM).

Both are an exception, so that what was opened is closed and what is half-written is removed; then
the exit status is that of shells, 128 and the number of the signal.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM came. What deals with Ctrl-C deals with it."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Have SIGTERM raise `Terminated` within the block; in the main thread, which gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def exit_status(stop: KeyboardInterrupt) -> int:
    """The exit status of a run that was stopped, once its end is said on stderr."""
    terminated = isinstance(stop, Terminated)
    sys.stderr.write("Terminated.\n" if terminated else "Interrupted.\n")
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)


@contextmanager
def unmasked() -> Iterator[None]:
    """Have what a library made of a stop be that stop again.

    Lightning makes an exit of its own of it, and what others do on their way out can fail.

    Raises:
        KeyboardInterrupt: what is raised in the block was raised while one was dealt with.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if (stop := _stop_behind(error)) is None:
            raise
        raise stop from None


def _stop_behind(error: BaseException) -> KeyboardInterrupt | None:
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__cause__ or seen.__context__
    return seen
