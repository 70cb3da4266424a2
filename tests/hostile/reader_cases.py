"""Every reader as a function of bytes, and what its files are made of.

`Reader.read` gives how many rows came out or were reported, `Reader.rows` how many the bytes hold,
counted here by a plain loop that shares nothing with the package.
"""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from whitepool.data import chinese, corpus_files, pairs_file, row_sources, rte, senteval, stsb
from whitepool.data.retrieval import load_retrieval
from whitepool.errors import UserError
from whitepool.words import fasttext, files

NAMES = ("sentence1", "sentence2", "score")
BOM = b"\xef\xbb\xbf"
CUT = b"\x1d"  # between the files of one case
NASTY = (
    b"",
    b" ",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b'"',
    b'""',
    b",",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"'",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    BOM,
    b"\xff\xfe",
    b"\x1f\x8b",
    b"PAR1",
    b"a dog runs",
    b"3.5",
    b"-1",
    b"0",
    b"1",
    b"nan",
    b"inf",
    b"1e999",
    b"1_0",
    b"0x10",
    b"1,5",
    b"9" * 5000,
    b"true",
    b"null",
    b"\\ud800",
    b"\\u0000",
    b'"\\ud800"',
    b"x" * 3000,
    "\U0001f600\U0001f468\u200d\U0001f469".encode(),
    "\u202eabc\u202c".encode(),
    "\u2028".encode(),
    "\x85".encode(),
    "\u0661".encode(),
    CUT,
)
REMEDY = re.compile(
    r"again|correct|fetch|convert|give|write|quote|name |unpack|check|choose|leave|double|save|make"
)


@dataclass(frozen=True)
class Reader:
    """A reader under test.

    Attributes:
        name: of the test.
        read: bytes and an empty folder -> rows out and rows reported.
        rows: bytes -> rows in them, where they are well-formed.
        seed: a valid file.
        pieces: parts that a file is put together from, beside `NASTY`.
        damage: another way of damaging the seed.
    """

    name: str
    read: Callable[[bytes, Path], int]
    rows: Callable[[bytes], int]
    seed: bytes
    pieces: tuple[bytes, ...]
    damage: Callable[[bytes, random.Random], bytes] | None = None


def outcome(reader: Reader, raw: bytes, folder: Path) -> str:
    """Read a case: its rows are all accounted for, or there is one plain error."""
    try:
        found = reader.read(raw, folder)
    except UserError as error:
        plain(str(error))
        return "error"
    assert found == reader.rows(raw), (reader.name, raw, found)
    return "rows"


def plain(message: str) -> None:
    """One line for the user, that can be written anywhere and says what to do."""
    assert message.isprintable(), message
    message.encode("utf-8")
    assert len(message) <= 2000, len(message)
    assert REMEDY.search(message), message


def lines(raw: bytes) -> list[bytes]:
    """Lines that end at a line feed."""
    found = raw.removeprefix(BOM).split(b"\n")
    return found[:-1] if found[-1] == b"" else found


def filled(raw: bytes) -> list[bytes]:
    """Lines but for blank ones at the end."""
    found = lines(raw)
    while found and not found[-1].strip(b" \r"):
        found.pop()
    return found


def records(raw: bytes) -> int:
    """Records of quoted CSV, but for blank lines at the end."""
    return csv_records(b"\n".join(filled(raw)))


def all_records(raw: bytes) -> int:
    """Records of quoted CSV, blank ones too."""
    return csv_records(b"\n".join(lines(raw)))


def csv_records(content: bytes) -> int:
    """Line feeds outside of quotes, which open a field or double, and one."""
    found, quoted, may_open = int(bool(content)), False, True
    for byte in content:
        if byte == ord('"') and (quoted or may_open):
            quoted = not quoted
            may_open = True  # a second quote opens again
        else:
            may_open = byte in b",\n"
            found += byte == ord("\n") and not quoted
    return found


def below_header(count: Callable[[bytes], int]) -> Callable[[bytes], int]:
    return lambda raw: max(count(raw) - 1, 0)


def count_filled(raw: bytes) -> int:
    return len(filled(raw))


def count_lines(raw: bytes) -> int:
    return len(lines(raw))


def parts(raw: bytes, number: int) -> list[bytes]:
    found = raw.split(CUT, number - 1)
    return [*found, *[b""] * (number - len(found))]


def put(folder: Path, name: str, raw: bytes) -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def table(name: str, columns: Sequence[str | int]) -> Callable[[bytes, Path], int]:
    wanted = (columns[0], columns[1], columns[2])
    return lambda raw, _: len(list(pairs_file.read_rows(raw, Path(name), wanted)))


