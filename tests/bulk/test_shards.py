"""Shards read back by the libraries that users read them with."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whitepool.bulk.reading import Window
from whitepool.bulk.settings import Settings
from whitepool.bulk.shards import check_format, narrowed, open_shard, shard_files
from whitepool.errors import UserError

WINDOWS = [
    (Window([0, 1, 4], ["a", 'b "x"\n,', None]), np.arange(12, dtype=np.float32).reshape(3, 4)),
    (Window([5], ["d"]), np.full((1, 4), 0.1, dtype=np.float32)),
]
VECTORS = np.concatenate([vectors for _, vectors in WINDOWS])


def write(folder: Path, settings: Settings, windows: Any, has_ids: bool = False) -> list[Path]:
    with open_shard(folder, 3, settings, dim=4, has_ids=has_ids) as write:
        for window, vectors in windows:
            write(window, vectors)
    return [folder / name for name in shard_files(settings, 3)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("keep_text", [False, True])
def test_parquet(tmp_path: Path, dtype: Any, keep_text: bool) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    (path,) = write(tmp_path, Settings(dtype=dtype, keep_text=keep_text), WINDOWS)
    assert path.name == "vectors-00003.parquet"
    table = pq.read_table(path)
    assert table.column_names == ["id", "vector", "text"][: 2 + keep_text]
    assert table["id"].to_pylist() == [0, 1, 4, 5]
    assert pa.types.is_fixed_size_list(table.schema.field("vector").type)
    flat = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    assert flat.dtype == dtype
    assert (flat.reshape(-1, 4) == VECTORS.astype(dtype)).all()
    if keep_text:
        assert table["text"].to_pylist() == ["a", 'b "x"\n,', None, "d"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("keep_text", [False, True])
def test_npy(tmp_path: Path, dtype: Any, keep_text: bool) -> None:
    settings = Settings(format="npy", dtype=dtype, keep_text=keep_text)
    array, index = write(tmp_path, settings, WINDOWS)
    assert (array.name, index.name) == ("vectors-00003.npy", "ids-00003.csv")
    for mode in (None, "r"):
        found = np.load(array, mmap_mode=mode, allow_pickle=False)
        assert found.dtype == dtype
        assert (found == VECTORS.astype(dtype)).all()
    with index.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["0", "1", "4", "5"]
    if keep_text:
        assert [row["text"] for row in rows] == ["a", 'b "x"\n,', "", "d"]
    else:
        assert list(rows[0]) == ["id"]


def test_ids_from_a_column(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    windows = [(Window(["x", None], ["a", None]), VECTORS[:2])]
    (path,) = write(tmp_path, Settings(), windows, has_ids=True)
    assert pq.read_table(path)["id"].to_pylist() == ["x", None]
    _, index = write(tmp_path, Settings(format="npy"), windows, has_ids=True)
    assert index.read_text(encoding="utf-8") == 'id\nx\n""\n'


@pytest.mark.parametrize("format", ["parquet", "npy"])
def test_a_failure_leaves_nothing(tmp_path: Path, format: Any) -> None:
    def windows() -> Iterator[Any]:
        yield WINDOWS[0]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(tmp_path, Settings(format=format), windows())
    assert list(tmp_path.iterdir()) == []


def test_float16_has_an_end() -> None:
    assert narrowed(np.array([[65504.0]], dtype=np.float32), "float16")[0, 0] == 65504
    with pytest.raises(UserError, match=r"a component of 70,000 does not fit float16"):
        narrowed(np.array([[1.0, -70000.0]], dtype=np.float32), "float16")


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match=r'pip install "whitepool\[data\]", or give format=npy'):
        check_format(Settings())
    check_format(Settings(format="npy"))
