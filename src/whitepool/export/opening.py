"""`whitepool.sentence_transformer`: an export as a SentenceTransformer, whatever its modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whitepool.errors import UserError
from whitepool.export.layout import (
    exported_recipe,
    is_export,
    is_own,
    need_sentence_transformers,
)

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def sentence_transformer(
    folder: str | Path, *, device: str | None = None, truncate_dim: int | None = None
) -> SentenceTransformer:
    """A SentenceTransformer from a folder that `whitepool.Encoder.export` wrote.

    For recipes that sentence-transformers' own modules cannot express this takes the place of
    ``SentenceTransformer(folder, trust_remote_code=True)``; the others are loaded as
    ``SentenceTransformer(folder)`` does.

    Args:
        folder: the export.
        device: where the model runs; None lets sentence-transformers choose.
        truncate_dim: keep the first so many dimensions.

    Raises:
        UserError: no export, or sentence-transformers is not installed.
    """
    need_sentence_transformers()
    from sentence_transformers import SentenceTransformer

    path = Path(folder).expanduser()
    if not is_export(path):
        raise UserError(f"{path} is no export: write one with Encoder.export.")
    if not is_own(path):
        return SentenceTransformer(str(path), device=device, truncate_dim=truncate_dim)
    from whitepool.encoder import Encoder
    from whitepool.export.module import RecipeModule

    recipe = exported_recipe(path)
    return SentenceTransformer(
        modules=[RecipeModule(Encoder.from_recipe(recipe))],
        device=device,
        prompts={"query": recipe.prompts.query, "document": recipe.prompts.document},
        similarity_fn_name=recipe.similarity,
        truncate_dim=truncate_dim,
    )
