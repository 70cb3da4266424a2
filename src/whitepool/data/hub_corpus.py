"""Corpora on the Hugging Face hub: a split of a data set, and the NLI sets that papers fit on.

Files are downloaded into the hub's cache and read from there some thousand rows at a time. No
data-set script is run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from whitepool.data import hub
from whitepool.data.corpus import Corpus, Source, Text, chained
from whitepool.data.corpus_files import Columns, json_texts, names, parquet_texts

log = logging.getLogger(__name__)

REMEDY = "read files with corpus=parquet or corpus=jsonl"
# id, revision, splits. SNLI: Bowman et al. 2015. MultiNLI: Williams et al. 2018.
SNLI = ("stanfordnlp/snli", "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b")
MULTI_NLI = ("nyu-mll/multi_nli", "da70db2af9d09693783c3320c4249840212ee221")
NLI_COLUMNS = ("premise", "hypothesis")


def hub_texts(
    dataset: str,
    revision: str | None = None,
    split: str = "train",
    column: Columns = "text",
    folder: str | None = None,
) -> Corpus:
    """A split of a data set on the hub, Parquet or gzipped JSON lines.

    Args:
        dataset: id.
        revision: commit. None takes the newest, and says so in the log.
        split: name of the split.
        column: columns of the texts, one or several.
        folder: of a data set with several configurations, the folder of one.

    Raises:
        UserError: it cannot be had, or has no such split.
    """
    columns = names(column)
    if revision is None:
        log.warning(
            "%s is unpinned: what is read may be another text tomorrow; give corpus.revision=.",
            dataset,
        )
    paths = hub.download(dataset, revision, split, folder, REMEDY)
    return Corpus("hub", tuple(_source(dataset, revision, path, columns) for path in paths))


def nli(splits: Sequence[str] = ("train",)) -> Corpus:
    """Premises and hypotheses of SNLI and MultiNLI, as often as they occur, labelled or not.

    Args:
        splits: ``train``, and ``dev`` (of MultiNLI the matched and the mismatched).
    """
    parts = []
    for split in splits:
        multi = ("validation_matched", "validation_mismatched") if split == "dev" else (split,)
        parts.append(hub_texts(*SNLI, split, NLI_COLUMNS))
        parts.extend(hub_texts(*MULTI_NLI, name, NLI_COLUMNS) for name in multi)
    return chained("nli", parts)


def address(dataset: str, revision: str | None, path: Path) -> str:
    """The commit and name of a downloaded file, ``ID@COMMIT/NAME``."""
    # The hub's cache has a folder for each commit, which names the one that was the newest.
    commit = revision or next(
        (parent.name for parent in path.parents if parent.parent.name == "snapshots"), "unpinned"
    )
    return f"{dataset}@{commit}/{path.name}"


def _source(dataset: str, revision: str | None, path: Path, columns: Sequence[str]) -> Source:
    read = parquet_texts if path.suffix == ".parquet" else json_texts
    texts: partial[Iterator[Text]] = partial(read, path, columns=columns)
    return Source(address(dataset, revision, path), texts)
