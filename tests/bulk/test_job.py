"""Bulk runs on a tiny model: vectors, order, bad rows, and what goes on after a run broke off."""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whitepool.bulk import job, reading
from whitepool.bulk.folder import open_folder
from whitepool.bulk.job import Job
from whitepool.bulk.manifest import Total
from whitepool.bulk.settings import Settings
from whitepool.data.row_sources import open_input
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.loading import load

from tiny import WORDS

Fill = Callable[..., Total]


@pytest.fixture(scope="module")
def encoder(checkpoint: Callable[[str], Path]) -> Encoder:
    return load(checkpoint("bert"), device="cpu")


@pytest.fixture
def fill(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Encode a file into ``tmp_path / "out"``, windows of 16 rows and shards of 40."""
    monkeypatch.setattr(reading, "WINDOW", 16)

    def go(input: Any, output: str = "out", read: Any = None, **settings: Any) -> Total:
        chosen = Settings(**{"format": "npy", "shard_rows": 40, **settings})
        sources = open_input(str(input), **(read or {}))
        work = Job(encoder, chosen, sources, has_ids="id" in (read or {}))
        made_from = {
            "settings": chosen.made_from(),
            "files": [[s.name, s.bytes] for s in sources],
        }
        with open_folder(tmp_path / output, made_from, chosen.on_bad, overwrite=False) as folder:
            return work.fill(folder, show=False)

    return go


def sentences(n: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 12))) for _ in range(n)]


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def vectors(folder: Path) -> Any:
    return np.concatenate([np.load(path) for path in sorted(folder.glob("vectors-*.npy"))])


def content(folder: Path) -> dict[str, str]:
    """Checksum of every file."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": True, "truncate_dim": 5}, {"prompt": "a dog", "long_text": "chunk_mean"}],
)
def test_vectors_are_those_of_encode_in_order(
    fill: Fill, encoder: Encoder, tmp_path: Path, options: dict[str, Any]
) -> None:
    texts = [*sentences(100), " ".join(WORDS * 5), *sentences(3)]
    total = fill(write(tmp_path / "x.txt", texts), **options)
    found = vectors(tmp_path / "out")
    expected = encoder.encode(texts, **options)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert (total.read, total.vectors, total.bad) == (104, 104, 0)
    assert total.cut == ("long_text" not in options)
    assert sorted(content(tmp_path / "out")) == [
        ".lock",
        *(f"ids-{i:05}.csv" for i in range(3)),
        "manifest.json",
        *(f"vectors-{i:05}.npy" for i in range(3)),
    ]


