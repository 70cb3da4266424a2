from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pytest

from whitepool.data import hub
from whitepool.data.corpus import Corpus
from whitepool.data.hub_corpus import MULTI_NLI, SNLI, hub_texts, nli
from whitepool.errors import UserError

huggingface_hub = pytest.importorskip("huggingface_hub")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NEWEST = "c" * 40


def texts(corpus: Corpus) -> list[str]:
    return [text.text for text in corpus.read()]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the hub's cache: REPO/snapshots/COMMIT/FILES."""

    def folder(repo: str, revision: str | None) -> Path:
        return tmp_path / repo.replace("/", "--") / "snapshots" / (revision or NEWEST)

    def listed(self: object, repo: str, *, repo_type: str, revision: str | None) -> list[str]:
        root = folder(repo, revision)
        return [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]

    def download(repo: str, name: str, *, repo_type: str, revision: str | None) -> str:
        return str(folder(repo, revision) / name)

    def snapshot(*args: object, **kwargs: object) -> str:
        raise huggingface_hub.errors.LocalEntryNotFoundError("nothing cached")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(hub, "ask_hub", lambda: None)
    return tmp_path


def put(cache: Path, repo: str, revision: str, name: str, rows: list[dict[str, object]]) -> None:
    path = cache / repo.replace("/", "--") / "snapshots" / revision / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in rows).encode()))


def test_a_split_in_shards(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    for i in (1, 0):
        put(cache, "o/set", "a" * 40, f"data/train-0000{i}-of-00002.parquet", [{"text": f"t{i}"}])
    put(cache, "o/set", "a" * 40, "data/test-00000-of-00001.parquet", [{"text": "no"}])
    corpus = hub_texts("o/set", "a" * 40)
    assert texts(corpus) == ["t0", "t1"]
    assert corpus.sources[0].name == f"o/set@{'a' * 40}/train-00000-of-00002.parquet"
    assert "unpinned" not in caplog.text


def test_unpinned_is_said_and_the_commit_found(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(cache, "o/set", NEWEST, "train.jsonl.gz", [{"q": "a", "d": "b"}])
    with caplog.at_level(logging.WARNING):
        corpus = hub_texts("o/set", column=["q", "d"])
    assert texts(corpus) == ["a", "b"]
    assert "o/set is unpinned" in caplog.text
    assert corpus.sources[0].name == f"o/set@{NEWEST}/train.jsonl.gz"


def test_one_of_several_configurations(cache: Path) -> None:
    for name in ("de", "en"):
        put(cache, "o/set", "a" * 40, f"{name}/odd.split-00000-of-00001.parquet", [{"text": name}])
    assert texts(hub_texts("o/set", "a" * 40, "odd.split", folder="en")) == ["en"]
    with pytest.raises(UserError, match="no complete Parquet"):
        hub_texts("o/set", "a" * 40, "odd.split")


def test_offline_is_one_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*args: object, **kwargs: object) -> list[str]:
        raise huggingface_hub.errors.OfflineModeIsEnabled("offline")

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    with pytest.raises(UserError) as fault:
        hub_texts("o/set", "a" * 40)
    assert str(fault.value) == (
        f"o/set@{'a' * 40} cannot be had from the Hugging Face hub (OfflineModeIsEnabled) and is "
        "not in its cache; go online once (HF_HUB_OFFLINE unset), or read files with "
        "corpus=parquet or corpus=jsonl."
    )


def test_nli(cache: Path) -> None:
    row = {"premise": "p", "hypothesis": "h", "label": -1}
    shard = "-00000-of-00001.parquet"
    put(cache, *SNLI, f"plain_text/train{shard}", [row, row])
    put(cache, *SNLI, f"plain_text/validation{shard}", [{**row, "premise": "dev"}])
    for name in ("train", "validation_matched", "validation_mismatched"):
        put(cache, *MULTI_NLI, f"data/{name}{shard}", [{**row, "premise": name}])
    assert texts(nli()) == ["p", "h", "p", "h", "train", "h"]
    assert texts(nli(["dev"])) == [
        *("dev", "h"), *("validation_matched", "h"), *("validation_mismatched", "h")
    ]  # fmt: skip
    assert nli().name == "nli"
