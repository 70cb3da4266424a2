from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from whitepool.data import stsb, text
from whitepool.errors import UserError

Expect = Callable[[str, str, str, int], None]
HEAD = b"main-captions\tMSRvid\t2012test\t0024\t"


def test_extra_columns_and_lone_quotes_are_harmless(tmp_path: Path, counts: Expect) -> None:
    counts("stsb", "", "test", 3)
    path = tmp_path / "sts-test.csv"
    raw = (
        HEAD
        + 'Ten.\u2028x\x85\t "Quote\n'.replace("Ten", "2.5\tTen").encode()
        + HEAD
        + b'3\tA "b" c\td"\turl\turl\r\n'
        + HEAD
        + b"0.000\t\t \n\n"
    )
    path.write_bytes(b"\xef\xbb\xbf" + raw)
    got = stsb.read_file(path, "stsb", "", "test")
    assert got.first == ("Ten.\u2028x\x85", 'A "b" c', "")
    assert got.second == (' "Quote', 'd"', " ")
    assert got.gold.tolist() == [2.5, 3.0, 0.0]
    assert got.sha256 == hashlib.sha256(b"\xef\xbb\xbf" + raw).hexdigest()
    assert (got.source, got.unjudged, got.flattened) == (str(path), 0, False)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (HEAD + b"3.0\tonly one", "6 tab-separated columns found, 7 needed"),
        (b"", "1 tab-separated columns found, 7 needed"),
        (HEAD + b"\ta\tb", "the score '' is not a number"),
        (HEAD + b"n/a\ta\tb", "the score 'n/a' is not a number"),
        (HEAD + b"nan\ta\tb", "the score 'nan' is not finite"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, row: bytes, reason: str) -> None:
    path = tmp_path / "sts-test.csv"
    path.write_bytes(HEAD + b"1\ta\tb\n" + row + b"\n" + HEAD + b"1\ta\tb\n")
    with pytest.raises(UserError) as fault:
        stsb.read_file(path, "stsb", "", "test")
    assert str(fault.value) == f"{path}, line 2: {reason}; correct it or fetch the file again."


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sts-dev.csv"
    path.write_bytes((HEAD + b"1\ta\tb\n") * 1499)
    with pytest.raises(UserError, match="1499 pairs found, 1500 expected"):
        stsb.read_file(path, "stsb", "", "dev")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(text.MissingFile) as fault:
        stsb.read_file(tmp_path / "sts-dev.csv", "stsb", "", "dev")
    assert str(fault.value) == (
        f"stsb: there is no file {tmp_path / 'sts-dev.csv'}; point data.root= at a folder that "
        "has it, or leave it out with data.allow_missing=true."
    )


def test_embedded_splits_come_from_the_asset(
    stsb_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = ModuleType("whitepool.assets")
    assets.fetch = {"stsb": stsb_folder}.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "whitepool.assets", assets)
    sizes = {s: len(stsb.read_embedded("stsb", "", s)) for s in ("train", "dev", "test")}
    assert sizes == {"train": 5749, "dev": 1500, "test": 1379}


def test_csv_defaults_would_lose_rows_of_the_real_file(shared: Path) -> None:
    path = shared / "whiteningbert" / "sts-b-test.csv"
    with path.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file, delimiter="\t"))) == 1119
    assert len(stsb.read_file(path, "stsb", "", "test")) == 1379
