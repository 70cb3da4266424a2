"""Chinese sets, STS-B in other languages, RTE: files in their published form, and the hub's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from whitepool.data import chinese, load_chinese, load_pairs, load_rte, load_stsb_multi, rte
from whitepool.errors import UserError

SPLITS = ("train", "dev", "test")


def fault_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(UserError) as fault:
        function(*args, **kwargs)
    return str(fault.value)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every set has three pairs in each split."""
    for name, one in chinese.SETS.items():
        monkeypatch.setitem(chinese.SETS, name, replace(one, counts=dict.fromkeys(SPLITS, 3)))
    counts = dict.fromkeys(("train", "dev"), 3)
    monkeypatch.setattr(rte, "RTE", replace(rte.RTE, counts=counts))


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def lines(split: str, numbered: bool = False) -> list[str]:
    number = "{}\t" if numbered else ""
    return [number.format(i) + f"{split}句{i}\t“句子{i}\t{i % 2}" for i in range(1, 4)]


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("numbered", [True, False])
def test_chinese_folder(tmp_path: Path, small: None, inner: bool, numbered: bool) -> None:
    for name in ("ATEC", "STS-B"):
        for split, word in chinese.FILE_SPLITS.items():
            folder = tmp_path / name if inner else tmp_path
            write(folder / f"{name}.{word}.data", *lines(split, numbered))
    atec, stsb = load_chinese(["atec", "stsb_zh"], root=tmp_path)
    assert [task.name for task in (atec, stsb)] == ["atec", "stsb_zh"]
    for task in (atec, stsb):
        assert [(s.subset, s.split) for s in task.scored] == [(s, s) for s in SPLITS]
        assert (task.other_splits, task.missing, task.kind) == ((), (), "graded")
    dev = atec.scored[1]
    assert dev.first == ("dev句1", "dev句2", "dev句3")
    assert dev.second == ("“句子1", "“句子2", "“句子3")
    assert dev.gold.tolist() == [1, 0, 1]


def test_one_split_leaves_the_others_to_fit_on(tmp_path: Path, small: None) -> None:
    for split in ("train", "test"):
        write(tmp_path / f"BQ.{split}.data", *lines(split))
    (task,) = load_chinese(["bq"], split="test", root=tmp_path)
    assert [(s.subset, s.split) for s in task.scored] == [("", "test")]
    assert [s.split for s in task.other_splits] == ["train"]
    message = fault_of(load_chinese, ["bq"], root=tmp_path)
    assert message == (
        f"bq, dev split: there is no file BQ/BQ.valid.data or BQ.valid.data in {tmp_path}; point "
        "data.root= at a folder that has it, choose another data.split=, or leave it out with "
        "data.allow_missing=true."
    )
    (task,) = load_chinese(["bq"], root=tmp_path, allow_missing=True)
    assert ([s.subset for s in task.scored], task.missing) == (["train", "test"], ("dev",))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a\tb", "2 tab-separated columns found, 3 needed"),
        ("1\ta\tb\t0\t1", "5 tab-separated columns found, 3 needed"),
        ("x\ta\tb\t0", "the score 'x' is not a number"),
        ("a\tb\tyes", "the score 'yes' is not a number"),
    ],
)
def test_malformed_chinese_rows(tmp_path: Path, small: None, row: str, fault: str) -> None:
    path = write(tmp_path / "LCQMC.test.data", *lines("test"), row)
    message = fault_of(load_chinese, ["lcqmc"], split="test", root=tmp_path)
    assert message.startswith(f"{path}, line 4: {fault}")


@pytest.mark.parametrize(
    ("tasks", "kwargs", "message"),
    [
        (["stsb"], {}, "unknown task 'stsb'; choose from atec, bq, lcqmc, pawsx, stsb_zh."),
        ("bq", {}, "data.tasks is 'bq'; give a list of tasks, as [bq,stsb_zh]."),
        (["bq", "bq"], {}, "data.tasks names a task twice (bq, bq); keep one of each."),
        (
            ["bq"],
            {"split": "valid"},
            "unknown split 'valid' of bq; choose from train, dev, test, all.",
        ),
        (["bq"], {"root": "no/such"}, "data.root=no/such is not a folder; give one that exists."),
    ],
)
def test_arguments(tasks: Any, kwargs: dict[str, Any], message: str) -> None:
    assert fault_of(load_chinese, tasks, **kwargs) == message


def test_real_chinese_files(shared: Path) -> None:
    (task,) = load_chinese(["stsb_zh"], root=shared / "zh", allow_missing=True)
    assert [(s.subset, len(s)) for s in task.scored] == [("dev", 1458), ("test", 1361)]
    assert task.missing == ("train",)
    assert task.scored[1].first[2] == "一个女人在测量另一个女人的脚踝。"
    message = fault_of(load_chinese, ["atec"], root=shared / "zh", allow_missing=True)
    assert message.startswith("no file of atec (all split) was found in ")


