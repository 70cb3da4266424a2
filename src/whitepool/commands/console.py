"""`whitepool COMMAND …`: which command is meant, and what it is told.

Nothing heavy is imported before a command is chosen.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

from whitepool.errors import UserError
from whitepool.stopping import exit_status, stoppable

Run = Callable[[Sequence[str]], int]


class Command(NamedTuple):
    """A word of the command line.

    Attributes:
        says: what it does, in one line.
        run: takes the arguments behind the word, and gives the exit status.
    """

    says: str
    run: Run


def _later(module: str, *first: str) -> Run:
    """`run` of a module of this package, imported when it is called."""

    def run(arguments: Sequence[str]) -> int:
        function = import_module(f"whitepool.commands.{module}").run
        status: int = partial(function, *first)(arguments)
        return status

    return run


COMMANDS: Mapping[str, Command] = {
    "evaluate": Command(
        "score sentence embeddings on semantic textual similarity, raw and whitened",
        _later("hydra_job", "evaluate"),
    ),
    "train": Command(
        "fit whitening and the like on unlabelled text, and keep a recipe",
        _later("hydra_job", "train"),
    ),
    "encode": Command(
        "encode texts of any number into a folder of vectors",
        _later("hydra_job", "encode"),
    ),
    "export": Command("write a recipe as a folder for sentence-transformers", _later("export")),
    "compare": Command(
        "what one run scores above another, with intervals and p-values", _later("compare")
    ),
    "cache": Command("list or clear the models, data and vectors that are kept", _later("cache")),
}
HELP = ("--help", "-h")
VERSION = ("--version", "-V")
COMPLETION = ("-sc", "--shell_completion")
LIST = "--list"


def main() -> int:
    """Run what the command line asks for; the exit status, 1 after an error."""
    try:
        with stoppable():
            return _run(sys.argv[1:])
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        return exit_status(stop)


def _run(arguments: Sequence[str]) -> int:
    name, *rest = arguments or HELP
    if name in VERSION or (name in COMMANDS and any(word in VERSION for word in rest)):
        sys.stdout.write(f"whitepool {version('whitepool')}\n")
        return 0
    if name in HELP:
        sys.stdout.write(usage())
        return 0
    if name in COMPLETION:
        return _later("completion")(rest)
    if name.partition("=")[0] == LIST:  # evaluate has every group
        return COMMANDS["evaluate"].run(arguments)
    if name not in COMMANDS:
        raise UserError(unknown(name))
    return COMMANDS[name].run(rest)


def usage() -> str:
    """The commands, in one line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.says}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: whitepool COMMAND [NAME=VALUE …]",
            "",
            "Sentence embeddings from a frozen pretrained language model.",
            "",
            *lines,
            "",
            "whitepool COMMAND --help lists what a command takes; whitepool --version says which",
            'whitepool this is; eval "$(whitepool -sc install=bash)" completes words with Tab.',
            "",
        ]
    )


def unknown(name: str) -> str:
    """What to say of a word that is no command."""
    choices = ", ".join(COMMANDS)
    close = difflib.get_close_matches(name.removesuffix(".py"), COMMANDS, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no command {name!r}: {hint}The commands are {choices}."


if __name__ == "__main__":
    sys.exit(main())