def sent_eval(raw: bytes, folder: Path) -> int:
    first, gold = parts(raw, 2)
    place = folder / "STS" / "STS12-en-test"
    place.mkdir(parents=True, exist_ok=True)
    put(place, "STS.input.MSRpar.txt", first)
    put(place, "STS.gs.MSRpar.txt", gold)
    found = senteval.read(folder, "sts12", "MSRpar", "test")
    return len(found) + found.unjudged


def benchmark(raw: bytes, folder: Path) -> int:
    return len(stsb.read_file(put(folder, "sts-test.csv", raw), "stsb", "", "test"))


def beir(raw: bytes, folder: Path) -> int:
    corpus, queries, judged = parts(raw, 3)
    (folder / "qrels").mkdir(exist_ok=True)
    put(folder, "corpus.jsonl", corpus)
    put(folder, "queries.jsonl", queries)
    put(folder / "qrels", "test.tsv", judged)
    ((found,), *_) = (task.scored for task in load_retrieval(folder))
    assert found.qrels is not None
    return len(found.second) + len(found.qrels.grade)


def beir_rows(raw: bytes) -> int:
    corpus, _, judged = parts(raw, 3)
    fields = [line.removesuffix(b"\r").split(b"\t") for line in filled(judged)]
    places = [fields[0].index(name) for name in (b"query-id", b"corpus-id", b"score")]
    rows = [[row[place] for place in places] for row in fields[1:]]
    return len(filled(corpus)) + len({(q, d) for q, d, grade in rows if float(grade.decode()) > 0})


def corpus(kind: str) -> Callable[[bytes, Path], int]:
    def read(raw: bytes, folder: Path) -> int:
        path = str(put(folder, f"x.{kind}", raw))
        make = {"txt": corpus_files.text_files, "jsonl": corpus_files.jsonl_files}
        reading = make.get(kind, corpus_files.csv_files)(path).read()
        for used in reading:
            used.text.encode()
        assert reading.used + reading.blank == reading.read
        return reading.read

    return read


def encode(kind: str) -> Callable[[bytes, Path], int]:
    def read(raw: bytes, folder: Path) -> int:
        (source,) = row_sources.open_input(str(put(folder, f"x.{kind}", raw)))
        found = list(source.read())
        for row in found:
            assert bool(row.fault) == (not row.text.strip())
            row.text.encode()
            if row.fault:
                row.fault.encode()
        return len(found)

    return read


def word_text(raw: bytes, folder: Path) -> int:
    found = files.read(put(folder, "x.vec", raw))
    found.table()
    return len(found.rows) + found.repeated


def word_rows(raw: bytes) -> int:
    head = raw.split(b"\n", 1)[0].split()
    if len(head) == 2 and all(field.isdigit() and len(field) < 10 for field in head):
        return int(head[0])
    return raw.count(b"\n") + (not raw.endswith(b"\n"))


def fast_text(raw: bytes, folder: Path) -> int:
    found = fasttext.read(put(folder, "x.bin", raw))
    found.need(range(len(found.rows)))
    assert found.vectors.shape[0] == len(found.rows)
    return len(found.rows)


def fast_text_rows(raw: bytes) -> int:
    (words,) = struct.unpack_from("<i", raw, 8 + 56 + 4)
    return int(words)


def fast_text_seed() -> bytes:
    raw = struct.pack("<ii", 793712314, 12)
    raw += struct.pack("<12i", 2, 5, 1, 1, 5, 1, 2, 2, 3, 2, 3, 100) + struct.pack("<d", 1e-4)
    raw += struct.pack("<iiiqq", 2, 2, 0, 9, -1)
    raw += b"dog\0" + struct.pack("<qb", 7, 0) + b"cat\0" + struct.pack("<qb", 7, 0)
    return raw + struct.pack("<?qq", False, 5, 2) + struct.pack("<10f", *range(10))


TSV = b"sentence1\tsentence2\tscore\na dog\ta cat\t3.5\nb\tc\t0\n"
CSV = b'sentence1,sentence2,score\n"a ""dog""\n",a cat,3.5\nb,c,0\n'
JSON = b"".join(
    json.dumps(dict(zip(NAMES, row, strict=True))).encode() + b"\n"
    for row in (("a dog", "a cat", 3.5), ("b", "c", 0))
)
BEIR = CUT.join(
    [
        b'{"_id": "d1", "title": "t", "text": "a dog"}\n{"_id": "d2", "text": "a cat"}\n',
        b'{"_id": "q1", "text": "dog"}\n{"_id": "q2", "text": "cat"}\n',
        b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\nq2\td1\t0\n",
    ]
)
JSON_PIECES = (
    b'"sentence1"',
    b'"sentence2"',
    b'"score"',
    b'"text"',
    b'"_id"',
    b'"a"',
    b': "a", ',
    b": 1}\n",
    b'{"text": "a dog"}\n',
    JSON,
    JSON[:-3],
)
BOOK = b"main\tMSRvid\t2012\t1\t"


