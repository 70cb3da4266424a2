from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.data import senteval, text
from whitepool.data.counts import COUNTS
from whitepool.errors import UserError

Expect = Callable[[str, str, str, int], None]
REAL = [
    (task, subset)
    for task in ("sts12", "sts13", "sts14", "sts15", "sts16")
    for subset, _ in COUNTS[task]
    if subset != "MSRvid"
]
UNJUDGED = {
    "sts15": {
        "answers-forums": 1625,
        "answers-students": 750,
        "belief": 1625,
        "headlines": 750,
        "images": 750,
    },
    "sts16": {
        "answer-answer": 1318,
        "headlines": 1249,
        "plagiarism": 1041,
        "postediting": 3043,
        "question-question": 1346,
    },
}


def year(root: Path, input_raw: bytes, gold_raw: bytes, task: str = "sts15") -> Path:
    folder = root / "STS" / f"{task.upper()}-en-test"
    folder.mkdir(parents=True)
    (folder / "STS.input.belief.txt").write_bytes(input_raw)
    (folder / "STS.gs.belief.txt").write_bytes(gold_raw)
    return root


def test_blank_gold_drops_the_pair_and_keeps_alignment(tmp_path: Path, counts: Expect) -> None:
    counts("sts15", "belief", "test", 2)
    inputs = 'a1\ta2\r\nb1\tb2\n"c1\tc\u20282\textra\nd1\td2\n'.encode()
    gold = b"\xef\xbb\xbf1.5\n\r\n3\n \t\n"
    got = senteval.read(year(tmp_path, inputs, gold), "sts15", "belief", "test")
    assert got.first == ("a1", '"c1')
    assert got.second == ("a2", "c\u20282")
    assert got.gold.tolist() == [1.5, 3.0]
    assert got.unjudged == 2
    assert got.sha256 == hashlib.sha256(inputs + gold).hexdigest()
    assert (got.task, got.subset, got.split) == ("sts15", "belief", "test")


@pytest.mark.parametrize(
    ("inputs", "gold", "unjudged"),
    [
        (b"a\tb\nc\td\n", b"1\n\n", 1),
        (b"a\tb\n\n", b"1\n\n", 0),
        (b"a\tb\n", b"1\n\n", 0),
        (b"a\tb\n\n", b"1\n", 0),
        (b"a\tb", b"1", 0),
    ],
)
def test_a_blank_last_gold_line_counts_only_where_there_is_a_pair(
    tmp_path: Path, counts: Expect, inputs: bytes, gold: bytes, unjudged: int
) -> None:
    counts("sts15", "belief", "test", 1)
    got = senteval.read(year(tmp_path, inputs, gold), "sts15", "belief", "test")
    assert (got.gold.tolist(), got.unjudged) == ([1.0], unjudged)


def test_unequal_lengths_are_refused_with_both_numbers(tmp_path: Path) -> None:
    year(tmp_path, b"a\tb\nc\td\n", b"1\n2\n3\n")
    with pytest.raises(UserError) as fault:
        senteval.read(tmp_path, "sts15", "belief", "test")
    path = tmp_path / "STS" / "STS15-en-test" / "STS.gs.belief.txt"
    assert str(fault.value) == (
        f"{path}: 3 gold lines for 2 lines of STS.input.belief.txt; fetch both files again."
    )


@pytest.mark.parametrize(
    ("inputs", "gold", "message"),
    [
        (b"a\tb\nc\n", b"1\n2\n", "STS.input.belief.txt, line 2: 1 tab-separated columns found, 2"),
        (b"a\tb\nc\n", b"1\n\n", "STS.input.belief.txt, line 2: 1 tab-separated columns found, 2"),
        (b"a\tb\nc\td\n", b"1\nnan\n", "STS.gs.belief.txt, line 2: the score 'nan' is not finite"),
        (b"a\tb\nc\td\n", b"1\n2 3\n", "STS.gs.belief.txt, line 2: the score '2 3' is not a numb"),
        (b"a\tb\n\xff\td\n", b"1\n2\n", "STS.input.belief.txt, line 2: not valid UTF-8"),
        (b"a\tb\nc\td\n", b"1\n2\n", "STS.input.belief.txt: 2 pairs found, 375 expected"),
    ],
)
def test_malformed_files_are_refused(
    tmp_path: Path, inputs: bytes, gold: bytes, message: str
) -> None:
    year(tmp_path, inputs, gold)
    with pytest.raises(UserError) as fault:
        senteval.read(tmp_path, "sts15", "belief", "test")
    assert message in str(fault.value)


