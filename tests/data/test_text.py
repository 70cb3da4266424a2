from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from whitepool.data import text
from whitepool.errors import UserError

PATH = Path("some/file.txt")


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        (b" a \t\n", [" a \t"]),
        (b"a\r\r\n", ["a\r"]),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\rg\n".encode(), ["a\u2028b\x85c\x0bd\x0ce\x1cf\rg"]),
    ],
)
def test_lines_end_at_line_feeds_only_and_keep_their_text(raw: bytes, lines: list[str]) -> None:
    assert text.split_lines(raw, PATH) == lines


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n", "\r\n\r\n", "\n  \n ", "\n \r\n\r\n"])
def test_blank_last_lines_are_no_rows(end: str) -> None:
    assert text.row_lines(f"a\n\nb {end}".encode(), PATH)[:2] == ["a", ""]
    assert text.row_lines(f"a\n\nb{end}".encode(), PATH)[2:] == ["b"]
    assert text.row_lines(f"a\tb\n\t{end}".encode(), PATH) == ["a\tb", "\t"]
    assert text.without_blank_end(f"a\n\nb{end}") == "a\n\nb"
    assert text.row_lines(end.encode(), PATH) == []


def test_spaces_behind_the_last_row_belong_to_it() -> None:
    assert text.row_lines(b"a  \n\n", PATH) == ["a  "]
    for end in ("", "\n", "\r\n", "\n \n"):
        assert text.without_blank_end(f"a,b  {end}").rstrip() == "a,b"
    assert text.without_blank_end("a\rb\r\n\r\n") == "a\rb"


def test_invalid_utf8_is_refused_with_its_line() -> None:
    with pytest.raises(UserError) as fault:
        text.split_lines(b"\xef\xbb\xbfa\nb\n\xff\n", PATH)
    assert str(fault.value) == "some/file.txt, line 3: not valid UTF-8; convert it to UTF-8."


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as fault:
        text.read_bytes(tmp_path / "none.tsv")
    assert str(fault.value) == (
        f"{tmp_path / 'none.tsv'} cannot be read (No such file or directory): check the path."
    )
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\)"):
        text.read_bytes(tmp_path)


@pytest.mark.parametrize(("value", "score"), [("3", 3.0), (" 2.5 ", 2.5), (4, 4.0), ("-1e1", -10)])
def test_scores_are_numbers_or_their_text(value: object, score: float) -> None:
    assert text.parse_score(value, "f, line 1") == score


@pytest.mark.parametrize("value", ["", "x", "1,5", "1_0", None, True, [1], {"a": 1}, 10**400])
def test_a_score_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(UserError) as fault:
        text.parse_score(value, "f.tsv, line 7")
    assert str(fault.value) == (
        f"f.tsv, line 7: the score {value!r} is not a number; correct it or fetch the file again."
    )


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity", "1e999", float("nan")])
def test_a_score_that_is_not_finite_is_refused(value: object) -> None:
    with pytest.raises(UserError) as fault:
        text.parse_score(value, "f.tsv, line 7")
    assert f"f.tsv, line 7: the score {value!r} is not finite" in str(fault.value)


def test_checksum_is_the_sha256_of_all_parts() -> None:
    assert text.checksum(b"ab", b"c") == hashlib.sha256(b"abc").hexdigest()
