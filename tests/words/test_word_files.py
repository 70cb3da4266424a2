"""Word-vector files: every form gives the same words and vectors; every fault one sentence."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import word_files as wf
from hypothesis import given
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.words import fasttext, files
from whitepool.words.table import WordTable

V = wf.vectors()


def loaded(path: Path) -> WordTable:
    return fasttext.read(path) if fasttext.is_fasttext(path) else files.read(path).table()


def check(table: WordTable, words: list[str], wanted: np.ndarray) -> None:
    assert list(table.rows) == words
    table.need(range(len(words)))
    assert np.array_equal(table.vectors, wanted)


WRITERS: dict[str, Callable[[Path], Path]] = {
    "glove": lambda p: wf.text(p, wf.WORDS, V, header=False),
    "word2vec text": lambda p: wf.text(p, wf.WORDS, V, header=True),
    "vec": lambda p: wf.text(p, wf.WORDS, V, header=True, tail=" "),
    "word2vec binary": lambda p: wf.word2vec(p, wf.WORDS, V),
    "word2vec binary with line ends": lambda p: wf.word2vec(p, wf.WORDS, V, end=b"\n"),
    "fasttext": lambda p: wf.fasttext(p, wf.WORDS, V, bucket=0, minn=0, maxn=0),
    "fasttext with labels": lambda p: wf.fasttext(
        p, wf.WORDS, V, bucket=0, minn=0, maxn=0, labels=("__label__x",)
    ),
}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_form(tmp_path: Path, form: str, zipped: bool) -> None:
    path = WRITERS[form](tmp_path / "v")
    if zipped:
        if form.startswith("fasttext"):
            pytest.skip("fastText's binary form is mapped from the file")
        path.write_bytes(gzip.compress(path.read_bytes()))
    check(loaded(path), wf.WORDS, V)


def test_chunks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 2)
    for form in ("glove", "word2vec text", "word2vec binary"):
        check(loaded(WRITERS[form](tmp_path / "v")), wf.WORDS, V)


def test_binary_larger_than_a_read(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(9000)]
    table = wf.vectors(words, 60)  # over two megabytes
    check(loaded(wf.word2vec(tmp_path / "v", words, table)), words, table)


def test_words_with_spaces_and_repeats(tmp_path: Path) -> None:
    path = tmp_path / "v"
    path.write_text("a 1 2\n. . . 3 4\na 5 6\nat x@y.z 7 8\n", encoding="utf-8")
    gathered = files.read(path)
    assert (list(gathered.rows), gathered.repeated) == (["a", ". . .", "at x@y.z"], 1)
    assert gathered.table().vectors.tolist() == [[1, 2], [3, 4], [7, 8]]


def hash_by_hand(raw: bytes) -> int:
    """FNV-1a with signed bytes, in numpy's types as a C compiler would do it."""
    value = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for byte in raw:
            value = np.uint32(
                value ^ np.uint32(np.int64(np.uint8(byte).view(np.int8)) & 0xFFFFFFFF)
            )
            value = np.uint32((int(value) * 16777619) % 2**32)
    return int(value)


@given(st.text(max_size=8))
def test_hash(text: str) -> None:
    assert fasttext.fnv1a(text.encode()) == hash_by_hand(text.encode())


def test_hash_of_known_strings() -> None:
    assert fasttext.fnv1a(b"") == 2166136261
    assert fasttext.fnv1a(b"foobar") == 0xBF9CF968  # FNV's own test vector


@pytest.mark.parametrize(("minn", "maxn"), [(1, 3), (3, 6), (0, 2)])
def test_subwords_against_a_loop_over_bytes(tmp_path: Path, minn: int, maxn: int) -> None:
    words, bucket = [*wf.WORDS, "</s>"], 11
    matrix = np.random.default_rng(1).normal(size=(len(words) + bucket, 4)).astype(np.float32)
    path = wf.fasttext(tmp_path / "v", words, matrix, bucket=bucket, minn=minn, maxn=maxn)
    table = fasttext.read(path)
    table.need(range(len(words)))
    for row, word in enumerate(words):
        rows = [row]
        raw = f"<{word}>".encode()
        for i in range(len(raw)):  # the loop of fastText's dictionary.cc, on bytes
            if word == "</s>" or (raw[i] & 0xC0) == 0x80:
                continue
            j, n = i, 1
            gram = b""
            while j < len(raw) and n <= maxn:
                gram += raw[j : j + 1]
                j += 1
                while j < len(raw) and (raw[j] & 0xC0) == 0x80:
                    gram += raw[j : j + 1]
                    j += 1
                if n >= minn and not (n == 1 and (i == 0 or j == len(raw))):
                    rows.append(len(words) + hash_by_hand(gram) % bucket)
                n += 1
        np.testing.assert_allclose(table.vectors[row], matrix[rows].mean(0), atol=1e-6)


