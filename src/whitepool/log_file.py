"""The log file of a run, which may go missing and never stops it."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress


class LogFile(logging.FileHandler):
    """A log file that says once, on stderr, that it can no longer be written."""

    def __init__(self, filename: str) -> None:
        super().__init__(filename, encoding="utf-8", errors="backslashreplace")
        self._told = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Say so where the disk refuses, in place of a traceback for each line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._told:
            self._told = True
            what = error.strerror or str(error)
            sys.stderr.write(f"The log {self.baseFilename} ends here ({what}).\n")

    def close(self) -> None:
        """Close the file; what its disk does not take is gone."""
        with suppress(OSError):
            super().close()
