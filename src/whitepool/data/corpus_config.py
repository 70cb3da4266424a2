"""The corpus that a configuration chooses."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from whitepool.cli import is_multirun
from whitepool.data.corpus import Corpus
from whitepool.errors import UserError

log = logging.getLogger(__name__)


def load_corpus(config: DictConfig) -> Corpus | None:
    """The corpus that ``corpus=`` chose; None for ``corpus=none``.

    Raises:
        UserError: nothing is there, or a limit is set where there is no corpus.
    """
    content: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    name, limit, seed = (content.pop(key) for key in ("name", "limit", "seed"))
    if "_target_" not in content:
        if limit is not None:
            raise UserError(
                f"corpus.limit={limit} has nothing to sample: choose a corpus, as corpus=text."
            )
        return None
    for key in sorted(OmegaConf.missing_keys(config)):
        raise UserError(f"corpus.{key} has no value: give corpus.{key}=…")
    corpus: Corpus = instantiate(content, _convert_="all")
    return replace(corpus, name=name, limit=limit, seed=seed)


def check_corpus(given: Corpus | None, *, for_map: bool, for_tokens: bool) -> None:
    """See that a corpus is given where one is needed, and used where it is given.

    Raises:
        UserError: it is not. In a multirun, where a corpus may serve only some of the jobs, one
            of no use is a word in the log instead.
    """
    if for_map and given is None:
        raise UserError(
            "whitening.fit_on=corpus has no corpus: choose one, as corpus=text corpus.path=FILE."
        )
    if given is not None and not (for_map or for_tokens):
        message = f"corpus={given.name} is of no use without whitening fitted on it"
        if not is_multirun():
            raise UserError(f"{message}: set whitening.fit_on=corpus, or leave it out.")
        log.warning("%s: ignored.", message)
