"""One-pass analyses from a prepared input to tables: plan, encode chunk by chunk, write."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger

from whitepool import pictures
from whitepool.analysis.base import Analysis, Confirms, Selects
from whitepool.analysis.encoder import GridEncoder
from whitepool.analysis.memory import in_words, plan_chunks
from whitepool.analysis.report import GridRun
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.flow.step import of_vectors
from whitepool.from_config import load_model
from whitepool.inputs import Choice, Inputs
from whitepool.plm import FrozenPLM
from whitepool.pooling.binding import needs_binding
from whitepool.pooling.estimated import is_estimated
from whitepool.size import parse_size
from whitepool.stopping import unmasked
from whitepool.word_moments import of_words

log = logging.getLogger(__name__)


class Grids:
    """The analyses of a configuration by name; none where ``analysis=none``.

    One whose YAML says ``_partial_: true`` is given the head and the map that the command line
    chose, as ``pooling`` and ``post``, if its ``takes`` names them.

    Args:
        settings: the composed group `analysis`.
        choice: head and map of the command line.

    Raises:
        UserError: an analysis refuses its arguments, or needs a corpus, which none reads.
    """

    def __init__(self, settings: DictConfig, choice: Choice) -> None:
        if settings.grids and choice.protocol.fit_on == "corpus":
            raise UserError(
                f"analysis={settings.name} fits on the scored sentences alone, so it takes no "
                "whitening.fit_on=corpus: choose subset, task or suite, or analysis=none."
            )
        if settings.grids and is_estimated(choice.pooling):
            raise UserError(
                f"analysis={settings.name} takes no token weights that a corpus is counted for "
                "(pooling=idf, pooling=sif): choose another pooling, or analysis=none."
            )
        if settings.grids and needs_binding(choice.pooling):
            raise UserError(
                f"analysis={settings.name} takes no head that reads its template or runs the model "
                "again (pooling=echo, prompt_debiased, impact): choose another, or analysis=none."
            )
        if settings.grids and of_words(choice.post):
            raise UserError(
                f"analysis={settings.name} fits on sentences, and whitening=zipfian is fitted on "
                "words: choose another whitening, or analysis=none."
            )
        if settings.grids and of_vectors(choice.post):
            raise UserError(
                f"analysis={settings.name} fits on moments, and whitening=flow is trained on "
                "vectors: choose another whitening, or analysis=none."
            )
        chosen = {"pooling": choice.pooling, "post": choice.post}
        self.analyses: dict[str, Analysis] = {}
        for name, grid in settings.grids.items():
            arguments = {key: value for key, value in grid.items() if key != "takes"}
            made = instantiate(arguments, _convert_="all")
            if takes := list(grid.get("takes", [])):
                if unknown := set(takes) - set(chosen):
                    raise UserError(
                        f"analysis.grids.{name}.takes names {', '.join(sorted(unknown))}: choose "
                        f"from {', '.join(chosen)}."
                    )
                made = made(**{key: chosen[key] for key in takes})
            self.analyses[str(name)] = made

    def __bool__(self) -> bool:
        return bool(self.analyses)

    def select(self, tasks: Sequence[Task]) -> tuple[PairSet, ...]:
        """The sets on which an analysis of these tasks chooses between recipes."""
        return tuple(
            pairs
            for analysis in self.analyses.values()
            if isinstance(analysis, Selects)
            for pairs in analysis.select(tasks)
        )


def analyse(
    config: DictConfig,
    grids: Grids,
    inputs: Inputs,
    trainer: pl.Trainer,
    logger: Logger | Literal[False],
    output: Path,
) -> float:
    """Compute ``grids``, from one pass, and write their tables.

    Returns:
        The headline: the highest Spearman x100 in the first table of the first analysis, raw or
        post-processed, under the protocol's aggregate; of the mean over tasks if there are
        several. NaN if all are undefined.

    Raises:
        UserError: an analysis cannot be computed, or not within ``analysis.max_memory``.
    """
    plm, table = inputs.plm, inputs.table
    if other := [s.task for s in table.scored if s.kind != "graded"]:
        raise UserError(
            f"analysis={config.analysis.name} scores by correlation, and {other[0]} is a task of "
            "another kind: choose analysis=none, or leave it out of data=."
        )
    allowed = parse_size(config.analysis.max_memory, "analysis.max_memory")
    analyses = grids.analyses
    for analysis in analyses.values():
        analysis.plan(plm, inputs.protocol, table)
    started = time.perf_counter()
    chunks, encoding, device = _pass(config, plm, analyses, inputs, trainer, allowed)
    for analysis in analyses.values():
        if isinstance(analysis, Confirms) and plm.provenance["dtype"] != "float32":
            exact = analysis.confirmation()
            precise = load_model(config, "float32")
            exact.plan(precise, inputs.protocol, table)
            _pass(config, precise, {"confirmation in float32": exact}, inputs, trainer, allowed)
            analysis.confirm(exact)
    run = GridRun(
        config=OmegaConf.to_container(config, resolve=True),
        inputs=inputs,
        tables={name: analysis.tables() for name, analysis in analyses.items()},
        chunks=len(chunks),
        encoded=sum(map(len, chunks)),
        encode_seconds=encoding,
        seconds=time.perf_counter() - started,
        device=device,
    )
    run.write(output)
    run.show(output)
    run.log(logger)
    pictures.of_analysis(
        config,
        {name: rows for tables in run.tables.values() for name, rows in tables.items()},
        task=run.task,
        aggregate=inputs.protocol.aggregate,
        folder=output,
        logger=logger,
    )
    return float(run.headline["value"])


def _pass(
    config: DictConfig,
    plm: FrozenPLM,
    analyses: Mapping[str, Analysis],
    inputs: Inputs,
    trainer: pl.Trainer,
    allowed: int,
) -> tuple[list[SentenceTable], float, str]:
    """Encode the table, in chunks that keep to ``allowed`` bytes, for planned analyses.

    Returns:
        The chunks, the seconds that encoding took, and the device.
    """

    def memory(lengths: Sequence[int]) -> int:
        return sum(analysis.memory(lengths) for analysis in analyses.values())

    encoder = GridEncoder(plm, list(analyses.values()))
    chunks = plan_chunks(inputs.table, inputs.protocol.fit_on, memory, allowed)
    most = max(memory([len(ids) for ids in chunk.ids]) for chunk in chunks)
    log.info(
        "%s: %d sentences in %d chunk%s, up to %s of memory (analysis.max_memory is %s).",
        ", ".join(analyses), sum(map(len, chunks)), len(chunks), "s" if len(chunks) > 1 else "",
        in_words(most), in_words(allowed),
    )  # fmt: skip
    seconds = 0.0
    for chunk in chunks:
        data = SentenceDataModule(chunk, batch_tokens=config.batch_tokens)
        began = time.perf_counter()
        with unmasked():
            trainer.test(encoder, datamodule=data, verbose=False)
        seconds += time.perf_counter() - began
        for analysis in analyses.values():
            analysis.finish()
    return chunks, seconds, str(encoder.device)
