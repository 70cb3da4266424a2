from __future__ import annotations

import csv
import gzip
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.data.corpus import Corpus, Text
from whitepool.data.corpus_files import (
    csv_files,
    expand,
    jsonl_files,
    parquet_files,
    text_files,
)
from whitepool.errors import UserError

AWKWARD = ['say "hi', "two\u2028parts\x85", "tab\tand, comma", " kept ", "ä 中 🦆"]


def texts(corpus: Corpus) -> list[str]:
    return [text.text for text in corpus.read()]


def write(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text(tmp_path: Path, name: str, end: str) -> None:
    path = write(tmp_path / name, ("\ufeff" + end.join(AWKWARD)).encode())
    assert list(text_files(path).read()) == [
        Text(text, f"{path}, line {i}") for i, text in enumerate(AWKWARD, start=1)
    ]


def test_blank_lines_count_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"a\n\n\nb\n\n")
    reading = text_files(path).read()
    assert [text.where for text in reading] == [f"{path}, line 1", f"{path}, line 4"]
    assert (reading.read, reading.blank) == (5, 3)


def test_several_files_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "[c].txt", "sub/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, name.encode())
    (tmp_path / "x.txt").mkdir()
    monkeypatch.chdir(tmp_path)
    assert texts(text_files("*.txt")) == ["[c].txt", "a.txt", "b.txt"]
    assert texts(text_files(["b.txt", "*.txt"])) == ["b.txt", "[c].txt", "a.txt"]
    assert texts(text_files("[c].txt")) == ["[c].txt"]
    assert texts(text_files("**/d.txt")) == ["sub/d.txt"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.txt", "corpus.path=no.txt does not exist: check the path."),
        ("no*.txt", "no file matches corpus.path=no*.txt: check the pattern."),
        (".", "corpus.path=. is a folder: give its files, as ./*."),
        ([], "corpus.path is empty: give a file, a pattern or a list of them."),
    ],
)
def test_paths_that_are_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as fault:
        expand(path)
    assert str(fault.value) == message


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_bad_utf8_is_named_with_its_line(tmp_path: Path, name: str) -> None:
    body = {"a.jsonl": b'{"text": "a"}\n{"text": "caf\xe9"}\n'}.get(name, b"text\ncaf\xe9\n")
    path = write(tmp_path / name, body)
    read = {"a.txt": text_files, "a.jsonl": jsonl_files}.get(name, csv_files)
    with pytest.raises(UserError) as fault:
        texts(read(path))
    assert str(fault.value) == f"{path}, line 2: not valid UTF-8; convert it to UTF-8."


@pytest.mark.parametrize("cut", [3, 30])
def test_damaged_gzip(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"".join(b"line %d\n" % i for i in range(99)))[:cut])
    with pytest.raises(UserError, match=r"a\.txt\.gz: not a whole gzip file \(after line "):
        texts(text_files(str(path)))


def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a")
    corpus = text_files(str(path))
    path.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        texts(corpus)


@pytest.mark.parametrize("read", [text_files, jsonl_files])
def test_an_empty_file(tmp_path: Path, read: Callable[[str], Corpus]) -> None:
    path = write(tmp_path / "a.jsonl", b"")
    with pytest.raises(UserError) as fault:
        texts(read(path))
    assert str(fault.value) == f"{path} is empty: give a source with at least one text."


