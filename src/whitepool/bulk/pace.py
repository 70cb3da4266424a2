"""How fast a run goes and how long it has to go: a bar in a terminal, else lines in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from whitepool.progress import progress_bar

log = logging.getLogger(__name__)


class Pace:
    """Counts rows that are encoded, while it is entered.

    Args:
        total: rows to encode, None if unknown.
        show: a bar, in a terminal.
    """

    def __init__(self, total: int | None, *, show: bool) -> None:
        self._total = total
        self._show = show
        self._done = 0
        self._stack = ExitStack()

    def __enter__(self) -> Pace:
        self._started = time.monotonic()
        wanted = None if self._show else False
        self._bar = self._stack.enter_context(progress_bar(wanted, self._total))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @contextmanager
    def window(self, rows: int) -> Iterator[Callable[[int], None]]:
        """A window of rows; gives what is to be told of sequences that are done.

        Repeated rows are encoded once and long ones may be in pieces, so the rest of the window's
        rows counts when the block is left.
        """
        told = 0

        def done(sequences: int) -> None:
            nonlocal told
            step = min(sequences, rows - told)
            told += step
            self._bar.advance(step)

        yield done
        self._bar.advance(rows - told)
        self._done += rows

    def tell(self, shard: int) -> None:
        """Log where the run is after a shard, where there is no bar."""
        if self._bar.shown:
            return
        seconds = max(time.monotonic() - self._started, 1e-9)
        speed = self._done / seconds
        left = None if self._total is None else max(self._total - self._done, 0)
        log.info(
            "shard %d: %s rows, %s sentences per second%s",
            shard,
            f"{self._done:,}" + (f" of {self._total:,}" if self._total is not None else ""),
            f"{speed:,.0f}",
            "" if not left else f", about {duration(left / speed)} left",
        )


def duration(seconds: float) -> str:
    """A time in words, of one or two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
