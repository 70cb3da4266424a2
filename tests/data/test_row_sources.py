"""Inputs by name."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from whitepool.data import hub
from whitepool.data.row_sources import RowSource, open_input
from whitepool.errors import UserError

TEXTS = ["a dog", "a cat, two", "the end"]
CONTENT = {
    "x.txt": "\n".join(TEXTS),
    "x.jsonl": "".join(f'{{"text": "{text}"}}\n' for text in TEXTS),
    "x.csv": "text\n" + "".join(f'"{text}"\n' for text in TEXTS),
    "x.tsv": "text\tn\n" + "".join(f"{text}\t1\n" for text in TEXTS),
}


def texts(sources: list[RowSource]) -> list[str]:
    return [row.text for source in sources for row in source.read()]


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("gzipped", [False, True])
def test_files(tmp_path: Path, name: str, gzipped: bool) -> None:
    path = tmp_path / (f"{name}.gz" if gzipped else name)
    raw = b"\xef\xbb\xbf" + CONTENT[name].encode()
    path.write_bytes(gzip.compress(raw) if gzipped else raw)
    (source,) = open_input(str(path))
    assert texts([source]) == TEXTS
    assert (source.name, source.bytes, source.count()) == (path.name, path.stat().st_size, 3)
    assert {row.file for row in source.read()} == {str(path)}


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "x.parquet")
    (source,) = open_input(str(tmp_path / "x.parquet"))
    assert (texts([source]), source.count()) == (TEXTS, 3)


def test_rows_are_counted_not_lines(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('text\n"a\nb"\n\nc\n', encoding="utf-8")
    (tmp_path / "y.csv").write_text("", encoding="utf-8")
    first, second = open_input([str(tmp_path / "x.csv"), str(tmp_path / "y.csv")])
    assert (len(list(first.read())), first.count()) == (3, 3)
    assert (len(list(second.read())), second.count()) == (0, 0)


def test_patterns_go_by_name_and_formats_may_mix(tmp_path: Path) -> None:
    for name, content in CONTENT.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    sources = open_input(str(tmp_path / "x.*"))
    assert [source.name for source in sources] == sorted(CONTENT)
    assert texts(sources) == TEXTS * 4


def test_the_format_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "x.data").write_text(CONTENT["x.tsv"], encoding="utf-8")
    path = str(tmp_path / "x.data")
    assert texts(open_input(path, format="tsv")) == TEXTS
    assert [row.id for row in open_input(path, format="tsv", id="n")[0].read()] == ["1"] * 3
    assert texts(open_input(path, format="text"))[0] == "text\tn"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO(CONTENT["x.jsonl"].encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=raw))
    (source,) = open_input("-", format="jsonl")
    assert (source.name, source.bytes, source.count()) == ("-", None, None)
    assert texts([source]) == TEXTS


def test_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test.jsonl.gz"
    path.write_bytes(gzip.compress(CONTENT["x.jsonl"].encode()))
    asked: list[Any] = []

    def download(*arguments: Any) -> list[Path]:
        asked.append(arguments)
        return [path]

    monkeypatch.setattr(hub, "download", download)
    (source,) = open_input("me/it", format="hub", revision="c0ffee", split="test", folder="en")
    assert asked[0][:4] == ("me/it", "c0ffee", "test", "en")
    assert (texts([source]), source.count()) == (TEXTS, 3)
    assert source.name == "me/it@c0ffee/test.jsonl.gz"
    assert next(source.read()).file == source.name


def test_an_unpinned_data_set_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hub, "download", lambda *arguments: [])
    open_input("me/it", format="hub")
    assert "me/it is unpinned" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": "nowhere.txt"}, "input=nowhere.txt does not exist"),
        ({"input": "*.none"}, "no file matches input=*.none"),
        ({"input": "x.data"}, "x.data: its extension is none of .txt, .jsonl"),
        ({"input": "x.txt", "format": "xml"}, "read.format is 'xml': choose one of text, jsonl"),
        ({"input": "x.txt", "column": "a"}, "the format text has no columns: leave read.column=a"),
        ({"input": "x.txt", "id": "a"}, "leave read.id=a out"),
        ({"input": "-", "id": "a"}, "leave read.id=a out"),
        ({"input": "-", "format": "parquet"}, "Parquet cannot be read from standard input"),
        ({"input": "x.txt", "split": "a"}, "read.split=a is for read.format=hub"),
        ({"input": ["a", "b"], "format": "hub"}, "read.format=hub reads one data set"),
    ],
)
def test_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.data").touch()
    Path("x.txt").touch()
    with pytest.raises(UserError) as error:
        open_input(**arguments)
    assert message in str(error.value)


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (source,) = open_input(str(tmp_path / "x.parquet"))
    for call in (source.count, lambda: list(source.read())):
        with pytest.raises(UserError, match=r'pip install "whitepool\[data\]"'):
            call()
