"""SentEval's ``downstream`` folder.

``STS/STS12-en-test/STS.input.NAME.txt`` holds tab-separated sentences and ``STS.gs.NAME.txt`` one
score per line, blank where nobody judged the pair (most lines in 2015 and 2016); the train parts of
SemEval 2012 are looked for in ``STS/STS12-en-train``, in the same form; ``STS/STSBenchmark`` is the
STS benchmark; ``SICK`` has a header row, and its trial file is the dev split. Source:
github.com/facebookresearch/SentEval.
"""

from __future__ import annotations

from pathlib import Path

from whitepool.data import pairs_file, stsb, text
from whitepool.data.counts import COUNTS, check_count
from whitepool.data.pairs import PairSet
from whitepool.errors import UserError

LOOKED_FOR = "STS/STS12-en-test … STS16-en-test, STS/STSBenchmark or SICK (SentEval)"
SICK_FILES = {
    "train": "SICK_train.txt",
    "dev": "SICK_trial.txt",
    "test": "SICK_test_annotated.txt",
}
SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score")


def recognise(folder: Path) -> bool:
    """Whether a folder holds any of SentEval's STS or SICK folders."""
    years = (f"STS/STS{year}-en-test" for year in range(12, 17))
    return any((folder / name).is_dir() for name in (*years, "STS/STSBenchmark", "SICK"))


def read(folder: Path, task: str, subset: str, split: str) -> PairSet:
    """One set of the folder.

    Raises:
        MissingFile: a file of it is not there.
        UserError: a malformed row, input and gold of different length, or another number of
            judged pairs than is known.
    """
    if task == "stsb":
        return stsb.read_file(folder / f"STS/STSBenchmark/sts-{split}.csv", task, subset, split)
    if task == "sickr":
        return _read_sick(folder / "SICK" / SICK_FILES[split], split)
    return _read_year(folder / f"STS/{task.upper()}-en-{split}", task, subset, split)


def _read_sick(path: Path, split: str) -> PairSet:
    raw = text.read_bytes(text.require(path, "sickr", ""))
    rows = list(pairs_file.tsv_rows(raw, path, SICK_COLUMNS))
    check_count(len(rows), COUNTS["sickr"]["", split], str(path))
    return text.to_pair_set(
        rows, task="sickr", subset="", split=split, source=str(path), sha256=text.checksum(raw)
    )


def _read_year(folder: Path, task: str, subset: str, split: str) -> PairSet:
    input_path = text.require(folder / f"STS.input.{subset}.txt", task, subset)
    gold_path = text.require(folder / f"STS.gs.{subset}.txt", task, subset)
    input_raw, gold_raw = text.read_bytes(input_path), text.read_bytes(gold_path)
    sentences = text.row_lines(input_raw, input_path)
    gold = text.split_lines(gold_raw, gold_path)
    # A blank last gold line is an unjudged pair, unless there is no pair for it.
    if len(gold) == len(sentences) + 1 and not gold[-1]:
        gold.pop()
    if len(gold) != len(sentences):
        raise UserError(
            f"{gold_path}: {len(gold)} gold lines for {len(sentences)} lines of {input_path.name};"
            " fetch both files again."
        )
    rows: list[text.Row] = []
    for line, (pair, score) in enumerate(zip(sentences, gold, strict=True), start=1):
        fields = text.tab_fields(pair, 2, f"{input_path}, line {line}")
        if score.strip():
            number = text.parse_score(score, f"{gold_path}, line {line}")
            rows.append((fields[0], fields[1], number))
    check_count(len(rows), COUNTS[task][subset, split], str(input_path))
    return text.to_pair_set(
        rows,
        task=task,
        subset=subset,
        split=split,
        source=str(input_path),
        sha256=text.checksum(input_raw, gold_raw),
        unjudged=len(gold) - len(rows),
    )