def test_a_missing_gold_file_is_named(tmp_path: Path) -> None:
    year(tmp_path, b"a\tb\n", b"1\n")
    gold = tmp_path / "STS" / "STS15-en-test" / "STS.gs.belief.txt"
    gold.unlink()
    with pytest.raises(text.MissingFile) as fault:
        senteval.read(tmp_path, "sts15", "belief", "test")
    assert str(fault.value).startswith(f"sts15, sub-task belief: there is no file {gold}; ")


def test_sick_columns_are_found_by_name(tmp_path: Path, counts: Expect) -> None:
    counts("sickr", "", "dev", 2)
    path = tmp_path / "SICK" / "SICK_trial.txt"
    path.parent.mkdir()
    path.write_bytes(
        b'pair_ID\trelatedness_score\tsentence_A\tsentence_B\r\n1\t3.6\tA "b\tC\r\n2\t1\tD\tE\r\n'
    )
    got = senteval.read(tmp_path, "sickr", "", "dev")
    assert (got.first, got.second) == (('A "b', "D"), ("C", "E"))
    assert (got.gold.tolist(), got.split) == ([3.6, 1.0], "dev")


def test_a_sick_file_without_its_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "SICK" / "SICK_train.txt"
    path.parent.mkdir()
    path.write_bytes(b"1\tA\tB\t3.6\tNEUTRAL\n")
    with pytest.raises(UserError) as fault:
        senteval.read(tmp_path, "sickr", "", "train")
    assert f"{path}, line 1: no column sentence_A (columns found: 1, A, B, 3.6" in str(fault.value)


def test_the_sts_benchmark_folder(stsb_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "STS").mkdir()
    stsb_folder.rename(tmp_path / "STS" / "STSBenchmark")
    assert senteval.recognise(tmp_path)
    got = senteval.read(tmp_path, "stsb", "", "dev")
    assert (len(got), got.split, got.first[7]) == (1500, "dev", "dev 7.")
    assert got.second[7] == 'An "odd one, 7.'


@pytest.mark.parametrize("name", ["STS/STS12-en-test", "STS/STS16-en-test", "SICK"])
def test_recognised_by_content(tmp_path: Path, name: str) -> None:
    assert not senteval.recognise(tmp_path)
    (tmp_path / name).mkdir(parents=True)
    assert senteval.recognise(tmp_path)


@pytest.mark.parametrize(("task", "subset"), REAL)
def test_real_years(shared: Path, task: str, subset: str) -> None:
    got = senteval.read(shared / "senteval", task, subset, "test")
    assert len(got) == len(got.first) == len(got.second) == COUNTS[task][subset, "test"]
    assert got.unjudged == UNJUDGED.get(task, {}).get(subset, 0)
    assert 0 <= got.gold.min() <= got.gold.max() <= 5


def test_real_years_agree_with_the_other_source(shared: Path) -> None:
    from whitepool.data import whiteningbert

    # Both sources hold the same pairs in the same order, so the scores show any misalignment.
    for task, subset in REAL:
        ours = senteval.read(shared / "senteval", task, subset, "test")
        theirs = whiteningbert.read(shared / "whiteningbert", task, subset, "test")
        assert ours.gold.tolist() == theirs.gold.tolist(), (task, subset)


@pytest.mark.parametrize(("split", "pairs"), [("train", 4500), ("dev", 500), ("test", 4927)])
def test_real_sick(shared: Path, split: str, pairs: int) -> None:
    got = senteval.read(shared / "senteval", "sickr", "", split)
    assert len(got) == pairs
    assert 1 <= got.gold.min() <= got.gold.max() <= 5
    assert not any(t.endswith("\r") for t in got.first + got.second)


def test_real_checksum(shared: Path) -> None:
    got = senteval.read(shared / "senteval", "sickr", "", "test")
    assert got.sha256 == "2b8aa806658d6fc23c6824c83776c2d4fee7556000817b5ec0f982861413b7d0"
    got = senteval.read(shared / "senteval", "sts16", "postediting", "test")
    assert got.sha256 == "5c8ff3d8a945ab299cdecc8af19c95afd67e7de3722fea4ddb9cb71f54a9f0eb"
