"""safetensors files of ours: named arrays, and one JSON object of metadata with a schema number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whitepool.errors import UserError

# What metadata of any JSON, and arrays of any type and shape, lead to.
NOT_OURS = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError)


@contextmanager
def opened(
    path: Path, what: str, schema: int, *, kind: str | None = None, again: str, framework: str
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A file to take arrays from, and its metadata; nothing in it is ever unpickled.

    Args:
        path: the file.
        what: how messages call such a file, ``moments``.
        schema: the number that is read.
        kind: what the metadata must call it.
        again: what to do about a file that cannot be used.
        framework: ``pt`` or ``np``, whose arrays are given.

    Raises:
        UserError: not a safetensors file, not one of ours, or of another schema; also where the
            block fails for want of an array or of a value in the metadata.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework=framework) as file:
            content = json.loads((file.metadata() or {})["whitepool"])
            if kind is not None and content["kind"] != kind:
                raise KeyError("kind")
            if content["schema"] != schema:
                raise UserError(
                    f"{path} has schema {content['schema']} and this whitepool reads {schema}: "
                    f"install a newer one, or {again}."
                )
            yield file, content
    except UserError:
        raise
    except (SafetensorError, OSError, *NOT_OURS) as error:
        raise UserError(f"{path} is not a {what} file of whitepool ({error}): {again}.") from error
