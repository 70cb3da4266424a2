"""One-pass analyses from a prepared input to tables: plan, encode chunk by chunk, write."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger

from whitepool.analysis.base import Analysis
from whitepool.analysis.encoder import GridEncoder
from whitepool.analysis.memory import in_words, plan_chunks
from whitepool.analysis.report import GridRun
from whitepool.data.datamodule import SentenceDataModule
from whitepool.errors import UserError
from whitepool.inputs import Inputs
from whitepool.size import parse_size

log = logging.getLogger(__name__)


def analyse(
    config: DictConfig,
    inputs: Inputs,
    trainer: pl.Trainer,
    logger: Logger | Literal[False],
    output: Path,
) -> float:
    """Compute the grids that ``analysis=`` chose, from one pass, and write their tables.

    Returns:
        The headline: the highest Spearman x100 in the first table of the first analysis, raw or
        post-processed, under the protocol's aggregate; of the mean over tasks if there are
        several. NaN if all are undefined.

    Raises:
        UserError: an analysis cannot be computed, or not within ``analysis.max_memory``.
    """
    plm, table = inputs.plm, inputs.table
    allowed = parse_size(config.analysis.max_memory, "analysis.max_memory")
    analyses = build(config.analysis, inputs)
    for analysis in analyses.values():
        analysis.plan(plm, inputs.protocol, table)
    encoder = GridEncoder(plm, list(analyses.values()))

    def memory(lengths: Sequence[int]) -> int:
        return sum(analysis.memory(lengths) for analysis in analyses.values())

    chunks = plan_chunks(table, inputs.protocol.fit_on, memory, allowed)
    most = max(memory([len(ids) for ids in chunk.ids]) for chunk in chunks)
    log.info(
        "%s: %d sentences in %d chunk%s, up to %s of memory (analysis.max_memory is %s).",
        ", ".join(analyses), sum(map(len, chunks)), len(chunks), "s" if len(chunks) > 1 else "",
        in_words(most), in_words(allowed),
    )  # fmt: skip
    encoding, started = 0.0, time.perf_counter()
    for chunk in chunks:
        data = SentenceDataModule(chunk, batch_tokens=config.batch_tokens)
        began = time.perf_counter()
        trainer.test(encoder, datamodule=data, verbose=False)
        encoding += time.perf_counter() - began
        for analysis in analyses.values():
            analysis.finish()
    run = GridRun(
        config=OmegaConf.to_container(config, resolve=True),
        inputs=inputs,
        tables={name: analysis.tables() for name, analysis in analyses.items()},
        chunks=len(chunks),
        encoded=sum(map(len, chunks)),
        encode_seconds=encoding,
        seconds=time.perf_counter() - started,
        device=str(encoder.device),
    )
    run.write(output)
    run.log(logger)
    run.show(output)
    return float(run.headline["value"])


def build(settings: DictConfig, inputs: Inputs) -> dict[str, Analysis]:
    """The analyses of a configuration by name.

    One whose YAML says ``_partial_: true`` is given the head and the map that the command line
    chose, as ``pooling`` and ``post``, if its ``takes`` names them.

    Raises:
        UserError: an analysis refuses its arguments.
    """
    chosen = {"pooling": inputs.pooling, "post": inputs.post}
    analyses: dict[str, Analysis] = {}
    for name, grid in settings.grids.items():
        arguments = {key: value for key, value in grid.items() if key != "takes"}
        made = instantiate(arguments, _convert_="all")
        if takes := list(grid.get("takes", [])):
            if unknown := set(takes) - set(chosen):
                raise UserError(
                    f"analysis.grids.{name}.takes names {', '.join(sorted(unknown))}: choose from "
                    f"{', '.join(chosen)}."
                )
            made = made(**{key: chosen[key] for key in takes})
        analyses[str(name)] = made
    return analyses
