"""Keys and passwords: refused on the command line, which results keep, and cut out of logs.

What is a secret: the value of an environment variable whose name ends as one of a key does
(``WANDB_API_KEY``, ``HF_TOKEN``), and user and password in an address (``https://user:pass@host``).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence

from whitepool.errors import CREDENTIALS, UserError

SHORTEST = 8  # characters of a value that is looked for
VARIABLES = re.compile(r"(?i)(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)$")
SETTINGS = re.compile(r"(?i)(^|[._])(api_?key|token|secret|password|passwd)$")
FORMS = re.compile(r"\bhf_[A-Za-z0-9]{20,}")
HIDDEN = "***"


def held() -> dict[str, str]:
    """Secrets of the environment: variable -> value, the longest first."""
    found = {
        name: value
        for name, value in os.environ.items()
        if VARIABLES.search(name) and len(value) >= SHORTEST
    }
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def hidden(text: str) -> str:
    """A text without the secrets in it."""
    for value in held().values():
        text = text.replace(value, HIDDEN)
    return CREDENTIALS.sub(f"{HIDDEN}@", FORMS.sub(HIDDEN, text))


def refuse(words: Sequence[str]) -> None:
    """See that no word of a command line holds a secret, before anything is written.

    Raises:
        UserError: one does; the message names its setting alone.
    """
    for word in words:
        setting = word.partition("=")[0].lstrip("+~")
        if (hidden(word) != word) or SETTINGS.search(setting):
            shown = setting if hidden(setting) == setting else "an override"
            raise UserError(
                f"{shown} holds a key or password, which the results would keep: leave it out, and "
                "give it as an environment variable (WANDB_API_KEY, HF_TOKEN) or in ~/.netrc."
            )


class Formatter(logging.Formatter):
    """Log lines without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, its traceback included."""
        return hidden(super().format(record))
