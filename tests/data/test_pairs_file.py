from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.data import pairs_file
from whitepool.errors import UserError

COLUMNS = ("sentence1", "sentence2", "score")
HEADER = "\t".join(COLUMNS) + "\n"
SCORES = st.floats(allow_nan=False, allow_infinity=False)
ANY_TEXT = st.text()
FLAT_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n"))


def read(content: str | bytes, name: str) -> list[tuple[str, str, float]]:
    raw = content if isinstance(content, bytes) else content.encode()
    return list(pairs_file.read_rows(raw, Path(name), COLUMNS))


def fault_of(content: str | bytes, name: str) -> str:
    with pytest.raises(UserError) as fault:
        read(content, name)
    return str(fault.value)


def rows_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str, float]]]:
    return st.lists(st.tuples(text, text, SCORES), max_size=8)


@settings(deadline=None)
@given(rows_of(FLAT_TEXT), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_tsv_round_trip(rows: list[tuple[str, str, float]], bom: bool, end: str) -> None:
    lines = ["\t".join(COLUMNS), *(f"{a}\t{b}\t{score!r}" for a, b, score in rows)]
    raw = "".join(line + end for line in lines).encode("utf-8-sig" if bom else "utf-8")
    assert read(raw, "x.tsv") == rows


@settings(deadline=None)
@given(rows_of(ANY_TEXT), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_csv_round_trip(rows: list[tuple[str, str, float]], bom: bool, end: str) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator=end)
    writer.writerows([COLUMNS, *((a, b, repr(score)) for a, b, score in rows)])
    raw = file.getvalue().encode("utf-8-sig" if bom else "utf-8")
    assert read(raw, "x.csv") == rows


@settings(deadline=None)
@given(rows_of(ANY_TEXT), st.booleans(), st.sampled_from(["x.jsonl", "x.json", "x.JSONL"]))
def test_json_lines_round_trip(
    rows: list[tuple[str, str, float]], ascii_only: bool, name: str
) -> None:
    records = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in records]
    assert read("".join(line + "\n" for line in lines), name) == rows


@settings(deadline=None)
@given(rows_of(ANY_TEXT))
def test_parquet_round_trip(rows: list[tuple[str, str, float]]) -> None:
    assert read(parquet(rows), "x.parquet") == rows


def parquet(rows: list[tuple[object, object, object]], names: tuple[str, ...] = COLUMNS) -> bytes:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = [pa.array([row[i] for row in rows]) for i in range(3)]
    if not rows:
        columns = [pa.array([], pa.string()), pa.array([], pa.string()), pa.array([], pa.float64())]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=list(names)), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.jsonl"])
@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n", "\n  \n\n"])
def test_blank_lines_at_the_end_are_no_rows_and_within_are_errors(name: str, end: str) -> None:
    row = '{"sentence1": "a", "sentence2": "b", "score": 1}'
    header = ""
    if name != "x.jsonl":
        header = HEADER.replace("\t", "\t" if name == "x.tsv" else ",")
        row = "a\tb\t1" if name == "x.tsv" else "a,b,1"
    assert read(f"{header}{row}{end}", name) == [("a", "b", 1.0)]
    within = fault_of(f"{header}{row}\n\n{row}{end}", name)
    assert f"{name}, line {3 if header else 2}: " in within


def test_spaces_at_the_end_of_the_last_sentence_stay() -> None:
    content = "score,sentence1,sentence2\n1,a,b  "
    for end in ("", "\n", "\r\n\r\n", "\n  \n"):
        assert read(content + end, "x.csv") == [("a", "b  ", 1.0)]
        assert read((content + end).replace(",", "\t"), "x.tsv") == [("a", "b  ", 1.0)]


def test_tsv_has_no_quoting() -> None:
    content = HEADER + 'a "lone\tb\u2028\x85c\t1\n"d\te"\t2\n\n'
    assert read(content, "x.tsv") == [('a "lone', "b\u2028\x85c", 1.0), ('"d', 'e"', 2.0)]


