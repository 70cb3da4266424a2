"""Rows of Parquet files, good and bad; see `whitepool.data.rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from whitepool.data.corpus_files import ROWS, require
from whitepool.data.parquet_file import check_rows, parquet_file
from whitepool.data.rows import SETTING, Columns, Row, columned, decode


def parquet_rows(path: Path, file: str, columns: Columns) -> Iterator[Row]:
    """Rows of a Parquet file, some thousand in memory at a time.

    Raises:
        UserError: pyarrow is not there, a column is missing, or not a valid Parquet file.
    """
    number = 0
    with parquet_file(path, file) as parquet:
        require(columns.names, parquet.schema_arrow.names, file, SETTING)
        for batch in parquet.iter_batches(batch_size=ROWS, columns=list(columns.names)):
            cells = [_values(batch.column(name)) for name in columns.names]
            for row in zip(*cells, strict=True):
                number += 1
                named = dict(zip(columns.names, row, strict=True))
                yield columned(named, columns, file, number)
        check_rows(number, parquet, file)


def _values(column: Any) -> Sequence[object]:
    """Python values of a column; of texts that are not UTF-8 too."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return list(column.to_pylist())
    raw = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else decode(value) for value in raw]
