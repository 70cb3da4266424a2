"""What fuzzing found, each as a case of its own."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from whitepool.errors import LONGEST, UserError

from file_cases import FILES
from reader_cases import BEIR, CSV, CUT, READERS, fast_text_seed, outcome, parts

READ = {reader.name: reader for reader in (*READERS, *FILES)}


def changed(at: int, form: str, *values: float) -> bytes:
    """A fastText file with other numbers in its header."""
    raw = bytearray(fast_text_seed())
    struct.pack_into(form, raw, at, *values)
    return bytes(raw)


def judged(line: bytes) -> bytes:
    return BEIR + line


def twice(text: bytes) -> bytes:
    return b'{"text": "a", "text": "b"}\n' + text


def longer(reader: str, old: bytes, new: bytes) -> bytes:
    """A safetensors file with other words of the same length in its header."""
    raw = READ[reader].seed
    assert len(old) == len(new)
    assert old in raw
    return raw.replace(old, new, 1)


# Numbers of fastText's header: 8 + 4 * place of 12, a float64, then words and labels.
MAXN, BUCKET, SIZE = 8 + 4 * 10, 8 + 4 * 8, 8 + 56
CASES: dict[str, tuple[str, bytes, str]] = {
    "a header of 5,000 digits": ("words.text", b"9" * 5000 + b" 2\nthe 1 2\n", ""),
    "n-grams of 2 billion letters": ("words.fasttext", changed(MAXN, "<i", 2**31 - 1), ""),
    "no bucket": ("words.fasttext", changed(BUCKET, "<i", 0), "do not go together"),
    "fewer words than none": ("words.fasttext", changed(SIZE, "<iii", 2, -1, 3), "do not go"),
    "terabytes of pruned n-grams": ("words.fasttext", changed(SIZE + 20, "<q", 2**60), "quantised"),
    "a word twice": ("words.fasttext", fast_text_seed().replace(b"cat\0", b"dog\0"), "comes twice"),
    "a byte order mark alone": ("encode.txt", b"\xef\xbb\xbf", ""),
    "a key twice": ("corpus.jsonl", twice(b""), "line 1: the key text comes twice"),
    "a key twice in an encode row": ("encode.jsonl", twice(b'{"text": "c"}\n'), ""),
    "a key twice in pairs": (
        "pairs.jsonl",
        b'{"sentence1": "a", "sentence2": "b", "score": 1, "score": 2}\n',
        "line 1: the key score comes twice",
    ),
    "a judgement twice": ("beir", judged(b"q1\td1\t1\n"), ""),
    "two grades": ("beir", judged(b"q1\td1\t2\n"), "has the grade 2 for query 'q1', and 1 above"),
    "no id": ("beir", BEIR.replace(b"_id", b"idx"), "no key _id (keys found: idx, title, text);"),
    "columns that do not print": (
        "pairs.csv", b"a\x1b[2J\xe2\x80\xae,\x00\n" + CSV, "columns found: a\\x1b[2J\\u202e, \\x00"
    ),
    "not a number": ("whitening", READ["whitening"].seed[:-8] + struct.pack("<d", float("nan")),
                     "not all finite float64"),
    "another shape": ("whitening", longer("whitening", b"[3,2]", b"[2,3]"), "arrays of shapes"),
    "another rank": ("whitening", longer("whitening", b'rank\\": 3', b'rank\\":-3'), "rank -3"),
    "corpora of another form": ("moments", longer("moments", b'corpora\\": []', b'corpora\\": {}'),
                                "its corpora are not described by a list"),
    "vectors of another form": ("moments", longer("moments", b'vectors\\": {}', b'vectors\\": []'),
                                "its vectors are not described by a mapping"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_found(name: str, tmp_path: Path) -> None:
    kind, raw, message = CASES[name]
    reader = READ[kind]
    assert outcome(reader, raw, tmp_path) == ("error" if message else "rows")
    if message:
        with pytest.raises(UserError) as error:
            reader.read(raw, tmp_path)
        assert message in str(error.value)


def test_a_footer_that_lies_about_rows(tmp_path: Path) -> None:
    """Thrift's zigzag 4 is two rows, 6 is three."""
    pq = pytest.importorskip("pyarrow.parquet")
    raw = READ["encode.parquet"].seed
    hits = 0
    for at in range(len(raw)):
        if raw[at] != 4:
            continue
        lying = raw[:at] + b"\x06" + raw[at + 1 :]
        path = tmp_path / "x.parquet"
        path.write_bytes(lying)
        try:
            rows = pq.ParquetFile(path).metadata.num_rows
        except Exception:
            continue
        if rows == 3:
            hits += 1
            for name in ("pairs.parquet", "corpus.parquet", "encode.parquet"):
                with pytest.raises(UserError, match=r"promised by its footer|not a valid Parquet"):
                    READ[name].read(lying, tmp_path)
    assert hits


def test_long_messages_keep_their_beginning_and_end(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        READ["pairs.tsv"].read(b"x" * 100_000, tmp_path)
    message = str(error.value)
    assert message.startswith("x.tsv, line 1: no column sentence1 (columns found: xxx")
    assert message.endswith("name its columns with data.first=, data.second= and data.score=.")
    assert len(message) <= LONGEST + 3
    assert str(UserError("a\r\n  b\tc\ud800\x00 é 日本 https://a:b@c/d")) == (
        "a b\\tc\\ud800\\x00 é 日本 https://***@c/d"
    )


@pytest.mark.parametrize("content", ["{", "[]", '{"max_seq_length": "9"}', '{"max_seq_length": 0}'])
def test_settings_of_a_model_folder(checkpoint: Any, tmp_path: Path, content: str) -> None:
    import shutil

    from whitepool.checkpoint import load

    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "model"))
    (folder / "sentence_bert_config.json").write_text(content, encoding="utf-8")
    if content == "[]":
        assert load(folder).length_limit is None
    else:
        with pytest.raises(UserError, match=r"sentence_bert_config\.json"):
            load(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for key, value in (("hidden_size", "x"), ("num_attention_heads", 0), ("vocab_size", 3)):
        (folder / "config.json").write_text(json.dumps(config | {key: value}), encoding="utf-8")
        with pytest.raises(UserError, match="cannot be loaded"):
            load(folder)


def test_the_cases_are_what_they_say() -> None:
    assert len(parts(BEIR, 3)) == BEIR.count(CUT) + 1 == 3
