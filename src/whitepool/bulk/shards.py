"""Shards of vectors: Parquet, or an array with an index of ids beside it.

Parquet: ``id`` (int64, or text from a column of ids), ``vector`` (fixed-size list of float32 or
float16), ``text`` if asked for; a row group per window. npy: the array (row, dim), C order, little
endian, and a CSV file with the header ``id`` or ``id,text``. Vectors are in input order.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from whitepool.bulk.reading import Window
from whitepool.bulk.settings import Settings
from whitepool.errors import UserError
from whitepool.whole_file import whole_file

Write = Callable[[Window, NDArray[np.float32]], None]
PATTERN = r"(vectors|ids)-\d{5,}\.(parquet|npy|csv)"


def shard_files(settings: Settings, index: int) -> list[str]:
    """Names of a shard's files."""
    if settings.format == "parquet":
        return [f"vectors-{index:05}.parquet"]
    return [f"vectors-{index:05}.npy", f"ids-{index:05}.csv"]


def check_format(settings: Settings) -> None:
    """See that shards can be written.

    Raises:
        UserError: pyarrow is not there, for Parquet.
    """
    if settings.format == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as fault:
            raise UserError(
                'format=parquet needs pyarrow: pip install "whitepool[data]", or give format=npy.'
            ) from fault


def open_shard(
    folder: Path, index: int, settings: Settings, *, dim: int, has_ids: bool
) -> AbstractContextManager[Write]:
    """A shard to write windows to; its files appear when the block is left without error.

    Args:
        folder: where.
        index: number of the shard, from 0.
        settings: format, number type, and whether texts are kept.
        dim: dimensions of the vectors.
        has_ids: ids are texts from a column.
    """
    paths = [folder / name for name in shard_files(settings, index)]
    if settings.format == "parquet":
        return _parquet_shard(paths[0], settings, dim, has_ids)
    return _npy_shard(paths[0], paths[1], settings, dim)


def narrowed(vectors: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Vectors, (row, dim), in the number type of the shards, little endian.

    Raises:
        UserError: a component does not fit float16.
    """
    with np.errstate(over="ignore"):
        result = vectors.astype(np.dtype(dtype).newbyteorder("<"))
    if dtype == "float16" and not np.isfinite(result).all():
        largest = float(np.abs(vectors).max())
        raise UserError(
            f"a component of {largest:,.0f} does not fit float16, which ends at 65,504: give "
            "dtype=float32 or normalize=true."
        )
    return result


@contextmanager
def _parquet_shard(path: Path, settings: Settings, dim: int, has_ids: bool) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = pa.float16() if settings.dtype == "float16" else pa.float32()
    component = pa.field("element", number, nullable=False)
    fields = [
        pa.field("id", pa.string() if has_ids else pa.int64(), nullable=has_ids),
        pa.field("vector", pa.list_(component, dim), nullable=False),
    ]
    if settings.keep_text:
        fields.append(pa.field("text", pa.string()))
    schema = pa.schema(fields)

    def write(window: Window, vectors: NDArray[np.float32]) -> None:
        flat = pa.array(narrowed(vectors, settings.dtype).ravel(), number)
        columns = [
            pa.array(window.ids, schema.field("id").type),
            pa.FixedSizeListArray.from_arrays(flat, type=schema.field("vector").type),
        ]
        if settings.keep_text:
            columns.append(pa.array(window.texts, pa.string()))
        writer.write_table(pa.Table.from_arrays(columns, schema=schema), len(window.ids))

    with whole_file(path) as file:
        # Components are as good as random: a dictionary of them or their range is of no use.
        writer = pq.ParquetWriter(file, schema, use_dictionary=False, write_statistics=["id"])
        try:
            yield write
            writer.close()
        except BaseException:
            with suppress(Exception):
                writer.close()
            writer.is_open = False  # or it would write once more when it is collected
            raise


@contextmanager
def _npy_shard(path: Path, index: Path, settings: Settings, dim: int) -> Iterator[Write]:
    rows = 0

    def write(window: Window, vectors: NDArray[np.float32]) -> None:
        nonlocal rows
        rows += len(window.ids)
        file.write(narrowed(vectors, settings.dtype).tobytes())
        for id, text in zip(window.ids, window.texts, strict=True):
            cells = ["" if id is None else id]
            table.writerow([*cells, text or ""] if settings.keep_text else cells)

    with whole_file(path) as file, whole_file(index) as raw:
        content = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(content, lineterminator="\n")
        table.writerow(["id", "text"] if settings.keep_text else ["id"])
        length = _header(file, (rows, dim), settings.dtype)
        yield write
        content.flush()
        content.detach()
        file.seek(0)
        if _header(file, (rows, dim), settings.dtype) != length:
            raise AssertionError("numpy leaves room in a header for any number of rows")


def _header(file: BinaryIO, shape: tuple[int, int], dtype: str) -> int:
    """Write the header of an array at the start of its file; returns its length."""
    header = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
    return file.tell()
