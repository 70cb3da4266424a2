"""Tables on the terminal in Markdown, and everything in a JSON file."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from whitepool.quiet import quiet_libraries

WIDTH = 240  # tables are for a file as much as for a terminal, and are never cut


def quiet() -> None:
    """Leave out what libraries say about themselves."""
    import transformers

    quiet_libraries()
    transformers.logging.disable_progress_bar()
    for name in ("pytorch_lightning", "whitepool"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*save all targets and predictions.*")


def say(text: str) -> None:
    """One paragraph."""
    Console(highlight=False, soft_wrap=True, markup=False).print(text)


def table(rows: Sequence[Mapping[str, str]]) -> None:
    """Rows with the same columns."""
    shown = Table(box=box.MARKDOWN, pad_edge=True)
    for i, column in enumerate(rows[0]):
        shown.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row.values())
    console = Console(highlight=False, width=WIDTH)
    with console.capture() as captured:
        console.print(shown)
    lines = (line.rstrip() for line in captured.get().splitlines())
    say("\n".join(line for line in lines if line))


def machine(facts: Mapping[str, Any]) -> None:
    """What the numbers below were measured on."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    say(
        f"{facts['date']}: {facts['processor']}, {facts['cores']} cores, {facts['threads']} "
        f"threads, {' '.join(facts['instructions'])}; {facts['system']}; {versions}"
    )


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` as JSON; numbers that are not finite become null."""
    text = json.dumps(_plain(content), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