READERS = (
    Reader(
        "pairs.tsv",
        table("x.tsv", NAMES),
        below_header(count_filled),
        TSV,
        (b"sentence1\tsentence2\tscore\n", b"a\tb\t1\n", b"a\tb\t", b"\tscore"),
    ),
    Reader(
        "pairs.csv",
        table("x.csv", NAMES),
        below_header(records),
        CSV,
        (b"sentence1,sentence2,score\n", b"a,b,1\n", b'"a\n","b",', b",score"),
    ),
    Reader(
        "numbered.tsv",
        table("x.tsv", (0, 1, 2)),
        count_filled,
        b"a\tb\t1\nc\td\t2\n",
        (b"a\tb\t1\n", b"a\tb\t"),
    ),
    Reader(
        "multilingual.csv",
        table("x.csv", (0, 1, 2)),
        records,
        b'"a",b,1\nc,d,2\n',
        (b"a,b,1\n", b'"a\n",'),
    ),
    Reader("pairs.jsonl", table("x.jsonl", NAMES), count_filled, JSON, JSON_PIECES),
    Reader(
        "senteval",
        sent_eval,
        lambda raw: len(filled(parts(raw, 2)[0])),
        b"a dog\ta cat\nb\tc\n" + CUT + b"3.5\n\n",
        (b"a\tb\n", b"1\n", b"a\tb\n\x1d1\n"),
    ),
    Reader(
        "stsb",
        benchmark,
        count_filled,
        BOOK + b"3.5\ta dog\ta cat\n",
        (BOOK, BOOK + b"1\ta\tb\n", BOOK + b"1\ta\tb\turl\turl\n"),
    ),
    Reader(
        "chinese",
        lambda raw, _: len(list(chinese.rows(raw, Path("x.data")))),
        count_filled,
        b"a\tb\t1\n7\tc\td\t0\n",
        (b"a\tb\t1\n", b"7\ta\tb\t1\n"),
    ),
    Reader(
        "rte",
        lambda raw, _: len(list(rte.rows(raw, Path("x.tsv")))),
        below_header(count_filled),
        b"index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n",
        (b"sentence1\tsentence2\tlabel\n", b"a\tb\tnot_entailment\n"),
    ),
    Reader("beir", beir, beir_rows, BEIR, (*JSON_PIECES, b"q1\td1\t1\n", *BEIR.splitlines(True))),
    Reader("corpus.txt", corpus("txt"), count_lines, b"a dog\n\nb\n", (b"a dog\n", b"b")),
    Reader("corpus.jsonl", corpus("jsonl"), count_lines, b'{"text": "a dog"}\n', JSON_PIECES),
    Reader(
        "corpus.csv",
        corpus("csv"),
        below_header(all_records),
        b'text,n\n"a\n",1\n',
        (b"text,n\n", b"a,1\n"),
    ),
    Reader(
        "corpus.tsv",
        corpus("tsv"),
        below_header(count_lines),
        b"text\tn\na\t1\n",
        (b"text\tn\n", b"a\t1\n"),
    ),
    Reader("encode.txt", encode("txt"), count_lines, b"a dog\n\nb\n", (b"a dog\n", b"b")),
    Reader("encode.jsonl", encode("jsonl"), count_filled, b'{"text": "a dog"}\n', JSON_PIECES),
    Reader(
        "encode.csv",
        encode("csv"),
        below_header(records),
        b'text,n\n"a\n",1\n',
        (b"text,n\n", b"a,1\n"),
    ),
    Reader(
        "encode.tsv",
        encode("tsv"),
        below_header(count_filled),
        b"text\tn\na\t1\n",
        (b"text\tn\n", b"a\t1\n"),
    ),
    Reader(
        "words.text",
        word_text,
        word_rows,
        b"the 0.5 1\ndog 1e3 -2\n",
        (b"2 2\n", b"the 1 2\n", b"dog 1", b"a b 1 2\n"),
    ),
    Reader(
        "words.word2vec",
        word_text,
        word_rows,
        b"1 2\nthe " + struct.pack("<2f", 1.5, -2.0),
        (b"1 2\n", b"the ", struct.pack("<2f", 0.5, 7), struct.pack("<2f", 1e30, float("nan"))),
    ),
    Reader(
        "words.fasttext",
        fast_text,
        fast_text_rows,
        fast_text_seed(),
        tuple(fast_text_seed()[i : i + 8] for i in range(0, 150, 8)),
    ),
)
