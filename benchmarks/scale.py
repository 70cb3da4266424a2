"""Seconds and memory of a whole run as sentences grow, each size in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import ours, sentences, suite
from benchmarks.show import quiet
from whitepool import scores
from whitepool.callbacks import WhiteningCallback
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.table import SentenceTable
from whitepool.module import SentenceEncoder
from whitepool.whitening import Whitening


@dataclass(frozen=True)
class Size:
    """What a run of one size took.

    Attributes:
        sentences: all distinct.
        tokens: of all sentences.
        dim: of a vector.
        table: seconds of tokenising and numbering.
        encode: of the pass over the model, without the moments.
        whiten: of moments, maps and mapping.
        score: of cosines, correlations and bootstrap.
        before: peak memory in MB once the model and the texts are there.
        peak: peak memory in MB at the end.
        vectors: MB of the vectors kept.
    """

    sentences: int
    tokens: int
    dim: int
    table: float
    encode: float
    whiten: float
    score: float
    before: float
    peak: float
    vectors: float

    @property
    def total(self) -> float:
        """Seconds of everything."""
        return self.table + self.encode + self.whiten + self.score


class TimedWhitening(WhiteningCallback):
    """The callback, and the seconds that it took."""

    seconds = 0.0

    def on_test_batch_end(self, *arguments: Any, **options: Any) -> None:
        """Take in a batch."""
        started = time.perf_counter()
        super().on_test_batch_end(*arguments, **options)
        self.seconds += time.perf_counter() - started

    def on_test_epoch_end(self, *arguments: Any) -> None:
        """Fit."""
        started = time.perf_counter()
        super().on_test_epoch_end(*arguments)
        self.seconds += time.perf_counter() - started


def peak_memory(status: Path = Path("/proc/self/status")) -> float:
    """The most memory that this process has held, in MB.

    Linux's own mark where there is one: ru_maxrss begins at what the parent process held.
    """
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next(1024e-6 * int(words[1]) for words in lines if words[:1] == ["VmHWM:"])
    unit = 1e-6 if sys.platform == "darwin" else 1024e-6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def one(
    folder: Path,
    texts: Sequence[str],
    count: int,
    *,
    layers: Sequence[int],
    precision: str,
    batch_tokens: int,
    bootstrap: int,
    threads: int,
) -> Size:
    """A run over ``count`` sentences in pairs, with whitening fitted on all of them."""
    quiet()
    torch.set_num_threads(threads)
    plm = ours.load(folder, precision)
    task = sentences.as_task(sentences.repeated(texts, count))
    pooling = ours.mean(*layers)
    ours.encode(plm, texts[: min(len(texts), 1000)], pooling, batch_tokens)  # sets things up
    before, started = peak_memory(), time.perf_counter()
    table = SentenceTable.build([task], plm.tokenize)
    built = time.perf_counter()
    encoder = SentenceEncoder(plm, pooling)
    whitening = TimedWhitening(Whitening(), "task")
    data = SentenceDataModule(table, batch_tokens=batch_tokens)
    suite.trainer(callbacks=[whitening]).test(encoder, datamodule=data, verbose=False)
    encoded = time.perf_counter()
    raw = scores.cosines(table, encoder.vectors, None, suite.PROTOCOL)
    compared = time.perf_counter()
    post = scores.cosines(table, encoder.vectors, whitening.maps, suite.PROTOCOL)
    mapped = time.perf_counter()
    scores.score(table.scored, raw | {"post": post["post"]}, samples=bootstrap)
    ended = time.perf_counter()
    return Size(
        sentences=len(table),
        tokens=sum(map(len, table.ids)),
        dim=encoder.vectors.shape[1],
        table=built - started,
        encode=encoded - built - whitening.seconds,
        whiten=whitening.seconds + mapped - compared,
        score=compared - encoded + ended - mapped,
        before=before,
        peak=peak_memory(),
        vectors=encoder.vectors.nbytes * 1e-6,
    )


def measure(
    folder: Path, texts: Sequence[str], sizes: Sequence[int], **options: Any
) -> Iterator[Size]:
    """`one` for each size, in a new process each, so that peaks of memory are its own."""
    for count in sizes:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            yield pool.submit(one, folder, texts, count, **options).result()


def rows(sizes: Sequence[Size]) -> list[dict[str, str]]:
    """The table that is printed."""
    result = []
    for s in sizes:
        result.append(
            {
                "sentences": f"{s.sentences:,}",
                "tokens": f"{s.tokens:,}",
                "seconds": f"{s.total:.1f}",
                "ms/sentence": f"{1000 * s.total / s.sentences:.3f}",
                "us/token, table and encode": f"{1e6 * (s.table + s.encode) / s.tokens:.2f}",
                "table": f"{s.table:.1f}",
                "encode": f"{s.encode:.1f}",
                "whiten": f"{s.whiten:.2f}",
                "score": f"{s.score:.2f}",
                "whiten and score, %": f"{100 * (s.whiten + s.score) / s.total:.1f}",
                "peak MB": f"{s.peak:,.0f}",
                "over start MB": f"{s.peak - s.before:,.0f}",
                "vectors MB": f"{s.vectors:,.0f}",
            }
        )
    return result
