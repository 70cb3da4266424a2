from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.data import hub, text
from whitepool.data.counts import COUNTS, HUB_COUNTS
from whitepool.errors import UserError

huggingface_hub = pytest.importorskip("huggingface_hub")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

STS12 = "mteb/sts12-sts@a0d554a64d88156834ff5ae9920b964011b16384"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for every data set on the hub; the hub's cache is empty."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def listed(self: object, repo: str, *, repo_type: str, revision: str) -> list[str]:
        assert (repo_type, (repo, revision) in hub.DATASETS.values()) == ("dataset", True)
        return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]

    def download(repo: str, name: str, *, repo_type: str, revision: str) -> str:
        assert (repo_type, (repo, revision) in hub.DATASETS.values()) == ("dataset", True)
        return str(folder / name)

    def snapshot(*args: object, **kwargs: object) -> str:
        raise huggingface_hub.errors.LocalEntryNotFoundError("nothing cached")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(hub, "ask_hub", lambda: None)
    return folder


def rows(start: int, stop: int) -> list[dict[str, object]]:
    return [
        {"sentence1": f'a "{i}\u2028', "sentence2": f"b\t{i}\n", "score": i / 2, "split": "x"}
        for i in range(start, stop)
    ]


def write_parquet(path: Path, records: list[dict[str, object]]) -> bytes:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records), path)
    return path.read_bytes()


def write_json(path: Path, records: list[dict[str, object]]) -> bytes:
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    return path.read_bytes()


def expect(monkeypatch: pytest.MonkeyPatch, task: str, split: str, pairs: int) -> None:
    monkeypatch.setitem(HUB_COUNTS[task], split, pairs)


