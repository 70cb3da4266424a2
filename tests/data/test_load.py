from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from whitepool.data import hub, load_pairs, load_sts
from whitepool.data.counts import COUNTS, subsets
from whitepool.data.pairs import PairSet
from whitepool.data.text import to_pair_set
from whitepool.errors import UserError

Expect = Callable[[str, str, str, int], None]
YEARS = ["sts12", "sts13", "sts14", "sts15", "sts16"]
ROW = "PAD\tPAD\tPAD\tPAD\t1\ta\tb\n"


def fault_of(*args: object, **kwargs: object) -> str:
    with pytest.raises(UserError) as fault:
        load_sts(*args, **kwargs)  # type: ignore[arg-type]
    return str(fault.value)


@pytest.fixture
def embedded(stsb_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assets = ModuleType("whitepool.assets")
    assets.fetch = {"stsb": stsb_folder}.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "whitepool.assets", assets)
    return stsb_folder


@pytest.fixture
def hub_reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What was asked of the hub, which answers with one pair."""
    asked: list[tuple[str, str, str]] = []

    def read(task: str, subset: str, split: str) -> PairSet:
        asked.append((task, subset, split))
        row = ("a", "b", 1.0)
        return to_pair_set(
            [row], task=task, subset=subset, split=split, source="hub", sha256="", flattened=True
        )

    monkeypatch.setattr(hub, "read", read)
    return asked


def test_without_a_root_stsb_is_embedded_and_the_rest_from_the_hub(
    embedded: Path, hub_reads: list[tuple[str, str, str]]
) -> None:
    tasks = load_sts(["sts13", "stsb"])
    assert [task.name for task in tasks] == ["sts13", "stsb"]
    assert hub_reads == [("sts13", "", "test")]
    assert (tasks[0].other_splits, tasks[0].missing) == ((), ())
    (test,) = tasks[1].scored
    assert (test.source, len(test)) == (str(embedded / "sts-test.csv"), 1379)
    assert [(s.split, len(s)) for s in tasks[1].other_splits] == [("train", 5749), ("dev", 1500)]


def test_another_split_is_scored_and_the_rest_are_others(embedded: Path) -> None:
    (task,) = load_sts(["stsb"], split="dev", source="embedded")
    assert [s.split for s in task.scored] == ["dev"]
    assert [s.split for s in task.other_splits] == ["train", "test"]


def test_the_hub_may_be_forced(hub_reads: list[tuple[str, str, str]]) -> None:
    (task,) = load_sts(["stsb"], source="hub")
    assert hub_reads == [("stsb", "", "test"), ("stsb", "", "train"), ("stsb", "", "dev")]
    assert [s.split for s in (*task.scored, *task.other_splits)] == ["test", "train", "dev"]


def test_the_hub_has_one_split_of_sick(monkeypatch: pytest.MonkeyPatch) -> None:
    real = hub.read
    rows = [("a", "b", 1.0)]

    def read(task: str, subset: str, split: str) -> PairSet:
        if split == "test":
            return to_pair_set(rows, task=task, subset="", split=split, source="", sha256="")
        return real(task, subset, split)

    monkeypatch.setattr(hub, "read", read)
    (task,) = load_sts(["sickr"])
    assert (len(task.scored), task.other_splits) == (1, ())


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"tasks": ["stsb", "sts17"]},
            "unknown task 'sts17'; choose from stsb, sickr, sts12, sts13, sts14, sts15, sts16.",
        ),
        ({"tasks": "stsb"}, "data.tasks is 'stsb'; give a list of tasks, as [stsb,sickr]."),
        ({"tasks": []}, "data.tasks is []; give a list of tasks, as [stsb,sickr]."),
        (
            {"tasks": ["stsb", "stsb"]},
            "data.tasks names a task twice (stsb, stsb); keep one of each.",
        ),
        (
            {"tasks": ["stsb"], "split": "validation"},
            "unknown split 'validation'; choose from train, dev, test.",
        ),
        (
            {"tasks": ["stsb", "sts14"], "split": "dev"},
            "sts14 has only a test split, not dev; set data.split=test or leave sts14 out.",
        ),
        (
            {"tasks": ["stsb"], "source": "web"},
            "unknown source 'web'; choose from embedded, hub.",
        ),
        (
            {"tasks": ["stsb", "sickr"], "source": "embedded"},
            "only stsb is embedded, not sickr; use data.source=hub or data.root=.",
        ),
        (
            {"tasks": ["stsb"], "source": "hub", "root": "some"},
            "data.root=some and data.source=hub are both given; keep one of them.",
        ),
        (
            {"tasks": ["stsb"], "root": "no/such/folder"},
            "data.root=no/such/folder is not a folder; give one that exists.",
        ),
    ],
)
def test_arguments_that_cannot_be_met(kwargs: dict[str, object], message: str) -> None:
    assert fault_of(**kwargs) == message


def test_a_root_of_neither_layout_says_what_was_looked_for(tmp_path: Path) -> None:
    assert fault_of(["stsb"], root=tmp_path) == (
        f"data.root={tmp_path} holds none of the layouts looked for: STS/STS12-en-test … "
        "STS16-en-test, STS/STSBenchmark or SICK (SentEval); sts12.MSRpar-test.csv, "
        "sts-b-test.csv, sickr-test.csv … (WhiteningBERT); give the folder of one of them."
    )


def test_a_root_of_both_layouts_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "SICK").mkdir()
    (tmp_path / "sts-b-test.csv").touch()
    assert "holds several of the layouts looked for" in fault_of(["stsb"], root=tmp_path)


def test_the_parent_of_downstream_is_taken(tmp_path: Path, stsb_folder: Path) -> None:
    (tmp_path / "data" / "downstream" / "STS").mkdir(parents=True)
    stsb_folder.rename(tmp_path / "data" / "downstream" / "STS" / "STSBenchmark")
    for root in (tmp_path / "data", str(tmp_path / "data" / "downstream")):
        (task,) = load_sts(["stsb"], root=root)
        assert [len(s) for s in (*task.scored, *task.other_splits)] == [1379, 5749, 1500]


def test_splits_that_a_folder_lacks_are_simply_not_there(tmp_path: Path, counts: Expect) -> None:
    counts("stsb", "", "test", 1)
    (tmp_path / "sts-b-test.csv").write_text(ROW, encoding="utf-8")
    (task,) = load_sts(["stsb"], root=tmp_path)
    assert (len(task.scored), task.other_splits, task.missing) == (1, (), ())


def test_a_malformed_other_split_is_not_passed_over(tmp_path: Path, counts: Expect) -> None:
    counts("stsb", "", "test", 1)
    (tmp_path / "sts-b-test.csv").write_text(ROW, encoding="utf-8")
    (tmp_path / "sts-b-dev.csv").write_text("broken\n", encoding="utf-8")
    assert "sts-b-dev.csv, line 1: 1 tab-separated columns found" in fault_of(
        ["stsb"], root=tmp_path
    )


def test_missing_files(tmp_path: Path, counts: Expect) -> None:
    counts("sts13", "OnWN", "test", 1)
    (tmp_path / "sts13.OnWN-test.csv").write_text(ROW, encoding="utf-8")
    names = ["stsb", "sts13", "sts16"]
    assert fault_of(["sts13"], root=tmp_path) == (
        f"sts13, sub-task FNWN: there is no file {tmp_path / 'sts13.FNWN-test.csv'}; point "
        "data.root= at a folder that has it, or leave it out with data.allow_missing=true."
    )
    stsb, sts13, sts16 = load_sts(names, root=tmp_path, allow_missing=True)
    assert (stsb.scored, stsb.missing) == ((), ("stsb",))
    assert [s.subset for s in sts13.scored] == ["OnWN"]
    assert sts13.missing == ("FNWN", "headlines")
    assert (sts16.scored, sts16.missing) == ((), subsets("sts16"))
    assert fault_of(["stsb", "sts16"], root=tmp_path, allow_missing=True) == (
        f"no file of stsb, sts16 (test split) was found in {tmp_path}; "
        "point data.root= at a folder that has one."
    )


def test_a_task_with_nothing_scored_lends_no_other_split(tmp_path: Path, counts: Expect) -> None:
    counts("stsb", "", "dev", 1)
    counts("sickr", "", "test", 1)
    for name in ("sts-b-dev.csv", "sickr-test.csv"):
        (tmp_path / name).write_text(ROW, encoding="utf-8")
    stsb, sickr = load_sts(["stsb", "sickr"], root=tmp_path, allow_missing=True)
    assert (stsb.scored, stsb.other_splits, stsb.missing) == ((), (), ("stsb",))
    assert len(sickr.scored) == 1


def test_allow_missing_forgives_no_malformed_file(tmp_path: Path) -> None:
    (tmp_path / "sts13.OnWN-test.csv").write_text(ROW, encoding="utf-8")
    message = fault_of(["sts13"], root=tmp_path, allow_missing=True)
    assert "1 pairs found, 561 expected" in message


def test_real_senteval(shared: Path) -> None:
    root = shared / "senteval"
    message = fault_of(YEARS, root=root)
    assert message.startswith("sts12, sub-task MSRvid: there is no file ")
    assert "STS.input.MSRvid.txt; point data.root= at a folder" in message

    tasks = load_sts(["sickr", *YEARS], root=root, allow_missing=True)
    assert [task.missing for task in tasks] == [(), ("MSRvid",), (), (), (), ()]
    pairs = [sum(len(s) for s in task.scored) for task in tasks]
    assert pairs == [4927, 2358, 1500, 3750, 3000, 1186]
    assert [sum(s.unjudged for s in task.scored) for task in tasks] == [0, 0, 0, 0, 5500, 7997]
    assert [(s.split, len(s)) for s in tasks[0].other_splits] == [("train", 4500), ("dev", 500)]
    assert [s.subset for s in tasks[1].scored] == [s for s in subsets("sts12") if s != "MSRvid"]


def test_real_whiteningbert(shared: Path) -> None:
    tasks = load_sts(list(COUNTS), root=shared / "whiteningbert")
    assert [task.name for task in tasks] == list(COUNTS)
    for task in tasks:
        assert tuple(s.subset for s in task.scored) == subsets(task.name)
        assert (task.other_splits, task.missing) == ((), ())
        assert not any(s.flattened for s in task.scored)
    assert sum(len(s) for task in tasks for s in task.scored) == 18_850


def test_real_files_in_a_downstream_folder(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "senteval" / "SICK", tmp_path / "downstream" / "SICK")
    (task,) = load_sts(["sickr"], split="train", root=tmp_path)
    assert [s.split for s in (*task.scored, *task.other_splits)] == ["train", "dev", "test"]


def test_own_pairs(tmp_path: Path) -> None:
    path = tmp_path / "my.pairs.tsv"
    path.write_text("a\tb\tgold\nx\ty\t1\nz\t\t0\n", encoding="utf-8")
    (task,) = load_pairs(path, first="a", second="b", score="gold")
    (got,) = task.scored
    assert (task.name, got.task, got.subset, got.split) == ("my.pairs", "my.pairs", "", "test")
    assert (got.first, got.second, got.gold.tolist()) == (("x", "z"), ("y", ""), [1.0, 0.0])
    assert (got.source, got.unjudged, got.flattened) == (str(path), 0, False)
    assert load_pairs(str(path), name="mine", first="b", second="a", score="gold")[0].name == "mine"


def test_own_pairs_without_a_row(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("sentence1,sentence2,score\n", encoding="utf-8")
    with pytest.raises(UserError) as fault:
        load_pairs(path)
    assert str(fault.value) == (
        f"{path} holds no sentence pairs; give a file with at least one row."
    )


def test_own_pairs_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.csv cannot be read \(No such file or directory\)"):
        load_pairs(tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["stsb-de-dev.csv", "stsb-ja-dev.csv"])
def test_own_pairs_from_real_csv(shared: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    header = b"sentence1,sentence2,score\r\n"
    path.write_bytes(header + (shared / "multilingual" / name).read_bytes())
    (task,) = load_pairs(path)
    assert len(task.scored[0]) == 1500


@pytest.mark.parametrize(("name", "pairs"), [("STS-B.valid.data", 1458), ("STS-B.test.data", 1361)])
def test_own_pairs_from_real_tsv(shared: Path, tmp_path: Path, name: str, pairs: int) -> None:
    path = tmp_path / "zh.tsv"
    header = b"sentence1\tsentence2\tscore\n"
    path.write_bytes(header + (shared / "zh" / name).read_bytes())
    assert len(load_pairs(path)[0].scored[0]) == pairs


def test_importing_the_readers_imports_nothing_heavy() -> None:
    code = (
        "import sys, whitepool.data;"
        "heavy = {'torch', 'pyarrow', 'huggingface_hub', 'transformers', 'pytorch_lightning'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_train_parts_of_2012(tmp_path: Path, counts: Expect) -> None:
    folder = tmp_path / "STS" / "STS12-en-train"
    folder.mkdir(parents=True)
    for name in subsets("sts12", "train"):
        counts("sts12", name, "train", 2)
        (folder / f"STS.input.{name}.txt").write_text("a\tb\nc\td\n", encoding="utf-8")
        (folder / f"STS.gs.{name}.txt").write_text("1\n4.5\n", encoding="utf-8")
    (tmp_path / "STS" / "STS12-en-test").mkdir()
    (task,) = load_sts(["sts12"], split="train", root=tmp_path)
    assert [s.subset for s in task.scored] == ["MSRpar", "MSRvid", "SMTeuroparl"]
    assert {s.split for s in task.scored} == {"train"}
    assert task.other_splits == ()
    assert fault_of(["sts12"], split="dev", root=tmp_path) == (
        "sts12 has only a test and a train split, not dev; set data.split=test or leave sts12 out."
    )