def test_real_excerpt_by_column_number(shared: Path) -> None:
    path = shared / "zh" / "ATEC.first3000.tsv"
    (task,) = load_pairs(path, name="atec", first=1, second=2, score=3)
    assert len(task.scored[0]) == 3000
    assert set(task.scored[0].gold.tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("language", ["de", "ja"])
def test_real_stsb_in_other_languages(shared: Path, language: str) -> None:
    (task,) = load_stsb_multi(language, split="dev", root=shared / "multilingual")
    assert (task.name, len(task.scored[0])) == (f"stsb_{language}", 1500)
    assert task.scored[0].gold[1] == 4.75
    message = fault_of(load_stsb_multi, language, root=shared / "multilingual")
    assert f"there is no file stsb-{language}-test.csv in" in message


def test_languages() -> None:
    assert fault_of(load_stsb_multi, "German").startswith("data.language is 'German'; give two")
    assert fault_of(load_stsb_multi, "ja") == (
        "data.language=ja is not on the hub, which has de, en, es, fr, it, nl, pl, pt, ru, zh; "
        "give a folder that has it with data.root=."
    )


HEADER = "index\tsentence1\tsentence2\tlabel"
PAIRS = ('0\ta "b\tc\tentailment', "1\td\te\tnot_entailment", "2\tf\tg\tentailment")


@pytest.mark.parametrize("inner", ["", "RTE"])
def test_rte(tmp_path: Path, small: None, inner: str) -> None:
    for split in ("train", "dev"):
        write(tmp_path / inner / f"{split}.tsv", HEADER, *PAIRS)
    (task,) = load_rte(root=tmp_path)
    assert (task.name, task.kind) == ("rte", "binary")
    (dev,) = task.scored
    assert (dev.split, dev.first, dev.gold.tolist()) == ("dev", ('a "b', "d", "f"), [1, 0, 1])
    assert [s.split for s in task.calibration] == ["train"]
    (train,) = load_rte(split="train", root=tmp_path)
    assert train.calibration == ()


def test_rte_without_train_or_with_another_label(tmp_path: Path, small: None) -> None:
    path = write(tmp_path / "dev.tsv", HEADER, *PAIRS)
    assert load_rte(root=tmp_path)[0].calibration == ()
    write(path, HEADER, *PAIRS[:2], "2\tf\tg\tneutral")
    assert fault_of(load_rte, root=tmp_path) == (
        f"{path}, line 4: unknown label 'neutral', not one of entailment, not_entailment; correct "
        "it or fetch the file again."
    )
    message = fault_of(load_rte, split="test", root=tmp_path)
    assert message == "unknown split 'test' of rte; choose from train, dev, all."


def test_a_wrong_count_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", HEADER, *PAIRS)
    assert "3 pairs found, 277 expected" in fault_of(load_rte, root=tmp_path)


@pytest.fixture
def hub_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for every data set on the hub."""
    huggingface_hub = pytest.importorskip("huggingface_hub")

    def listed(self: object, repo: str, *, repo_type: str, revision: str) -> list[str]:
        assert len(revision) == 40
        return [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()]

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    monkeypatch.setattr(
        huggingface_hub, "hf_hub_download", lambda repo, name, **_: str(tmp_path / name)
    )
    hub = sys.modules["whitepool.data.hub"]
    monkeypatch.setattr(hub, "_cached", lambda *_: [])
    monkeypatch.setattr(hub, "ask_hub", lambda: None)
    return tmp_path


def parquet(path: Path, names: tuple[str, str, str], rows: list[tuple[str, str, Any]]) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path)


ROWS = [("a", "b", 0), ("c", "d", 1), ("e", "f", 1)]


def test_chinese_on_the_hub(hub_folder: Path, small: None) -> None:
    for split in ("train", "validation", "test"):
        path = hub_folder / f"data/{split}-00000-of-00001-0f.parquet"
        parquet(path, ("sentence1", "sentence2", "score"), ROWS)
    (task,) = load_chinese(["pawsx"])
    assert [s.split for s in task.scored] == list(SPLITS)
    assert task.scored[0].source == "C-MTEB/PAWSX@9c6a90e430ac22b5779fb019a23e820b11a8b5e1"


def test_rte_on_the_hub_where_0_is_entailment(hub_folder: Path, small: None) -> None:
    for folder in ("rte", "wnli"):
        for split in ("train", "validation"):
            path = hub_folder / f"{folder}/{split}-00000-of-00001.parquet"
            parquet(path, ("sentence1", "sentence2", "label"), ROWS[: 3 - (folder == "wnli")])
    (task,) = load_rte()
    assert task.scored[0].gold.tolist() == [1, 0, 0]
    assert task.calibration[0].split == "train"


def test_other_languages_on_the_hub(hub_folder: Path) -> None:
    rows = [("a", "b", 2.5)] * 1500
    for language in ("de", "fr"):
        path = hub_folder / f"dev/{language}.parquet"
        parquet(path, ("sentence1", "sentence2", "similarity_score"), rows)
    message = fault_of(load_stsb_multi, "de", split="dev")  # train and test are not there
    assert "no complete Parquet or .jsonl.gz files of the de split among" in message
    for split, n in (("train", 5749), ("test", 1379)):
        path = hub_folder / f"{split}/de.parquet"
        parquet(path, ("sentence1", "sentence2", "similarity_score"), rows[:1] * n)
    (task,) = load_stsb_multi("de", split="dev")
    assert [(s.split, len(s)) for s in (*task.scored, *task.other_splits)] == [
        ("dev", 1500), ("train", 5749), ("test", 1379),
    ]  # fmt: skip