def test_parquet_and_npy_hold_the_same(fill: Fill, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.jsonl"
    records = [{"text": text, "id": f"r{i}"} for i, text in enumerate(sentences(50))]
    write(path, [json.dumps(record) for record in records])
    for format in ("npy", "parquet"):
        fill(path, format, {"id": "id"}, format=format, dtype="float16", keep_text=True)
    table = pq.read_table(sorted((tmp_path / "parquet").glob("*.parquet")))
    assert table["id"].to_pylist() == [f"r{i}" for i in range(50)]
    assert table["text"].to_pylist() == sentences(50)
    assert (np.stack(table["vector"].to_numpy()) == vectors(tmp_path / "npy")).all()


def test_bad_rows(fill: Fill, encoder: Encoder, tmp_path: Path) -> None:
    texts = sentences(100)
    raw = [text.encode() for text in texts]
    for line in (0, 39, 40, 41, 99):
        raw[line] = b"\xff" if line % 2 else b" "
    path = tmp_path / "x.txt"
    path.write_bytes(b"\n".join(raw))
    good = [i for i in range(100) if i not in (0, 39, 40, 41, 99)]

    with pytest.raises(UserError, match=r"x\.txt, line 1: blank; correct it, or go on"):
        fill(path)
    total = fill(path, on_bad="skip")  # nothing was finished, so the folder may be used
    assert (total.read, total.vectors, total.bad) == (100, 95, 5)
    expected = encoder.encode([texts[i] for i in good])
    assert np.abs(vectors(tmp_path / "out") - expected).max() < 1e-5
    ids = "".join(p.read_text(encoding="utf-8") for p in sorted((tmp_path / "out").glob("ids*")))
    assert [int(i) for i in ids.split() if i != "id"] == good
    listed = (tmp_path / "out" / "bad_rows.csv").read_text(encoding="utf-8").splitlines()
    assert listed[0] == "file,line,reason"
    assert [line.removeprefix(f"{path},") for line in listed[1:]] == [
        "1,blank",
        "40,not valid UTF-8",
        "41,blank",
        "42,not valid UTF-8",
        "100,not valid UTF-8",
    ]

    total = fill(path, "zero", on_bad="zero")
    assert (total.read, total.vectors, total.bad) == (100, 100, 5)
    zeroed = vectors(tmp_path / "zero")
    assert [i for i in range(100) if zeroed[i].any()] == good
    assert np.abs(zeroed[good] - expected).max() < 1e-5
    first, second = (content(tmp_path / x)["bad_rows.csv"] for x in ("out", "zero"))
    assert first == second


@pytest.mark.parametrize("bad", ["", " \n\n"])
@pytest.mark.parametrize("on_bad", ["skip", "zero"])
def test_nothing_to_encode(fill: Fill, tmp_path: Path, bad: str, on_bad: str) -> None:
    (tmp_path / "x.txt").write_text(bad, encoding="utf-8")
    what = r"all 2 rows of x\.txt are bad" if bad else "it is empty"
    with pytest.raises(UserError, match=rf"nothing to encode in input=x\.txt: {what}"):
        fill(tmp_path / "x.txt", on_bad=on_bad)


def test_a_run_goes_on_and_leaves_the_same_bytes(
    fill: Fill, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off in the third shard; then a shard is damaged, one lost, and a list changed."""
    path = write(tmp_path / "x.txt", [*sentences(60), "", *sentences(100, 1)])
    fill(path, "whole", on_bad="skip")
    calls: list[int] = []
    vectors_of = encoder.vectors_of

    def failing(texts: list[str], **options: Any) -> Any:
        calls.append(len(texts))
        if sum(calls) > 100:
            raise KeyboardInterrupt
        return vectors_of(texts, **options)

    monkeypatch.setattr(encoder, "vectors_of", failing)
    with pytest.raises(KeyboardInterrupt):
        fill(path, on_bad="skip")
    out = tmp_path / "out"
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["finished"], len(manifest["shards"])) == (False, 2)
    assert not [name for name in content(out) if name.endswith(".partial")]

    calls.clear()
    monkeypatch.setattr(encoder, "vectors_of", vectors_of)
    fill(path, on_bad="skip")
    assert content(out) == content(tmp_path / "whole")

    (out / "vectors-00001.npy").unlink()
    (out / "ids-00002.csv").write_text("id\n", encoding="utf-8")
    (out / "bad_rows.csv").unlink()
    calls.clear()

    def counting(texts: list[str], **options: Any) -> Any:
        calls.append(len(texts))
        return vectors_of(texts, **options)

    monkeypatch.setattr(encoder, "vectors_of", counting)
    fill(path, on_bad="skip")
    assert content(out) == content(tmp_path / "whole")
    assert sum(calls) == 1 + 40 + 40  # the try before, and two shards
    calls.clear()
    fill(path, on_bad="skip")
    assert content(out) == content(tmp_path / "whole")
    assert sum(calls) == 1


def test_error_may_become_skip(fill: Fill, tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", [*sentences(60), "", *sentences(60, 1)])
    with pytest.raises(UserError, match="line 61: blank"):
        fill(path)
    fill(path, on_bad="skip")
    fill(path, "whole", on_bad="skip")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_another_input_of_the_same_size_is_refused(fill: Fill, tmp_path: Path) -> None:
    texts = sentences(100)
    path = write(tmp_path / "x.txt", texts)
    fill(path)
    before = content(tmp_path / "out")
    write(path, [*texts[:98], texts[99], texts[98]])
    with pytest.raises(UserError, match=r"the input is not the one that .* before row 100"):
        fill(path)
    write(path, texts[:-1])
    with pytest.raises(UserError, match=r"was begun with files\[0\]"):
        fill(path)
    assert content(tmp_path / "out") == before


def test_a_full_disk_is_one_sentence_and_shards_stay(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    path = write(tmp_path / "x.txt", sentences(100))
    fill(path, "whole")
    commit = job.OutputFolder.commit
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited(self: Any, number: int, record: Any) -> None:
        commit(self, number, record)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))  # a shard has 5,248 bytes

    monkeypatch.setattr(job.OutputFolder, "commit", limited)
    try:
        with pytest.raises(UserError) as error:
            fill(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    out = tmp_path / "out"
    assert str(error.value) == (
        f"output={out} cannot be written (File too large): 1 finished shards are whole: make room "
        "there and give the same command again."
    )
    assert sorted(content(out)) == [".lock", "ids-00000.csv", "manifest.json", "vectors-00000.npy"]
    monkeypatch.setattr(job.OutputFolder, "commit", commit)
    fill(path)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.parametrize("format", ["npy", "parquet"])
def test_what_a_full_disk_says_of_either_format(
    fill: Fill, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte too many: the first write beyond the manifest fails."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = write(tmp_path / "x.txt", sentences(100))
    begin = job.open_shard

    def limited(*arguments: Any, **options: Any) -> Any:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        return begin(*arguments, **options)

    monkeypatch.setattr(job, "open_shard", limited)
    try:
        with pytest.raises(UserError, match=r"\(File too large\): 0 finished shards are whole"):
            fill(path, format=format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(content(tmp_path / "out")) == [".lock", "manifest.json"]


def test_a_folder_that_cannot_be_written(fill: Fill, tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", sentences(3))
    sealed = Path("/proc/whitepool")
    if sealed.parent.is_dir():
        with pytest.raises(UserError, match="output=/proc/whitepool cannot be written"):
            fill(path, str(sealed))


def test_the_log_tells_of_speed_and_time_left(
    fill: Fill, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "x.txt", sentences(100))
    with caplog.at_level(logging.INFO):
        fill(path)
    lines = [record.message for record in caplog.records if record.message.startswith("shard")]
    assert [line.split(" rows, ")[0] for line in lines] == [
        "shard 0: 40 of 100",
        "shard 1: 80 of 100",
        "shard 2: 100 of 100",
    ]
    assert all("sentences per second" in line for line in lines)
    assert ["left" in line for line in lines] == [True, True, False]
    assert "100 vectors of 32 dimensions in 3 shards" in caplog.text
    caplog.clear()
    (tmp_path / "out" / "vectors-00001.npy").unlink()
    with caplog.at_level(logging.INFO):
        fill(path)
    assert "going on after 60 vectors that are there" in caplog.text
    assert "shard 1: 40 of 40 rows" in caplog.text
