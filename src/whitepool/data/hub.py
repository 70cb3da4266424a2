"""The STS data sets that MTEB pins on the Hugging Face hub.

Each year is one file there, its sub-tasks concatenated, and all of MTEB's SICK-R is one test
split. A split is read from Parquet, in one or several shards, or from gzipped JSON lines; no
data-set script is run. Source of ids and revisions: github.com/embeddings-benchmark/mteb,
mteb/tasks/STS/eng.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from pathlib import Path

from whitepool.data import pairs_file, text
from whitepool.data.counts import HUB_COUNTS, check_count, subsets
from whitepool.data.pairs import PairSet
from whitepool.errors import UserError
from whitepool.online import ask_hub

log = logging.getLogger(__name__)

DATASETS = {
    "stsb": ("mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831"),
    "sickr": ("mteb/sickr-sts", "20a6d6f312dd54037fe07a32d58e5e168867909d"),
    "sts12": ("mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384"),
    "sts13": ("mteb/sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    "sts14": ("mteb/sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    "sts15": ("mteb/sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"),
    "sts16": ("mteb/sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513"),
}
COLUMNS = ("sentence1", "sentence2", "score")
SPLIT_NAMES = {"train": "train", "dev": "validation|dev", "test": "test"}


def split_files(names: list[str], split: str, folder: str | None = None) -> list[str]:
    """The files of a repository that make up a split, in order; Parquet is preferred.

    Args:
        names: paths in the repository.
        split: ``train``, ``dev``, ``test`` or another that the data set has.
        folder: where there is a folder for each of several configurations, the one wanted.

    Returns:
        Paths, empty where the split is not there or one of its shards is not.
    """
    inside = f"{re.escape(folder)}/" if folder else ""
    shard = r"(?:-\d+-of-(\d+)(?:-\w+)?)?"
    for ending in (r"\.parquet", r"\.jsonl\.gz"):
        pattern = re.compile(rf"(?:.*/)?{inside}(?:{_names(split)}){shard}{ending}")
        matches = [m for m in map(pattern.fullmatch, sorted(names)) if m]
        if matches and len(matches) == int(matches[0][1] or 1):
            return [match[0] for match in matches]
    return []


def _names(split: str) -> str:
    """A regular expression of the names a split goes by."""
    return SPLIT_NAMES.get(split, re.escape(split))


def read(task: str, subset: str, split: str) -> PairSet:
    """One split of a data set, downloaded into the hub's cache unless it is there.

    Raises:
        MissingFile: the data set has no such split.
        UserError: huggingface_hub or pyarrow is not there, the hub cannot be reached and nothing
            is cached, a malformed row, or another number of pairs than is known.
    """
    repo, revision = DATASETS[task]
    source = f"{repo}@{revision}"
    if split not in HUB_COUNTS[task]:
        raise text.MissingFile(
            f"{task}: {source} has no {split} split, only {', '.join(HUB_COUNTS[task])}; "
            "give a folder that has it with data.root=."
        )
    rows, sha256 = rows_of(repo, revision, split, COLUMNS)
    check_count(len(rows), HUB_COUNTS[task][split], source)
    return text.to_pair_set(
        rows,
        task=task,
        subset=subset,
        split=split,
        source=source,
        sha256=sha256,
        flattened=subsets(task) != ("",),
    )


def rows_of(
    repo: str,
    revision: str,
    split: str,
    columns: tuple[str, str, str],
    folder: str | None = None,
) -> tuple[list[text.Row], str]:
    """Rows of a split of a data set, and the checksum of its files.

    Args:
        repo: see `download`, as for ``revision``, ``split`` and ``folder``.
        columns: names of the columns of first sentence, second sentence and score.

    Raises:
        UserError: as `read`.
    """
    rows: list[text.Row] = []
    parts: list[bytes] = []
    for path in download(repo, revision, split, folder):
        raw = text.read_bytes(path)
        parts.append(raw)
        if path.suffix == ".parquet":
            rows.extend(pairs_file.parquet_rows(raw, path, columns))
        else:
            rows.extend(pairs_file.json_rows(gunzip(raw, path), path, columns))
    return rows, text.checksum(*parts)


def download(
    repo: str,
    revision: str | None,
    split: str,
    folder: str | None = None,
    remedy: str = "give a local copy with data.root=",
) -> list[Path]:
    """The files of a split, downloaded into the hub's cache unless they are there.

    Args:
        repo: id of a data set.
        revision: commit; None for the newest.
        split: see `split_files`, as for ``folder``.
        folder: folder of a configuration.
        remedy: what to do where they cannot be had, for the message.

    Raises:
        UserError: as `read`.
    """
    address = f"{repo}@{revision}" if revision else repo
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as fault:
        raise UserError(
            f'{repo} needs huggingface_hub to be read: pip install "whitepool[data]".'
        ) from fault
    listed: list[str] = []
    try:
        # A pinned revision does not change, so what is cached needs no look at the hub.
        names = split_files(_cached(repo, revision, split), split, folder) if revision else []
        if not names:
            log.info("fetching the %s split of %s from the Hugging Face hub", split, repo)
            ask_hub()
            listed = HfApi().list_repo_files(repo, repo_type="dataset", revision=revision)
            names = split_files(listed, split, folder)
        paths = [
            Path(hf_hub_download(repo, name, repo_type="dataset", revision=revision))
            for name in names
        ]
    # The hub's HTTP library changes with its version, so its faults share no class but this.
    except Exception as fault:
        raise UserError(
            f"{address} cannot be had from the Hugging Face hub "
            f"({type(fault).__name__}) and is not in its cache; go online once (HF_HUB_OFFLINE "
            f"unset), or {remedy}."
        ) from fault
    if not paths:
        raise UserError(
            f"{address}: no complete Parquet or .jsonl.gz files of the {split} split among "
            f"{', '.join(listed)}; {remedy}."
        )
    return paths


def _cached(repo: str, revision: str, split: str) -> list[str]:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    patterns = [f"*{name}*" for name in SPLIT_NAMES.get(split, split).split("|")]
    try:
        folder = snapshot_download(
            repo,
            repo_type="dataset",
            revision=revision,
            allow_patterns=patterns,
            local_files_only=True,
        )
    except LocalEntryNotFoundError:
        return []
    return [path.relative_to(folder).as_posix() for path in Path(folder).rglob("*")]


def snapshot(repo: str, revision: str | None, patterns: list[str]) -> Path:
    """A folder with the files of a data set that match ``patterns``, downloaded unless there.

    Raises:
        UserError: huggingface_hub is not there, or the hub cannot be reached and nothing is cached.
    """
    try:
        from huggingface_hub import snapshot_download
    except ImportError as fault:
        raise UserError(
            f'{repo} needs huggingface_hub to be read: pip install "whitepool[data]".'
        ) from fault
    try:
        return Path(
            snapshot_download(repo, repo_type="dataset", revision=revision, allow_patterns=patterns)
        )
    # The hub's HTTP library changes with its version, so its faults share no class but this.
    except Exception as fault:
        raise UserError(
            f"{repo} cannot be had from the Hugging Face hub ({type(fault).__name__}) and is not "
            "in its cache; go online once (HF_HUB_OFFLINE unset), or give a local copy with "
            "data.path=."
        ) from fault


def gunzip(raw: bytes, path: Path) -> bytes:
    """The content of a gzipped file.

    Raises:
        UserError: it is damaged.
    """
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as fault:
        raise UserError(f"{path}: not a valid gzip file; {text.FETCH_AGAIN}.") from fault
