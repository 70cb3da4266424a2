"""A step fitted on a corpus, on moments of earlier runs, or on both; its moments are kept.

Moments are on disk before anything is fitted on them: a step that does not go with them can then
be changed without another pass over the texts.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig
from pytorch_lightning.loggers import Logger

from whitepool.corpus_pass import fit_in_run, step_moments
from whitepool.data.corpus import Corpus
from whitepool.errors import UserError
from whitepool.fit import Fit, fit_moments
from whitepool.flow.step import of_vectors
from whitepool.framing import Frame
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.moments_file import merged, save_moments
from whitepool.versions import versions
from whitepool.whitening import PostProcess

log = logging.getLogger(__name__)

MOMENTS = "moments.safetensors"


def fit_step(
    config: DictConfig,
    encoder: SentenceEncoder,
    post: PostProcess,
    corpus: Corpus | None,
    resumed: Sequence[Path],
    vectors: Mapping[str, Any],
    length: int,
    folder: Path,
    logger: Logger | Literal[False],
    frame: Frame,
) -> tuple[Moments, Fit]:
    """Fit, and leave moments.safetensors in the run's folder.

    Args:
        config: composed from `conf/train.yaml`.
        encoder: what pools the texts.
        post: the step.
        corpus: texts; None where ``resumed`` has moments.
        resumed: moments files, or the checkpoint of a flow.
        vectors: what the vectors are, see `whitepool.moments_file`.
        length: tokens per text.
        folder: of the run.
        logger: Lightning's.
        frame: what is put around texts.

    Raises:
        UserError: a file is of other vectors, or the step cannot be fitted on the moments; the
            message says how to try another step on them.
    """
    flow = of_vectors(post)
    moments, corpora = merged(resumed, vectors) if resumed and not flow else (None, [])
    new, seconds, fitted = None, 0.0, None
    if corpus is not None:
        new = step_moments(
            config, encoder, post, corpus, length, folder=folder, logger=logger, frame=frame
        )
        moments = new.moments if moments is None else moments.merge(new.moments)
        corpora, seconds = [*corpora, new.description], new.seconds
    assert moments is not None
    warn_of_repeats(corpora)
    provenance = {"vectors": dict(vectors), "corpora": corpora, "versions": versions()}
    save_moments(folder / MOMENTS, moments, provenance)
    try:
        if new is not None:
            fitted = fit_in_run(
                config,
                post,
                new,
                folder=folder,
                logger=logger,
                checkpoint=folder / "flow.ckpt",
                resume=resumed[0] if resumed and flow else None,
            )
        return moments, fit_moments(post, moments, corpora, seconds, fitted)
    except UserError as error:
        if flow:
            raise
        raise UserError(
            f"{str(error).removesuffix('.')}; resume_from={folder / MOMENTS} in place of corpus= "
            "spares reading the texts again."
        ) from error


def warn_of_repeats(corpora: Sequence[Mapping[str, Any]]) -> None:
    """Say where the same texts were taken in twice."""
    for sha256, times in Counter(c["sha256"] for c in corpora).items():
        if times > 1:
            name = next(c["corpus"] for c in corpora if c["sha256"] == sha256)
            log.warning("The same texts of corpus %s were taken in %d times.", name, times)
