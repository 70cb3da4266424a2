"""Windows of rows, their checksum, and the list of bad rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from whitepool.bulk import reading
from whitepool.bulk.reading import BadRows, Reading
from whitepool.data.row_sources import RowSource
from whitepool.data.rows import Row
from whitepool.errors import UserError


def source(*rows: Row) -> RowSource:
    def read() -> Iterator[Row]:
        yield from rows

    return RowSource("f", None, read, lambda: None)


def good(text: str, id: str | None = None) -> Row:
    return Row(text, id, "f", 1)


def bad(line: int) -> Row:
    return Row("", None, "f", line, 'no "text"')


def start(
    folder: Path, *rows: Row, on_bad: str = "error", has_ids: bool = False
) -> tuple[Reading, BadRows]:
    listed = BadRows(folder / "bad_rows.csv")
    half = len(rows) // 2
    sources = [source(*rows[:half]), source(*rows[half:])]
    return Reading(sources, on_bad, has_ids=has_ids, bad_rows=listed), listed


def test_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WINDOW", 3)
    rows, _ = start(tmp_path, *(good(str(i)) for i in range(9)))
    found = [list(rows.windows(limit)) for limit in (4, 4, 4, 4)]
    assert [[list(w.ids) for w in shard] for shard in found] == [
        [[0, 1, 2], [3]],
        [[4, 5, 6], [7]],
        [[8]],
        [],
    ]
    assert [text for shard in found for w in shard for text in w.texts] == list("012345678")
    assert rows.read == 9


def test_skipped_rows_keep_their_numbers(tmp_path: Path) -> None:
    rows, listed = start(
        tmp_path, good("a"), bad(2), bad(3), good("b"), good("c"), bad(6), on_bad="skip"
    )
    windows = [list(rows.windows(2)), list(rows.windows(2)), list(rows.windows(2))]
    assert [list(w.ids) for shard in windows for w in shard] == [[0, 3], [4]]
    assert (rows.read, rows.bad) == (6, 3)
    assert listed.publish() == tmp_path / "bad_rows.csv"
    content = (tmp_path / "bad_rows.csv").read_text(encoding="utf-8")
    quoted = '"no ""text"""'
    assert content == "file,line,reason\n" + "".join(f"f,{i},{quoted}\n" for i in (2, 3, 6))
    assert [path.name for path in tmp_path.iterdir()] == ["bad_rows.csv"]


def test_zeroed_rows_have_no_text(tmp_path: Path) -> None:
    rows, listed = start(tmp_path, good("a", "x"), bad(2), on_bad="zero", has_ids=True)
    (window,) = rows.windows(9)
    listed.close()
    assert (list(window.ids), list(window.texts)) == (["x", None], ["a", None])


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    rows, _ = start(tmp_path, good("a"), bad(2))
    with pytest.raises(UserError) as error:
        list(rows.windows(9))
    assert str(error.value).startswith('f, line 2: no "text"; correct it, or go on with on_bad=')


def test_the_checksum_tells_rows_apart(tmp_path: Path) -> None:
    inputs = [
        [good("ab"), good("c")],
        [good("a"), good("bc")],
        [good("ab", ""), good("c")],
        [good("ab", "c"), good("c")],
        [good("ab"), bad(2)],
        [good("abc")],
    ]
    found = []
    for rows in inputs:
        one, listed = start(tmp_path, *rows, on_bad="zero")
        list(one.windows(9))
        listed.close()
        found.append(one.sha256)
    assert len(set(found)) == len(inputs)


def test_no_list_without_bad_rows(tmp_path: Path) -> None:
    (tmp_path / "bad_rows.csv").touch()
    rows, listed = start(tmp_path, good("a"), on_bad="skip")
    list(rows.windows(9))
    assert listed.publish() is None
    assert list(tmp_path.iterdir()) == []


def test_an_unpublished_list_is_removed(tmp_path: Path) -> None:
    rows, listed = start(tmp_path, good("a"), bad(2), on_bad="skip")
    list(rows.windows(9))
    listed.close()
    assert list(tmp_path.iterdir()) == []