def test_columns_are_found_by_name_in_any_order() -> None:
    content = "id\tscore\tsentence2\tsentence1\n7\t3\tb\ta\n"
    assert read(content, "x.TSV") == [("a", "b", 3.0)]


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n", "\r\n\r\n"])
def test_csv_ends_in_any_way(end: str) -> None:
    content = 'sentence1,sentence2,score\n"a\n\n""x""",b,1' + end
    assert read(content, "x.csv") == [('a\n\n"x"', "b", 1.0)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,y", "x.csv, line 5: 2 columns found, 3 needed; correct it or fetch the file again."),
        (
            "x,y,z,1",
            "x.csv, line 5: 4 columns found, 3 needed; correct it or fetch the file again.",
        ),
        ("", "x.csv, line 5: 0 columns found, 3 needed; correct it or fetch the file again."),
        (
            "x,y,",
            "x.csv, line 5: the score '' is not a number; correct it or fetch the file again.",
        ),
        ("x,y,nan", "x.csv, line 5: the score 'nan' is not finite; correct it or fetch the file"),
        ('"x"y,z,1', "x.csv, line 5: not valid CSV (',' expected after '\"'); quote the field, "),
        ('"x,y,1', "x.csv, line 5: not valid CSV (unexpected end of data); quote the field, "),
    ],
)
def test_a_malformed_csv_row_is_named_by_its_first_line(row: str, message: str) -> None:
    content = f'sentence1,sentence2,score\n"two\nlines\n",b,1\n{row}\na,b,1\n'
    assert fault_of(content, "x.csv").startswith(message)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a\tb", "2 columns found, 3 needed"),
        ("a\tb\tc\t1", "4 columns found, 3 needed"),
        ("", "1 columns found, 3 needed"),
        ("a\tb\tNaN", "the score 'NaN' is not finite"),
    ],
)
def test_a_malformed_tsv_row_is_named(row: str, reason: str) -> None:
    message = f"x.tsv, line 3: {reason}; correct it or fetch the file again."
    assert fault_of(f"{HEADER}a\tb\t1\n{row}\na\tb\t1\n", "x.tsv") == message


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON; write one object per line."),
        ("", "not valid JSON; write one object per line."),
        ("[1]", "not a JSON object; write one object per line."),
        ('{"sentence1": "a", "score": 1}', "no column sentence2 (columns found: sentence1, score)"),
        (
            '{"sentence1": "a", "sentence2": 5, "score": 1}',
            "sentence2 is 5, not a text; correct it.",
        ),
        (
            '{"sentence1": "a", "sentence2": "\\ud800", "score": 1}',
            "sentence2 has a lone surrogate, not a character; correct it.",
        ),
        ('{"sentence1": "a", "sentence2": "b", "score": NaN}', "the score nan is not finite"),
        ('{"sentence1": "a", "sentence2": "b", "score": true}', "the score True is not a number"),
        ('{"sentence1": "a", "sentence2": "b", "score": null}', "the score None is not a number"),
    ],
)
def test_a_malformed_json_line_is_named(line: str, reason: str) -> None:
    good = '{"sentence1": "a", "sentence2": "b", "score": 1}\n'
    assert fault_of(f"{good}{line}\n{good}", "x.jsonl").startswith(f"x.jsonl, line 2: {reason}")


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_an_absent_column_lists_those_found(name: str) -> None:
    content = "sentence1,text2,score\n".replace(",", "\t" if name == "x.tsv" else ",")
    assert fault_of(content, name) == (
        f"{name}, line 1: no column sentence2 (columns found: sentence1, text2, score); correct "
        "the file, or name its columns with data.first=, data.second= and data.score=."
    )
    assert "the file is empty" in fault_of("", "x.csv")


def test_a_repeated_column_is_refused() -> None:
    assert "line 1: several columns score (columns found: " in fault_of(
        "sentence1\tscore\tsentence2\tscore\n", "x.tsv"
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((None, "b", 1.0), "sentence1 is None, not a text; correct it."),
        (("a", None, 1.0), "sentence2 is None, not a text; correct it."),
        (("a", "b", None), "the score None is not a number; correct it or fetch the file again."),
        (("a", "b", math.inf), "the score inf is not finite; correct it or fetch the file again."),
    ],
)
def test_a_malformed_parquet_row_is_named(row: tuple[object, object, object], reason: str) -> None:
    assert fault_of(parquet([("a", "b", 1.0), row]), "x.parquet") == f"x.parquet, row 2: {reason}"


def test_parquet_takes_integers_and_float32() -> None:
    assert read(parquet([("a", "b", 3)]), "x.parquet") == [("a", "b", 3.0)]
    assert read(parquet([("a", "b", np.float32(0.5))]), "x.parquet") == [("a", "b", 0.5)]


def test_a_damaged_parquet_file_is_refused() -> None:
    message = "x.parquet: not a valid Parquet file; fetch the file again."
    assert fault_of(b"PAR1 no", "x.parquet") == message
    assert fault_of(b"", "x.parquet") == message


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert fault_of(b"", "x.parquet") == (
        'x.parquet needs pyarrow to be read: pip install "whitepool[data]".'
    )


@pytest.mark.parametrize(("name", "shown"), [("x.txt", "'.txt'"), ("pairs", "''")])
def test_an_unknown_extension_lists_the_known_ones(name: str, shown: str) -> None:
    assert fault_of(b"", name) == (
        f"{name}: unknown extension {shown}; use one of .tsv, .csv, .jsonl, .json, .parquet."
    )


def test_columns_by_number_have_no_header() -> None:
    raw = b'"a, ""b""",x,c,1.5\n"d\n",y,e,2\n'
    found = list(pairs_file.read_rows(raw, Path("x.csv"), (0, 2, 3)))
    assert found == [('a, "b"', "c", 1.5), ("d\n", "e", 2.0)]
    raw = b"1\ta\tb\t0\n2\tc\td\t1\n"
    assert list(pairs_file.read_rows(raw, Path("x.tsv"), (2, 1, 3))) == [
        ("b", "a", 0),
        ("d", "c", 1),
    ]


@pytest.mark.parametrize(
    ("columns", "name", "message"),
    [
        (
            (0, 1, 4),
            "x.tsv",
            "x.tsv, line 1: columns 0, 1, 4 were asked for of 4; give three numbers from 0 to 3 "
            "where there is no header, three names where there is one, with data.first=, "
            "data.second= and data.score=.",
        ),
        ((0, "b", 2), "x.tsv", "x.tsv, line 1: columns 0, b, 2 were asked for of 4; give three"),
        ((0, 1, -1), "x.tsv", "x.tsv, line 1: columns 0, 1, -1 were asked for of 4; give three"),
        ((0, 1, 2), "x.jsonl", "x.jsonl: columns by number, as 0, are for .tsv and .csv; give"),
    ],
)
def test_columns_by_number_that_cannot_be(columns: Any, name: str, message: str) -> None:
    with pytest.raises(UserError) as fault:
        list(pairs_file.read_rows(b"1\ta\tb\t0\n", Path(name), columns))
    assert str(fault.value).startswith(message)
