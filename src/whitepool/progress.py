"""A progress bar for encoding, shown only once it is worth showing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PATIENCE = 2.0  # seconds without a bar


class _Speed(ProgressColumn):
    """Sentences per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f}/s")


class Bar:
    """Counts sentences; see `progress_bar`."""

    def __init__(self, progress: Progress | None, total: int | None, shows_at: float) -> None:
        self._progress = progress
        self._shows_at = shows_at
        self._done = 0
        self._total = total

    @property
    def shown(self) -> bool:
        """Whether there is a bar, or will be."""
        return self._progress is not None

    def advance(self, sentences: int) -> None:
        """Count sentences that are done."""
        self._done += sentences
        if self._progress is None or time.monotonic() < self._shows_at:
            return
        if not self._progress.tasks:
            self._progress.start()
            self._progress.add_task("encoding", total=self._total)
        self._progress.update(self._progress.tasks[0].id, completed=self._done)


@contextmanager
def progress_bar(wanted: bool | None, total: int | None) -> Iterator[Bar]:
    """A bar on stderr; in a terminal it is gone when the block is left.

    Args:
        wanted: True from the start, False never, None after two seconds in a terminal, or in a
            notebook that has ipywidgets.
        total: number of sentences, None if unknown.
    """
    console = Console(stderr=True)
    # In a notebook rich draws by ipywidgets, and warns where there are none.
    drawn = find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal
    shown = drawn if wanted is None else wanted
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Speed(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console, transient=console.is_terminal) if shown else None
    try:
        yield Bar(progress, total, time.monotonic() + (PATIENCE if wanted is None else 0.0))
    finally:
        if progress is not None and progress.tasks:
            progress.stop()
