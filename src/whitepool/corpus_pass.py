"""One pass of a frozen encoder over a corpus: the moments of its vectors, whatever its size."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig
from pytorch_lightning.loggers import Logger
from torch import Tensor

from whitepool.data.corpus import Corpus, Text
from whitepool.data.streaming import CorpusStream, WeightedBatch
from whitepool.errors import UserError
from whitepool.fit import Fit, fit_moments
from whitepool.flow.fit import fit_flow
from whitepool.flow.step import Flow, of_vectors
from whitepool.framing import Frame, is_apart
from whitepool.longtext import framed
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.ranks.gathering import gather_moments
from whitepool.ranks.launch import processes
from whitepool.ranks.settings import is_several
from whitepool.token_counts import count_tokens
from whitepool.trainers import flow_trainer, make_trainer
from whitepool.whitening import Map, PostProcess
from whitepool.word_moments import of_words, word_moments

log = logging.getLogger(__name__)


class CorpusMoments(pl.Callback):
    """Accumulates the moments of all vectors of a predict pass over a `CorpusStream`.

    Args:
        chunk: vectors gathered before the moments are updated, which costs O(dim^2) a time.
        keep: keep the vectors too.

    Attributes:
        moments: after the pass; None where no text came.
        vectors: the vectors that were kept and their weights, (n, dim) and (n,), in parts.
    """

    def __init__(self, chunk: int = 2048, *, keep: bool = False) -> None:
        self.chunk, self.keep = chunk, keep
        self.moments: Moments | None = None
        self.vectors: list[tuple[Tensor, Tensor]] = []
        self._waiting: list[tuple[Tensor, Tensor, tuple[Text, ...]]] = []

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Forget what an earlier pass left."""
        self.moments, self.vectors, self._waiting = None, [], []

    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: WeightedBatch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Take in the vectors of a batch."""
        assert isinstance(outputs, Tensor)
        self._waiting.append((outputs, batch.weight, batch.texts))
        if sum(len(vectors) for vectors, *_ in self._waiting) >= self.chunk:
            self._flush()

    def on_predict_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take in what is still waiting."""
        self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        vectors, weights, texts = zip(*self._waiting, strict=True)
        self._waiting = []
        x, weight = torch.cat(vectors), torch.cat(weights)
        if x.device.type == "mps":  # has no float64
            x, weight = x.cpu(), weight.cpu()
        finite = torch.isfinite(x).all(1)
        if not finite.all():
            bad = [text for part in texts for text in part][int((~finite).nonzero()[0])]
            raise UserError(
                f"{bad.where}: the vector of {bad.text[:60]!r} is not finite: use "
                "trainer.precision=32-true, or look for a fault in the model's weights."
            )
        if self.moments is None:
            self.moments = Moments(x.shape[1], x.device)
        self.moments.update(x, weight)
        if self.keep:
            self.vectors.append((x.float().cpu(), weight.cpu()))


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pass over a corpus gave.

    Attributes:
        moments: of all its vectors, on the CPU.
        description: what was read, see `Reading.describe`, and how many texts were cut.
        seconds: how long it took.
        device: where the model ran.
        vectors: (n, dim) float32, where they were asked for.
        weight: how often each of them counts, (n,).
    """

    moments: Moments
    description: dict[str, Any]
    seconds: float
    device: str
    vectors: Tensor | None = None
    weight: Tensor | None = None


def corpus_moments(
    config: DictConfig,
    encoder: SentenceEncoder,
    corpus: Corpus,
    max_length: int,
    *,
    folder: Path,
    logger: Logger | Literal[False] = False,
    frame: Frame | None = None,
    keep: bool = False,
) -> Pass:
    """Encode a corpus and keep nothing but the moments.

    Args:
        config: with ``trainer``, ``batch_tokens`` and ``window``.
        encoder: the frozen model and its head.
        corpus: the texts.
        max_length: tokens per text.
        folder: Lightning's.
        logger: Lightning's.
        frame: what is put around texts; None for nothing.
        keep: keep the vectors too, so that memory grows with the corpus.

    Raises:
        UserError: a fault in the corpus, no text in it, a vector that is not finite.
        KeyboardInterrupt: Ctrl-C, which Lightning would make an exit of its own.
    """
    stream = CorpusStream(
        corpus,
        framed(encoder.plm, max_length, frame or Frame(), apart=is_apart(encoder.pooling)),
        batch_tokens=config.batch_tokens,
        window=config.window,
    )
    callback = CorpusMoments(keep=keep)
    several = is_several(config)
    trainer = make_trainer(config, not several and logger, folder, callback)
    started = time.perf_counter()
    if several:
        found, description = gather_moments(trainer, encoder, stream, callback, folder)
    else:
        with processes(trainer):
            trainer.predict(encoder, dataloaders=stream.loader(), return_predictions=False)
        found = callback.moments
        description = {**stream.reading.describe(), "truncated": stream.truncated}
    seconds = time.perf_counter() - started
    if found is None:
        raise UserError(f"corpus={corpus.name} has no text but blank ones: give one with text.")
    announce(description, max_length, seconds)
    moments = Moments(found.dim).merge(found)  # brings it to the CPU
    if not keep:
        return Pass(moments, description, seconds, str(encoder.device))
    vectors, weight = (torch.cat(parts) for parts in zip(*callback.vectors, strict=True))
    return Pass(moments, description, seconds, str(encoder.device), vectors, weight)


def step_moments(
    config: DictConfig,
    encoder: SentenceEncoder,
    post: PostProcess,
    corpus: Corpus,
    max_length: int,
    *,
    folder: Path,
    logger: Logger | Literal[False] = False,
    frame: Frame | None = None,
) -> Pass:
    """The moments of a corpus that ``post`` is fitted on, of its vectors or words; for a flow the
    vectors too.

    The other arguments and the errors are those of `corpus_moments`.
    """
    if not of_words(post):
        return corpus_moments(
            config,
            encoder,
            corpus,
            max_length,
            folder=folder,
            logger=logger,
            frame=frame,
            keep=of_vectors(post),
        )
    started = time.perf_counter()
    counts, description = count_tokens(corpus, encoder.plm, max_length, config.window, frame)
    moments = word_moments(encoder.plm, counts.occurrences)
    return Pass(moments, description, time.perf_counter() - started, str(encoder.device))


def announce(description: Mapping[str, Any], max_length: int, seconds: float) -> None:
    """Say what was read, and what is odd about it."""
    used, limit = description["texts"], description["limit"]
    log.info(
        "%s texts of corpus %s in %.1f s%s",
        f"{used:,}",
        description["corpus"],
        seconds,
        f" (a sample of {description['read'] - description['blank']:,})"
        if limit is not None and used == limit
        else "",
    )
    if limit is not None and used < limit:
        log.warning("corpus.limit=%d, but there are only %d texts: all are used.", limit, used)
    if description["blank"]:
        log.warning("%s texts are blank and left out.", f"{description['blank']:,}")
    if description["truncated"]:
        log.warning("%d texts are cut to %d tokens.", description["truncated"], max_length)


def fit_on_corpus(
    config: DictConfig,
    encoder: SentenceEncoder,
    post: PostProcess,
    corpus: Corpus,
    max_length: int,
    *,
    folder: Path,
    logger: Logger | Literal[False] = False,
    frame: Frame | None = None,
) -> Fit:
    """Fit a step on a corpus; arguments and errors as of `step_moments`."""
    new = step_moments(
        config, encoder, post, corpus, max_length, folder=folder, logger=logger, frame=frame
    )
    fitted = fit_in_run(config, post, new, folder=folder, logger=logger)
    return fit_moments(post, new.moments, [new.description], new.seconds, fitted)


def fit_in_run(
    config: DictConfig,
    post: PostProcess,
    new: Pass,
    *,
    folder: Path,
    logger: Logger | Literal[False],
    checkpoint: Path | None = None,
    resume: Path | None = None,
) -> Map | None:
    """A flow trained on the vectors of a pass; None for a step that moments are enough for.

    Args:
        config: with ``trainer``.
        post: what is fitted.
        new: the pass.
        folder: Lightning's.
        logger: Lightning's.
        checkpoint: see `whitepool.flow.fit.fit_flow`, as ``resume``.
        resume: a checkpoint to go on from.
    """
    if not isinstance(post, Flow):
        return None
    assert new.vectors is not None
    assert new.weight is not None
    return fit_flow(
        post,
        new.vectors,
        new.weight,
        name="corpus",
        trainer=partial(flow_trainer, config, logger, folder),
        checkpoint=checkpoint,
        resume=resume,
    )
