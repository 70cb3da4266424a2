"""Nasty texts and files through whole commands: every pair is scored, or one sentence says why."""

from __future__ import annotations

import codecs
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whole import Command

HEADER = "sentence1\tsentence2\tscore\n"
TEXTS = (
    "",
    " ",
    "a",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a\0b",
    "\0",
    "\u202eabc\u202c \u05d0\u05d1 abc",
    "\ufeffa dog",
    "\u2028",
    "a\r\nb",
    "\x1b[31mred",
    '"',
    "'" * 50,
    "\\",
    "{text}",
    "[MASK] [CLS]",
    "${oc.env:HOME}",
    "???",
    "</script><script>alert(1)</script>",
    "=1+1",
    "\u0301" * 500,
    "\U0010ffff",
    "\u200b",
    "a dog " * 16_667,
    "x" * 100_000,
)


def results(folder: Path) -> dict[str, float]:
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    rows = [s for s in content["scores"] if s["aggregate"] == "all" and s["metric"] == "spearman"]
    return {f"{row['task']} {row['stage']}": row for row in rows}


def pairs(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    names = ("sentence1", "sentence2", "score")
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_every_nasty_text_is_scored(evaluate: Command, tmp_path: Path) -> None:
    rows = [(text, TEXTS[(i + 3) % len(TEXTS)], i % 5) for i, text in enumerate(TEXTS)]
    run = evaluate(pairs(tmp_path / "x.jsonl", rows), "figures=true", "data.name='</script><b>'")
    assert run.status == 0, run.err
    for row in results(run.folder).values():
        assert row["n"] == len(TEXTS)
        assert math.isfinite(row["value"])
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "</script><b>" not in page


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a dog", "a cat", 1.0), ("a man", "a park", 1.0)] * 3, ""),  # equal scores
        ([("a dog", "a dog", float(i)) for i in range(10_000)], ""),
    ],
)
def test_what_has_no_correlation_is_undefined(
    evaluate: Command, tmp_path: Path, rows: list[tuple[str, str, float]], message: str
) -> None:
    run = evaluate(pairs(tmp_path / "x.jsonl", rows), "whitening=off")
    assert run.status == 0, run.err
    assert "undefined" in run.out
    for row in results(run.folder).values():
        assert row["n"] == len(rows)
        assert row["value"] is None


BAD = {
    "swapped": (HEADER + "3.5\ta dog\ta cat\n", "line 2: the score 'a cat' is not a number"),
    "nan": (HEADER + "a\tb\tnan\n", "line 2: the score 'nan' is not finite"),
    "infinite": (HEADER + "a\tb\t-inf\n", "line 2: the score '-inf' is not finite"),
    "overflow": (HEADER + "a\tb\t1e999\n", "line 2: the score '1e999' is not finite"),
    "grouped": (HEADER + "a\tb\t1_0\n", "line 2: the score '1_0' is not a number"),
    "digits": (HEADER + f"a\tb\t{'9' * 200_000}\n", "line 2: the score '999"),
    "long score": (HEADER + f"a\tb\t{'x' * 200_000}\n", "line 2: the score 'xxx"),
    "columns": (HEADER + "a\tb\tc\t1\n", "line 2: 4 columns found, 3 needed"),
    "twice": ("sentence1\tsentence1\tscore\na\tb\t1\n", "line 1: several columns sentence1"),
    "escapes": (
        "\x1b[2J\u202e\tb\t1\n",
        "line 1: no column sentence1 (columns found: \\x1b[2J\\u202e, b",
    ),
    "wide": ("\t".join(map(str, range(100_000))), "line 1: no column sentence1"),
    "empty": ("", "the file is empty"),
    "header": (HEADER, "holds no sentence pairs"),
    "blank": (HEADER + "\n" * 50, "holds no sentence pairs"),
    "utf-16": (
        codecs.BOM_UTF16_LE + (HEADER + "a\tb\t1\n").encode("utf-16-le"),
        "UTF-16; convert it",
    ),
    "latin-1": ((HEADER + "é\tb\t1\n").encode("latin-1"), "line 2: not valid UTF-8; convert it"),
    "gzip": (gzip.compress(HEADER.encode()), "a gzip file; unpack it"),
    "zip": (b"PK\x03\x04\xff\xff", "not valid UTF-8; convert it"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told_of_in_one_line(evaluate: Command, tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = tmp_path / "x.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    run = evaluate(path)
    assert run.status == 1
    assert str(path) in run.err
    assert message in run.err
    (line,) = run.err.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    assert len(line) < 1500
    assert "foreseen" not in line
    assert not (run.folder / "results.json").exists()


@pytest.mark.parametrize(
    "setting", ["data.path", "data.root", "recipe", "model.path", "output_dir"]
)
@pytest.mark.parametrize("value", ["", "/dev/null/x", "x" * 5000, "/proc/1/mem"])
def test_paths_that_are_none(evaluate: Command, setting: str, value: str, tmp_path: Path) -> None:
    pairs(tmp_path / "x.jsonl", [("a dog", "a cat", 1.0), ("a", "b", 2.0), ("a man", "b", 0)])
    data = "data=stsb" if setting == "data.root" else "data=pairs"
    run = evaluate(tmp_path / "x.jsonl", f"{setting}='{value}'", data)
    if run.status:
        assert run.err.splitlines()[-1].startswith("Error: ")
        assert "foreseen" not in run.err, run.err
        assert "Traceback" not in run.err


def test_a_folder_in_place_of_a_file(evaluate: Command, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").mkdir()
    run = evaluate(tmp_path / "x.tsv")
    assert run.status == 1
    assert "x.tsv cannot be read (Is a directory): check the path." in run.err


def test_encode_loses_no_row(
    command: Command, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    bad = [
        b'{"text": "\\ud800"}',
        b'{"text": 1}',
        b"{",
        b'{"text": "\xff"}',
        b"[]",
        b"{}",
        b'{"text": "a", "text": "b"}',
        b"",
        b'{"text": "  "}',
    ]
    good = [json.dumps({"text": text}).encode() for text in TEXTS]
    path.write_bytes(b"\r\n".join([*bad, *good, b'{"text": "the last"}']) + b"\n")
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", "format=npy"]
    run = command("encode", *model, f"input={path}", "output=vectors", "on_bad=zero")
    assert run.status == 0, run.err
    vectors = np.load(tmp_path / "vectors" / "vectors-00000.npy", allow_pickle=False)
    blank = sum(not text.strip() for text in TEXTS)
    assert len(vectors) == len(bad) + len(good) + 1
    assert np.isfinite(vectors).all()
    assert (vectors == 0).all(1).sum() == len(bad) + blank
    listed = (tmp_path / "vectors" / "bad_rows.csv").read_text(encoding="utf-8").splitlines()
    assert len(listed) == 1 + len(bad) + blank
