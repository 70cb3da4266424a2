"""The corpus that a configuration chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from whitepool.data.corpus import Corpus
from whitepool.errors import UserError


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
