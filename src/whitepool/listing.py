"""`--list GROUP`: the choices of a group, each with what its file says of it.

What is said is the first sentence of the comment at the head of the file. Published experiments,
which have no files, are named alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from whitepool.errors import UserError
from whitepool.published import experiments

WORD = "--list"
OTHER_NAMES = {
    "heads": "pooling", "maps": "whitening", "corpora": "corpus", "analyses": "analysis",
    "datasets": "data", "tasks": "data",
}  # fmt: skip


def asked(arguments: Sequence[str]) -> str | None:
    """The word behind `--list`, empty where there is none; None where nothing is to be listed."""
    for place, argument in enumerate(arguments):
        if argument == WORD:
            return " ".join(arguments[place + 1 :])
        if argument.startswith(f"{WORD}="):
            return argument.partition("=")[2]
    return None


def show(conf: Path, command: str, word: str) -> None:
    """Print the choices of a group.

    Args:
        conf: the folder of configurations.
        command: ``evaluate``, ``train`` or ``encode``.
        word: the group, ``model`` or ``models``; ``heads`` are those of ``pooling``.

    Raises:
        UserError: there is no such group.
    """
    groups = groups_of(conf / f"{command}.yaml")
    group = OTHER_NAMES.get(word, word)
    group = group if group in groups else group.removesuffix("s")
    if group not in groups:
        close = difflib.get_close_matches(word, [*groups, *OTHER_NAMES], n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"{f'{WORD} {word}'.strip()}: {hint}give one of {', '.join(groups)}.")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, says in choices(conf / group).items():
        table.add_row(name, says)
    console = Console(highlight=False, markup=False)
    console.print(f"Choices of {group}= for {command}:", soft_wrap=True)
    console.print(table)


def groups_of(config: Path) -> list[str]:
    """The groups that a command's configuration chooses from, in its order."""
    content = OmegaConf.to_container(OmegaConf.load(config), resolve=False)
    assert isinstance(content, dict)
    named = [str(key) for entry in content["defaults"] if isinstance(entry, dict) for key in entry]
    return [name for name in named if not name.startswith(("override ", "/", "schema"))]


def choices(folder: Path) -> dict[str, str]:
    """Name -> what its file says of it, sorted by name."""
    found = {path.stem: first_sentence(path) for path in folder.glob("*.yaml")}
    if folder.name == "experiment":
        found |= {name: "" for name in experiments.by_experiment() if name not in found}
    return dict(sorted(found.items()))


def first_sentence(path: Path) -> str:
    """The first sentence of the comment that a file begins with; empty where there is none."""
    comment: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    # A stop behind "et al" or an initial ends no sentence.
    return re.split(r"(?<![ .]al)(?<!\b[A-Z])\.\s", " ".join(comment), maxsplit=1)[0].rstrip(".")
