"""Tab completion: commands, and behind one of them what Hydra knows of its groups and settings.

A shell hands over the line that is being typed in ``COMP_LINE``. Hydra expects a line of one
program without commands, so the command is cut out of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from whitepool.commands.console import COMMANDS

LINE = "COMP_LINE"
OWN = {
    "export": ("recipe=", "output=", "overwrite="),
    "compare": ("stage=", "bootstrap=", "seed="),
    "cache": ("list", "clear"),
}


def run(arguments: Sequence[str]) -> int:
    """Answer ``-sc install=bash``, ``-sc uninstall=bash`` and ``-sc query=bash``."""
    program, *words = os.environ.get(LINE, "").split() or [""]
    asked = any(argument.startswith("query=") for argument in arguments)
    if asked and not (words and words[0] in COMMANDS):
        sys.stdout.write(" ".join(COMMANDS))
        return 0
    command, *rest = words if asked else ["evaluate"]
    if command in OWN:
        sys.stdout.write(" ".join(OWN[command]))
        return 0
    from whitepool.commands import hydra_job

    if asked:
        open_word = "" if rest and not os.environ[LINE].endswith(" ") else " "
        os.environ[LINE] = " ".join([program, *rest]) + open_word
    hydra_job.run(command, ["-sc", *arguments])
