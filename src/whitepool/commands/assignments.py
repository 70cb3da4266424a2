"""Words of the form NAME=VALUE, for commands that need no configuration."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from whitepool.errors import UserError


def assignments(
    arguments: Sequence[str], command: str, defaults: Mapping[str, str | None]
) -> dict[str, str]:
    """The value of every setting.

    Args:
        arguments: what was typed.
        command: whose settings they are, for messages.
        defaults: all settings; None for one that has to be given.

    Raises:
        UserError: no assignment, a setting that there is not, or one that is missing.
    """
    choices = ", ".join(f"{name}=" for name in defaults)
    given: dict[str, str | None] = dict(defaults)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name not in defaults:
            close = difflib.get_close_matches(name, defaults, n=1)
            hint = f"did you mean {close[0]}=? " if close else ""
            raise UserError(f"whitepool {command} takes no {argument!r}: {hint}It takes {choices}.")
        given[name] = value
    for name, found in given.items():
        if not found:
            raise UserError(f"{name} has no value: give whitepool {command} {name}=…")
    return {name: str(value) for name, value in given.items()}


def truth(name: str, value: str) -> bool:
    """A setting that is ``true`` or ``false``.

    Raises:
        UserError: it is neither.
    """
    if value not in ("true", "false"):
        raise UserError(f"{name} is {value!r}: give true or false.")
    return value == "true"
