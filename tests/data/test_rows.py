"""Rows of every format, and what makes one bad."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitepool.data.parquet_rows import parquet_rows
from whitepool.data.rows import (
    Columns,
    Row,
    csv_rows,
    json_rows,
    text_rows,
    tsv_rows,
)
from whitepool.errors import UserError

TEXT = Columns("text")
BOTH = Columns("text", "id")


def lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    return enumerate(content.splitlines(keepends=True), start=1)


def faults(rows: Iterator[Row]) -> dict[int, str]:
    return {row.line: row.fault for row in rows if row.fault}


def test_text() -> None:
    rows = list(text_rows(lines(b"a dog \r\n\nb\xff\n \t\n\xe2\x80\xa8end"), "f"))
    assert rows == [
        Row("a dog ", None, "f", 1),
        Row("", None, "f", 2, "blank"),
        Row("", None, "f", 3, "not valid UTF-8"),
        Row("", None, "f", 4, "blank"),
        Row("\u2028end", None, "f", 5),
    ]


def test_json() -> None:
    good = [{"id": 7, "text": "a\nb"}, {"text": "c", "id": "x", "more": [1]}]
    bad = {
        '{"id": 1, "text": null}': "null, not a text",
        '{"id": 1, "text": 5}': "5, not a text",
        '{"id": 1, "text": ["a"]}': "['a'], not a text",
        '{"id": 1, "text": " "}': "blank",
        '{"id": 1, "text": "\\ud800"}': "a lone surrogate, which is no character",
        '{"id": 1, "tex': "not valid JSON",
        '[1, "a"]': "not a JSON object",
        '{"id": 1, "body": "a"}': "no key text (keys found: id, body)",
        '{"text": "a"}': "no key id (keys found: text)",
        '{"id": null, "text": "a"}': "the id is null, not a text or whole number",
        '{"id": true, "text": "a"}': "the id is True, not a text or whole number",
        '{"id": 1.5, "text": "a"}': "the id is 1.5, not a text or whole number",
        '{"id": "\\udfff", "text": "a"}': "the id is not valid UTF-8",
        "": "blank",
    }
    content = "\n".join([*map(json.dumps, good), *bad, ""]).encode()
    rows = list(json_rows(lines(content + b'{"id": 2, "text": "\xe9"}'), "f", BOTH))
    assert rows[:2] == [Row("a\nb", "7", "f", 1), Row("c", "x", "f", 2)]
    assert [row.fault for row in rows[2:]] == [*bad.values(), "not valid UTF-8"]
    assert rows[-1] == Row("", "2", "f", 17, "not valid UTF-8")
    assert {row.text for row in rows[2:]} == {""}


def test_a_fault_can_be_printed_and_is_short() -> None:
    record = json.dumps({"\ud800" * 300: 1}).encode()
    (row,) = json_rows(lines(record), "f", TEXT)
    assert row.fault.startswith("no key text (keys found: \\ud800")
    assert len(row.fault) == 200
    row.fault.encode()


def test_csv() -> None:
    content = b'id,text\n1,"a ""b""\nc"\n2,d,e\n\n3,\xff\n\xfe,x\n4, \n5,\n6,end'
    rows = list(csv_rows(lines(content), "f", BOTH))
    assert [row for row in rows if not row.fault] == [
        Row('a "b"\nc', "1", "f", 2),
        Row("end", "6", "f", 10),
    ]
    assert faults(iter(rows)) == {
        4: "3 columns, 2 in the header",
        5: "blank",
        6: "not valid UTF-8",
        7: "the id is not valid UTF-8",
        8: "blank",
        9: "blank",
    }
    assert [row.id for row in rows] == ["1", None, None, "3", None, "4", "5", "6"]


def test_tsv_has_no_quoting() -> None:
    rows = list(tsv_rows(lines(b'text\tid\n"a\t1\r\n\nb\t2\t3\n'), "f", BOTH))
    assert rows[0] == Row('"a', "1", "f", 2)
    assert faults(iter(rows)) == {3: "blank", 4: "3 columns, 2 in the header"}


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n\r\n \n"])
def test_blank_lines_at_the_end_of_a_table_are_no_rows(end: bytes) -> None:
    tsv = list(tsv_rows(lines(b"text\tid\na\t1\n\nb\t2" + end), "f", BOTH))
    csv = list(csv_rows(lines(b"text,id\na,1\n\nb,2" + end), "f", BOTH))
    json = list(json_rows(lines(b'{"text": "a"}\n\n{"text": "b"}' + end), "f", TEXT))
    for rows in (tsv, csv, json):
        assert [row.text for row in rows] == ["a", "", "b"]
        assert list(faults(iter(rows)).values()) == ["blank"]
    text = list(text_rows(lines(b"a\n\nb\n\n"), "f"))
    assert [row.line for row in text if row.fault] == [2, 4]  # a sentence per line, so a row each


@pytest.mark.parametrize("read", [csv_rows, tsv_rows])
def test_a_missing_column_is_no_bad_row(read: type) -> None:
    with pytest.raises(UserError, match=r"f, line 1: no column text \(columns found: a\)") as e:
        list(read(lines(b"a\n1\n"), "f", TEXT))
    assert "read.column=" in str(e.value)
    assert list(read(lines(b""), "f", TEXT)) == []


def test_broken_quoting_is_no_bad_row() -> None:
    with pytest.raises(UserError, match="f, line 2: not valid CSV"):
        list(csv_rows(lines(b'text\n"a\nb\n'), "f", TEXT))


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    raw = pa.array([b"a", None, b"\xff", b" ", b"b"], pa.binary())
    plain = pa.StringArray.from_buffers(5, *raw.buffers()[1:], raw.buffers()[0])
    ids = pa.array([1, 2, None, 4, 5])
    path = tmp_path / "x.parquet"
    kinds = {"string": plain, "large": plain.cast(pa.binary()).cast(pa.large_binary())}
    for kind, column in kinds.items():
        if kind == "large":
            column = pa.LargeStringArray.from_buffers(  # noqa: PLW2901
                5, *column.buffers()[1:], column.buffers()[0]
            )
        pq.write_table(pa.table({"id": ids, "text": column}), path, use_dictionary=False)
        rows = list(parquet_rows(path, "f", BOTH))
        assert rows == [
            Row("a", "1", "f", 1),
            Row("", "2", "f", 2, "null, not a text"),
            Row("", None, "f", 3, "the id is null, not a text or whole number"),
            Row("", "4", "f", 4, "blank"),
            Row("b", "5", "f", 5),
        ]
        assert list(parquet_rows(path, "f", TEXT))[2].fault == "not valid UTF-8"
    pq.write_table(pa.table({"text": pa.array(["a", "b", "a"]).dictionary_encode()}), path)
    assert [row.text for row in parquet_rows(path, "f", TEXT)] == ["a", "b", "a"]
    pq.write_table(pa.table({"text": raw}), path)
    assert next(parquet_rows(path, "f", TEXT)).fault == "b'a', not a text"
    with pytest.raises(UserError, match="no column body"):
        list(parquet_rows(path, "f", Columns("body")))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match="not a valid Parquet file"):
        list(parquet_rows(path, "f", TEXT))


@given(st.lists(st.text().filter(lambda text: text.strip()), min_size=1))
def test_json_gives_every_text_back(texts: list[str]) -> None:
    content = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
    assert [row.text for row in json_rows(lines(content), "f", TEXT)] == texts


@given(st.binary())
def test_no_bytes_break_the_readers(content: bytes) -> None:
    numbered = list(enumerate(content.split(b"\n"), start=1))
    filled = [number for number, line in numbered if line.strip(b" \r\n")]
    for read, count in (
        (text_rows(iter(numbered), "f"), len(numbered)),
        (json_rows(iter(numbered), "f", TEXT), max(filled, default=0)),
    ):
        rows = list(read)
        assert len(rows) == count
        for row in rows:
            assert bool(row.fault) != bool(row.text)
            f"{row.text}{row.fault}".encode()
