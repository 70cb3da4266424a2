"""Opening a Parquet file, and seeing that it gives the rows that its footer promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from whitepool.errors import UserError

AGAIN = "fetch the file again"


@contextmanager
def parquet_file(source: Path | bytes, where: str) -> Iterator[Any]:
    """A Parquet file, its footer read.

    Args:
        source: the file, or its content.
        where: what messages call it.

    Raises:
        UserError: pyarrow is not there, or not a valid Parquet file, also where the block finds
            that out.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as fault:
        raise UserError(
            f'{where} needs pyarrow to be read: pip install "whitepool[data]".'
        ) from fault
    try:
        with pq.ParquetFile(
            pa.BufferReader(source) if isinstance(source, bytes) else source
        ) as file:
            yield file
    except UserError:
        raise
    except UnicodeDecodeError as fault:
        raise UserError(f"{where}: a text that is not valid UTF-8; convert it to UTF-8.") from fault
    # Damaged numbers in a footer surface as errors of many kinds.
    except (pa.ArrowException, OSError, ValueError, OverflowError) as fault:
        raise UserError(f"{where}: not a valid Parquet file; {AGAIN}.") from fault


def check_rows(found: int, file: Any, where: str) -> None:
    """See that a file gave as many rows as its footer promises.

    Raises:
        UserError: it did not.
    """
    if found != (promised := file.metadata.num_rows):
        raise UserError(
            f"{where}: {found:,} rows found, {promised:,} promised by its footer; {AGAIN}."
        )
