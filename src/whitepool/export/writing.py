"""An encoder to a folder of sentence-transformers, in order."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from whitepool.export import chain
from whitepool.export.card import card
from whitepool.export.check import check
from whitepool.export.layout import (
    check_model,
    check_target,
    need_sentence_transformers,
    write_chain,
    write_model,
    write_own,
)
from whitepool.whole_folder import whole_folder

if TYPE_CHECKING:
    from whitepool.encoder import Encoder

log = logging.getLogger(__name__)


def check_export(folder: Path, *, overwrite: bool) -> Path:
    """See that an export may go there, before any work is done; returns its absolute path.

    Raises:
        UserError: see `whitepool.Encoder.export`.
    """
    need_sentence_transformers()
    folder = folder.expanduser().absolute()
    check_target(folder, overwrite=overwrite)
    return folder


def export(encoder: Encoder, folder: Path, *, overwrite: bool = False) -> Path:
    """See `whitepool.Encoder.export`."""
    folder = check_export(folder, overwrite=overwrite)
    check_model(encoder.pooled.plm)
    recipe = encoder.recipe()
    if encoder.pooled.plm.provenance["dtype"] != recipe.model.dtype:
        encoder = type(encoder).from_recipe(recipe, device=encoder.device)
    plm = encoder.pooled.plm
    reason = chain.obstacle(recipe, plm)
    with whole_folder(folder, "the export") as fresh:
        write_model(plm, recipe, fresh)
        if reason is None:
            others = chain.modules(recipe, plm, encoder.pooled.dim)
            layers = chain.layers_besides_last(recipe, plm)
            write_chain(fresh, recipe, plm, others, all_layers=bool(layers))
        else:
            write_own(fresh, recipe)
        text = card(recipe, encoder.dimension, reason, folder.name)
        (fresh / "README.md").write_text(text, encoding="utf-8")
        check(encoder, fresh)
    if reason is None:
        log.info("%s: SentenceTransformer(FOLDER) loads it.", folder)
    else:
        log.info(
            "%s: whitepool.sentence_transformer(FOLDER) loads it, not sentence-transformers' own "
            "modules, since %s.",
            folder,
            reason,
        )
    return folder