def test_a_csv_of_a_header_alone_is_empty(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is empty"):
        texts(csv_files(write(tmp_path / "a.csv", b"text,id\n")))
    with pytest.raises(UserError, match="is empty"):
        texts(csv_files(write(tmp_path / "b.csv", b"")))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_jsonl(tmp_path: Path, ending: str) -> None:
    lines = [json.dumps({"id": 1, "body": text, "more": "m"}) for text in AWKWARD]
    path = write(tmp_path / f"a.jsonl{ending}", "\n".join(lines).encode() + b"\n\n")
    assert texts(jsonl_files(path, "body")) == AWKWARD
    assert texts(jsonl_files(path, ["more", "body"])) == [x for t in AWKWARD for x in ("m", t)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON; write one object per line."),
        ("[1]", "not a JSON object; write one object per line."),
        (
            '{"body": "a", "n": 1}',
            "no column text (columns found: body, n); name the texts' column with corpus.column=.",
        ),
        ('{"text": null}', "text is None, not a text; correct it."),
        ('{"text": 3}', "text is 3, not a text; correct it."),
        ('{"text": "\\ud800"}', "text has a lone surrogate, not a character; correct it."),
    ],
)
def test_jsonl_faults(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "a"}\n' + line.encode())
    with pytest.raises(UserError) as fault:
        texts(jsonl_files(path))
    assert str(fault.value) == f"{path}, line 2: {message}"


def test_csv_is_quoted_as_rfc_4180(tmp_path: Path) -> None:
    awkward = [*AWKWARD, "two\nlines", "and\r\nthree", 'a ""quote"""']
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "text"], *enumerate(awkward)])
    corpus = csv_files(str(path))
    assert texts(corpus) == awkward
    # The row after one that spans two lines stands one line further down.
    assert [text.where for text in corpus.read()][6] == f"{path}, line 9"


def test_tsv_has_no_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv.gz", b'id\ttext\n1\t"say, hi\n2\tb"\n\n')
    assert texts(csv_files(path)) == ['"say, hi', 'b"']


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        (
            "a.csv",
            b"a,b\n1,2\n",
            "line 1: no column text (columns found: a, b); name the texts' column with "
            "corpus.column=.",
        ),
        (
            "a.tsv",
            b"text\ttext\n1\t2\n",
            "line 1: several columns text (columns found: text, text); name the texts' column "
            "with corpus.column=.",
        ),
        ("a.csv", b"text,b\n1,2\n3\n", "line 3: 1 columns found, 2 in the header; correct it."),
        (
            "a.csv",
            b'text\n"never closed\n',
            "line 2: not valid CSV (unexpected end of data); quote the field, double the quotes "
            "in it, or save the table as .tsv.",
        ),
    ],
)
def test_table_faults(tmp_path: Path, name: str, body: bytes, message: str) -> None:
    path = write(tmp_path / name, body)
    with pytest.raises(UserError) as fault:
        texts(csv_files(path))
    assert str(fault.value) == f"{path}, {message}"


def test_tables_of_another_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"text\na\n")
    with pytest.raises(UserError, match=r"corpus=csv reads \.csv and \.tsv"):
        csv_files(path)


def test_parquet_is_read_row_group_by_row_group(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": range(5), "text": AWKWARD, "other": ["o"] * 5})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    path = str(tmp_path / "a.parquet")
    assert texts(parquet_files(path)) == AWKWARD
    assert [text.where for text in parquet_files(path).read()][3] == f"{path}, row 4"
    assert texts(parquet_files(path, ["text", "other"]))[:4] == [AWKWARD[0], "o", AWKWARD[1], "o"]


def test_parquet_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", None], "n": [1, 2]}), path)
    corpus = parquet_files(str(path))
    with pytest.raises(UserError, match=r"a\.parquet, row 2: text is None, not a text"):
        texts(corpus)
    with pytest.raises(UserError, match=r"a\.parquet: no column x \(columns found: text, n\)"):
        texts(parquet_files(str(path), "x"))
    with pytest.raises(UserError, match=r"a\.parquet, row 1: n is 1, not a text"):
        texts(parquet_files(str(path), "n"))
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UserError, match=r"not a valid Parquet file; fetch the file again"):
        texts(corpus)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r'needs pyarrow to be read: pip install "whitepool'):
        texts(corpus)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A quarter of a megabyte of text, and twenty times that."""
    peaks = []
    for lines in (2000, 40_000):
        path = tmp_path / f"{lines}.txt"
        path.write_bytes(b"".join(b"%0120d\n" % i for i in range(lines)))
        tracemalloc.start()
        assert sum(1 for _ in text_files(str(path)).read()) == lines
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1e5