@pytest.mark.parametrize(
    "name",
    ["data/test-00000-of-00001.parquet", "test.parquet", "data/test-00000-of-00001-0f.parquet"],
)
def test_parquet(repository: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expect(monkeypatch, "sts12", "test", 3)
    raw = write_parquet(repository / name, rows(0, 3))
    write_json(repository / "test.jsonl.gz", rows(5, 6))
    write_json(repository / "train.jsonl.gz", rows(7, 8))
    got = hub.read("sts12", "", "test")
    assert got.first == ('a "0\u2028', 'a "1\u2028', 'a "2\u2028')
    assert got.second == ("b\t0\n", "b\t1\n", "b\t2\n")
    assert got.gold.tolist() == [0, 0.5, 1]
    assert (got.task, got.subset, got.split, got.flattened) == ("sts12", "", "test", True)
    assert (got.source, got.sha256) == (STS12, hashlib.sha256(raw).hexdigest())


def test_shards_are_read_in_order(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect(monkeypatch, "stsb", "dev", 4)
    second = write_parquet(repository / "data/validation-00001-of-00002.parquet", rows(2, 4))
    first = write_parquet(repository / "data/validation-00000-of-00002.parquet", rows(0, 2))
    got = hub.read("stsb", "", "dev")
    assert got.gold.tolist() == [0, 0.5, 1, 1.5]
    assert got.sha256 == hashlib.sha256(first + second).hexdigest()
    assert (got.split, got.flattened) == ("dev", False)


@pytest.mark.parametrize("name", ["validation.jsonl.gz", "dev.jsonl.gz"])
def test_gzipped_json_lines(repository: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    expect(monkeypatch, "stsb", "dev", 2)
    raw = write_json(repository / name, rows(0, 2))
    got = hub.read("stsb", "", "dev")
    assert (got.first, got.gold.tolist()) == (('a "0\u2028', 'a "1\u2028'), [0, 0.5])
    assert got.sha256 == hashlib.sha256(raw).hexdigest()


def test_full_size_sick(repository: Path) -> None:
    write_json(repository / "test.jsonl.gz", rows(0, 9927))
    assert len(hub.read("sickr", "", "test")) == 9927


@pytest.mark.parametrize(
    ("names", "split", "found"),
    [
        (["README.md", "test.jsonl.gz", "test.parquet"], "test", ["test.parquet"]),
        (["data/test-00001-of-00002.parquet"], "test", []),
        (["data/test-00001-of-00002.parquet", "test.jsonl.gz"], "test", ["test.jsonl.gz"]),
        (["latest.parquet", "test.csv", "test-old.parquet", "my-test.jsonl.gz"], "test", []),
        (["dev.jsonl.gz"], "train", []),
        (
            ["test-00001-of-00002.parquet", "test-00000-of-00002.parquet"],
            "test",
            ["test-00000-of-00002.parquet", "test-00001-of-00002.parquet"],
        ),
    ],
)
def test_files_of_a_split(names: list[str], split: str, found: list[str]) -> None:
    assert hub.split_files(names, split) == found


def test_a_wrong_count_is_refused(repository: Path) -> None:
    write_json(repository / "test.jsonl.gz", rows(0, 3))
    with pytest.raises(UserError) as fault:
        hub.read("sts12", "", "test")
    assert str(fault.value).startswith(f"{STS12}: 3 pairs found, 3108 expected; ")


def test_a_split_that_the_data_set_lacks() -> None:
    with pytest.raises(text.MissingFile) as fault:
        hub.read("sickr", "", "train")
    assert str(fault.value) == (
        "sickr: mteb/sickr-sts@20a6d6f312dd54037fe07a32d58e5e168867909d has no train split, only "
        "test; give a folder that has it with data.root=."
    )


def test_a_repository_without_the_files(repository: Path) -> None:
    (repository / "README.md").touch()
    with pytest.raises(UserError) as fault:
        hub.read("sts12", "", "test")
    assert str(fault.value) == (
        f"{STS12}: no complete Parquet or .jsonl.gz files of the test split among README.md; "
        "give a local copy with data.root=."
    )


@pytest.mark.parametrize("cut", [0, 5, 40])
def test_a_damaged_gzip_file(repository: Path, cut: int) -> None:
    path = repository / "test.jsonl.gz"
    path.write_bytes(write_json(path, rows(0, 50))[:cut] or b"no gzip")
    with pytest.raises(UserError) as fault:
        hub.read("sts12", "", "test")
    assert str(fault.value) == (
        f"{path}: not a valid gzip file; correct it or fetch the file again."
    )


def test_a_malformed_row_is_named(repository: Path) -> None:
    write_json(repository / "test.jsonl.gz", [*rows(0, 2), {"sentence1": "a", "score": 1}])
    with pytest.raises(UserError, match=r"test\.jsonl\.gz, line 3: no column sentence2"):
        hub.read("sts12", "", "test")


@pytest.mark.parametrize(("package", "named"), [("huggingface_hub", "mteb/sts12-sts")])
def test_without_its_package(monkeypatch: pytest.MonkeyPatch, package: str, named: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError) as fault:
        hub.read("sts12", "", "test")
    assert str(fault.value) == (
        f'{named} needs {package} to be read: pip install "whitepool[data]".'
    )


def test_offline_with_nothing_cached_is_one_sentence(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(*args: object, **kwargs: object) -> list[str]:
        raise huggingface_hub.errors.OfflineModeIsEnabled("offline")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    with pytest.raises(UserError) as fault:
        hub.read("sts12", "", "test")
    assert not isinstance(fault.value, text.MissingFile)
    assert str(fault.value) == (
        f"{STS12} cannot be had from the Hugging Face hub (OfflineModeIsEnabled) and is not in its "
        "cache; go online once (HF_HUB_OFFLINE unset), or give a local copy with data.root=."
    )


def test_what_is_cached_needs_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The real huggingface_hub on a cache folder laid out as it does, with the network forbidden.
    repo, revision = hub.DATASETS["sts13"]
    cache = tmp_path / "hub"
    folder = cache / f"datasets--{repo.replace('/', '--')}" / "snapshots" / revision
    folder.mkdir(parents=True)
    write_json(folder / "test.jsonl.gz", rows(0, 1500))

    def in_cache(function: Callable[..., str]) -> Callable[..., str]:
        return lambda *args, **kwargs: function(*args, cache_dir=cache, **kwargs)

    def listed(*args: object, **kwargs: object) -> list[str]:
        raise AssertionError("looked at the hub")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    for name in ("hf_hub_download", "snapshot_download"):
        monkeypatch.setattr(huggingface_hub, name, in_cache(getattr(huggingface_hub, name)))
    got = hub.read("sts13", "", "test")
    assert (len(got), got.source) == (1500, f"{repo}@{revision}")


def test_every_task_has_a_pinned_data_set() -> None:
    assert hub.DATASETS.keys() == HUB_COUNTS.keys() == COUNTS.keys()
    assert all(len(revision) == 40 for _, revision in hub.DATASETS.values())
