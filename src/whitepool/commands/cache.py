"""`whitepool cache list` and `whitepool cache clear vectors|assets|all`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from whitepool.commands.console import HELP
from whitepool.errors import UserError
from whitepool.fetching import cache_root
from whitepool.kept import Kept, contents, remove
from whitepool.size import format_size

USAGE = """usage: whitepool cache list
       whitepool cache clear vectors|assets|all

The cache folder holds models and data that were fetched, and vectors and moments that
evaluate keeps for later runs. It is ~/.cache/whitepool, or what WHITEPOOL_CACHE names.

  list             what is there, how large, and when it was last used
  clear vectors    remove vectors and moments; they are computed anew where they are needed
  clear assets     remove models and data; they are fetched anew where they are needed
  clear all        both

Other programs' files are never touched, and running processes are not disturbed.
"""
PARTS: Mapping[str, tuple[str, ...]] = {  # folders that a kind is in
    "vectors": ("vectors",),
    "assets": ("assets",),
    "all": ("vectors", "assets"),
}
KINDS = ("model", "data", "vectors", "moments", "unfinished", "foreign")
FOREIGN = "not whitepool's"


def run(arguments: Sequence[str]) -> int:
    """List, or clear; 1 where something that should have gone is still there.

    Raises:
        UserError: neither is asked for, or a kind that there is not.
    """
    if set(arguments) & set(HELP):
        sys.stdout.write(USAGE)
        return 0
    kinds = ", ".join(PARTS)
    match arguments:
        case ["list"]:
            return show()
        case ["clear", kind] if kind in PARTS:
            return clear(kind)
        case ["clear"]:
            raise UserError(f"whitepool cache clear needs a kind: choose one of {kinds}.")
        case ["clear", *words]:
            raise UserError(
                f"whitepool cache clear has no kind {' '.join(words)!r}: choose one of {kinds}."
            )
        case words:
            found = f"no {' '.join(words)!r}" if words else "to be told what to do"
            raise UserError(f"whitepool cache has {found}: choose list or clear.")


def show() -> int:
    """Print what is there, files of one kind and model in one line."""
    root = cache_root()
    items = contents(root)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not items:
        console.print(f"{root} holds nothing.")
        return 0
    table = Table(box=None, pad_edge=False)
    for name in ("kind", "what"):
        table.add_column(name, overflow="fold")
    for name in ("files", "size", "last used"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, str], list[Kept]] = {}
    for item in sorted(items, key=lambda item: KINDS.index(item.kind)):
        groups.setdefault((item.kind, item.what), []).append(item)
    for (kind, what), group in groups.items():
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(max(item.used for item in group)))
        name = FOREIGN if kind == "foreign" else kind
        files = f"{sum(item.files for item in group):,}"
        table.add_row(name, what, files, format_size(_size(group)), used)
    console.print(table)
    ours = [item for item in items if item.kind != "foreign"]
    console.print(f"{format_size(_size(ours))} in {root}")
    return 0


def clear(kind: str) -> int:
    """Remove what is of a kind, and print what that frees and what stays."""
    items = [
        item
        for item in contents(cache_root())
        if item.path.parent.name in PARTS[kind] and item.kind != "foreign"
    ]
    console = Console(highlight=False, markup=False, soft_wrap=True)
    gone: dict[tuple[str, str], list[Kept]] = {}
    stays: list[tuple[Kept, str]] = []
    for item in items:
        if reason := remove(item):
            stays.append((item, reason))
        else:
            gone.setdefault((item.kind, item.what), []).append(item)
    for (name, what), group in gone.items():
        console.print(f"Removed: {name} {what}, {format_size(_size(group))}")
    for item, reason in stays:
        console.print(f"Kept: {item.kind} {item.what}, {format_size(item.size)}: {reason}.")
    freed = sum(_size(group) for group in gone.values())
    console.print(f"{format_size(freed)} freed in {cache_root()}")
    return 1 if stays else 0


def _size(items: Iterable[Kept]) -> int:
    return sum(item.size for item in items)
