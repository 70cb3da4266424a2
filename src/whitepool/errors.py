"""The one exception that a user is meant to read."""

from __future__ import annotations

import re

LONGEST = 1200  # characters of a message
END = 400  # of them at its end, where the remedy stands
CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")  # https://user:password@host


class UserError(ValueError):
    """Something the user can put right: one plain sentence that names the fault and the remedy.

    The command line prints it without a traceback; `HYDRA_FULL_ERROR=1` shows the traceback.
    What a message quotes can be any text of any length, so it is put through `in_one_line`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


def in_one_line(message: str) -> str:
    """A message that a terminal, a log and a UTF-8 file take: printable, no credentials, not long.

    Line ends become spaces, other characters that do not print their escapes.
    """
    message = CREDENTIALS.sub("***@", message)
    if len(message) > LONGEST:
        message = f"{message[: LONGEST - END]} … {message[-END:]}"
    return printable(re.sub(r"\s*[\r\n]\s*", " ", message))


def printable(text: str) -> str:
    """A text with the escapes of characters that do not print, as lone surrogates and controls."""
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)
