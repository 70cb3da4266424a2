"""Vectors of a table's sentences and maps fitted on them: from a pass, or kept from an earlier one.

Vectors are kept under what they depend on, moments under the vectors they were taken from, so that
a run whose vectors are reused fits the same maps to the last bit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig
from pytorch_lightning.loggers import Logger

from whitepool import identity, reuse
from whitepool.callbacks import WhiteningCallback
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.fetching import cache_root
from whitepool.fitting import fit_each, moments_of_kept
from whitepool.flow.fit import fit_flow
from whitepool.flow.step import Flow, of_vectors
from whitepool.inputs import Inputs
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.ranks.gathering import encode_rows
from whitepool.size import parse_size
from whitepool.trainers import device_of, flow_trainer, table_trainer
from whitepool.whitening import Map
from whitepool.word_moments import moments_of_fit_sets, of_words

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Encoded:
    """What a run scores.

    Attributes:
        vectors: (row, dim), float32, before any map; zero for blank sentences.
        maps: map of each fit set, None without post-processing.
        seconds: what this run took, to encode or to read what is kept, and to fit.
        device: where the model ran, or would have.
        reused: whether the vectors are those of an earlier run, and nothing was encoded.
        key: what the vectors are kept under, None where they are not.
    """

    vectors: NDArray[np.float32]
    maps: dict[str, Map] | None
    seconds: float
    device: str
    reused: bool = False
    key: str | None = None


def open_store(config: DictConfig) -> reuse.Store | None:
    """Where ``cache=`` says that vectors are kept, None for ``off``.

    Raises:
        UserError: another choice, or a size that is none.
    """
    if config.name == "off":
        return None
    if config.name != "on":
        raise UserError(f"cache.name is {config.name!r}: choose one of on, off.")
    return reuse.Store(cache_root() / "vectors", parse_size(config.max_size, "cache.max_size"))


def encode(
    config: DictConfig,
    inputs: Inputs,
    store: reuse.Store | None,
    *,
    logger: Logger | Literal[False],
    folder: Path,
) -> Encoded:
    """Encode the sentences of the table and fit a map on each fit set, or reuse what is kept.

    Raises:
        UserError: a vector is not finite, or a fit set cannot be fitted on.
    """
    table, plm, post, fit_on = inputs.table, inputs.plm, inputs.post, inputs.protocol.fit_on
    data = SentenceDataModule(table, batch_tokens=config.batch_tokens)
    by_moments = post is not None and not of_words(post) and not of_vectors(post)
    whitening = WhiteningCallback(post, fit_on) if post and by_moments else None
    trainer = table_trainer(config, logger, folder, whitening)
    device = trainer.strategy.root_device
    if store and (why := identity.why_unknown(plm, inputs.head)):
        log.info("vectors are neither kept nor reused: %s.", why)
        store = None
    made_from = kept = None
    started = time.perf_counter()
    if store:
        made_from = identity.vectors_from(
            plm,
            inputs.head,
            table,
            data.batches,
            device=device.type,
        )
        if trainer.num_nodes == 1:  # the others would wait for a machine that reuses vectors
            kept = store.load(made_from)
    key = reuse.digest(made_from) if made_from else None
    if store and kept:
        vectors = kept["vectors"]
        log.info(
            "vectors of %s sentences reused from %.12s: not encoded again", f"{len(table):,}", key
        )
        maps = (
            _fit(inputs, data, vectors, store, device)
            if by_moments
            else _fit_otherwise(config, inputs, vectors, logger=logger, folder=folder)
        )
        seconds = time.perf_counter() - started
        return Encoded(vectors, maps, seconds, device_of(trainer), reused=True, key=key)

    started = time.perf_counter()
    vectors = run_pass(trainer, SentenceEncoder(plm, inputs.pooling), data, folder, whitening)
    seconds = time.perf_counter() - started
    if store and made_from:
        store.save(made_from, {"vectors": vectors})
        if whitening:
            counts = table.fit_sets(fit_on)
            of = identity.moments_from(vectors, counts, data.batches, device=device.type)
            store.save(of, pack(whitening.moments))
    maps = (
        {**whitening.maps}
        if whitening
        else _fit_otherwise(config, inputs, vectors, logger=logger, folder=folder)
    )
    return Encoded(vectors, maps, seconds, device_of(trainer), reused=False, key=key)


def encode_table(
    config: DictConfig,
    encoder: SentenceEncoder,
    table: SentenceTable,
    folder: Path,
    whitening: WhiteningCallback | None = None,
) -> NDArray[np.float32]:
    """Vectors of a table that something is chosen by, (row, dim); nothing is kept or logged.

    ``whitening`` is fitted on them where it is given.
    """
    data = SentenceDataModule(table, batch_tokens=config.batch_tokens)
    trainer = table_trainer(config, False, folder, whitening)
    return run_pass(trainer, encoder, data, folder, whitening)


def run_pass(
    trainer: pl.Trainer,
    encoder: SentenceEncoder,
    data: SentenceDataModule,
    folder: Path,
    whitening: WhiteningCallback | None,
) -> NDArray[np.float32]:
    """Vectors of a table, (row, dim), from one pass of a trainer of `trainers.table_trainer`.

    ``whitening`` is fitted behind the pass where it did not take part in it.
    """
    vectors = encode_rows(trainer, encoder, data, folder)
    if whitening and whitening not in trainer.callbacks:
        whitening.fit_kept(data, vectors, trainer.strategy.root_device)
    return vectors


def _fit(
    inputs: Inputs,
    data: SentenceDataModule,
    vectors: NDArray[np.float32],
    store: reuse.Store,
    device: torch.device,
) -> dict[str, Map]:
    """Maps fitted on vectors that were kept: from their moments, or from the batches once more."""
    assert inputs.post is not None
    counts = inputs.table.fit_sets(inputs.protocol.fit_on)
    made_from = identity.moments_from(vectors, counts, data.batches, device=device.type)
    if kept := store.load(made_from):
        moments = unpack(kept, device)
    else:
        moments = moments_of_kept(counts, data.batches, vectors, device)
        store.save(made_from, pack(moments))
    return {**fit_each(inputs.post, moments, counts)}


def _fit_otherwise(
    config: DictConfig,
    inputs: Inputs,
    vectors: NDArray[np.float32],
    *,
    logger: Logger | Literal[False],
    folder: Path,
) -> dict[str, Map] | None:
    """Maps fitted on words or, a flow, on the vectors themselves; None without a step."""
    if inputs.post is None:
        return None
    if not isinstance(inputs.post, Flow):
        return _fit_words(inputs)
    maps: dict[str, Map] = {}
    for name, counts in inputs.table.fit_sets(inputs.protocol.fit_on).items():
        rows = np.flatnonzero((counts > 0) & ~inputs.table.is_blank)
        maps[name] = fit_flow(
            inputs.post,
            torch.from_numpy(vectors[rows]),
            torch.from_numpy(counts[rows]),
            name=name,
            trainer=partial(flow_trainer, config, logger, folder),
        )
    return maps


def _fit_words(inputs: Inputs) -> dict[str, Map]:
    """Maps fitted on the words of each fit set."""
    assert inputs.post is not None
    counts = inputs.table.fit_sets(inputs.protocol.fit_on)
    moments = moments_of_fit_sets(inputs.plm, inputs.table.ids, counts)
    return {**fit_each(inputs.post, moments, counts)}


def pack(moments: Mapping[str, Moments]) -> dict[str, NDArray[np.float64]]:
    """Moments as arrays: ``NAME/count`` (), ``NAME/mean`` (dim,), ``NAME/scatter`` (dim, dim)."""
    arrays = {}
    for name, m in moments.items():
        arrays[f"{name}/count"] = np.array(m.count)
        arrays[f"{name}/mean"] = m.mean.cpu().numpy()
        arrays[f"{name}/scatter"] = m.scatter.cpu().numpy()
    return arrays


def unpack(arrays: Mapping[str, NDArray[np.float64]], device: torch.device) -> dict[str, Moments]:
    """What `pack` made arrays of, on ``device`` where that has float64."""
    home = torch.device("cpu") if device.type == "mps" else device
    result = {}
    for name in [key.removesuffix("/count") for key in arrays if key.endswith("/count")]:
        m = Moments(len(arrays[f"{name}/mean"]), home)
        m.count = float(arrays[f"{name}/count"])
        m.mean = torch.from_numpy(arrays[f"{name}/mean"]).to(home)
        m.scatter = torch.from_numpy(arrays[f"{name}/scatter"]).to(home)
        result[name] = m
    return result