def test_only_what_is_needed_is_worked_out(tmp_path: Path) -> None:
    table = fasttext.read(WRITERS["fasttext"](tmp_path / "v"))
    table.need([1, 3, 3])
    assert np.array_equal(table.vectors[[1, 3]], V[[1, 3]])
    assert not table.vectors[[0, 2, 4, 5, 6]].any()


HEAD = b"2 2\n"
ONE = b"a " + struct.pack("<ff", 1, 2)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "{p}, line 1: no word with its vector"),
        (b"alone\n", "{p}, line 1: no word with its vector"),
        (b"a 1 2\nb 3\n", "{p}, line 2: 1 numbers found, 2 needed"),
        (b"a 1 2\n\n", "{p}, line 2: 0 numbers found, 2 needed"),
        (b"a 1 2\nb 3 x\n", "{p}, line 2: 'x' is not a number"),
        (b"a 1 2\nb 3 nan\n", "{p}: the vector of 'b' is not finite"),
        (b"a 1 2\n\xff 3 4\n", "{p}, line 2: a word that is not valid UTF-8"),
        (b"3 2\na 1 2\nb 3 4\n", "{p}: 2 words found, 3 announced"),
        (b"2 3\na 1 2\nb 3 4\n", "{p}, line 2: 2 numbers found, 3 announced in line 1"),
        (b"2 2\na 1 2 3\nb 3 4 5\n", "{p}, line 2: 3 numbers found, 2 announced in line 1"),
        (b"1 2\na 1 2\nb 3 4\n", "{p}: 2 words found, 1 announced"),
        (b"0 2\n", "{p}, line 1: 0 words of 2 dimensions"),
        (HEAD + ONE + b"b " + struct.pack("<f", 1), "{p}: it ends within word 2 of 2"),
        (HEAD + ONE, "{p}: it ends within word 2 of 2"),
        (b"1 2\n" + ONE + b"b", "{p}: it goes on behind the 1 words announced"),
        (b"1 1\na " + struct.pack("<f", float("inf")), "{p}: the vector of 'a' is not finite"),
        (b"1 2\n\xc3 " + struct.pack("<ff", 1, 2), "{p}, word 1: a word that is not valid UTF-8"),
        (gzip.compress(b"a 1 2\n" * 99, mtime=0)[:-9], "{p} cannot be read"),
    ],
)
def test_malformed_files(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(UserError) as found:
        loaded(path)
    message = str(found.value)
    assert message.startswith(fault.format(p=path))
    assert message.endswith(("fetch the file again.", "convert it to UTF-8."))


@pytest.mark.parametrize(
    ("given", "cut", "fault"),
    [
        ({"version": 11}, None, "version 11 of fastText's form, this reads 12; fetch one."),
        ({"quantised": True}, None, "a quantised model, which is not read"),
        ({"bucket": 3, "maxn": 6}, None, "a matrix of 7 by 5 for 7 words"),
        ({}, -1, "it ends within its vectors"),
        ({}, 30, "it ends within its header"),
        ({}, 100, "it ends within its header"),
    ],
)
def test_malformed_fasttext(
    tmp_path: Path, given: dict[str, Any], cut: int | None, fault: str
) -> None:
    arguments: dict[str, Any] = {"bucket": 0, "minn": 0, "maxn": 0, **given}
    path = wf.fasttext(tmp_path / "v", wf.WORDS, V, **arguments)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UserError) as found:
        fasttext.read(path)
    assert fault in str(found.value)
