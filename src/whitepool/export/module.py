"""The one module class for recipes that sentence-transformers' own modules cannot express.

It tokenises, pools and maps with the code that `whitepool.Encoder` uses, so that vectors are the
same whatever the head. sentence-transformers loads a class of another package only with
``trust_remote_code=True``; `whitepool.sentence_transformer` needs no flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules.input_module import InputModule
from torch import Tensor

from whitepool.batches import BATCH_TOKENS
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.export.layout import exported_recipe, write_model
from whitepool.states import pad
from whitepool.texts import checked
from whitepool.vectors import mean_of_pieces, pool


class RecipeModule(InputModule):
    """Texts to the vectors of a recipe, as the first and only module of a SentenceTransformer.

    Args:
        encoder: a fitted encoder. Its model is moved and saved with the module.

    Attributes:
        tokenizer: the model's.
        max_seq_length: tokens per text, special ones included.
    """

    save_in_root = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.plm = encoder.pooled.plm
        self.tokenizer = self.plm.tokenizer
        self._encoder = encoder

    @property
    def max_seq_length(self) -> int:
        """Tokens per text, special ones included."""
        return self._encoder.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self._encoder.pooled.max_length = self.plm.check_length(value)

    def get_embedding_dimension(self) -> int:
        """Dimensions of the vectors."""
        return self._encoder.dimension

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, task: str | None = None
    ) -> dict[str, Any]:
        """Token ids of texts, in pieces if the recipe cuts long ones.

        Args:
            inputs: texts; a blank one has no piece.
            prompt: put before each text, within the template.
            task: ``query`` or ``document``; of no meaning here, where prompts do that.

        Returns:
            ``input_ids`` and ``attention_mask`` (piece, token), ``piece_text`` and
            ``piece_weight`` (piece,), ``texts``: how many texts there are.

        Raises:
            UserError: something that is not a text, or a text that is too long, if the recipe
                refuses such texts.
        """
        pieces = self._encoder.pooled.pieces(list(checked(inputs)), prompt or "")
        empty = torch.zeros((0, 0), dtype=torch.long)
        tokens = pad(pieces.ids, self.plm.pad_id) if pieces.ids else (empty, empty.bool())
        return {
            "input_ids": tokens[0],
            "attention_mask": tokens[1].long(),
            "piece_text": torch.tensor(pieces.owner, dtype=torch.long),
            "piece_weight": torch.tensor(pieces.weight, dtype=torch.long),
            "texts": len(inputs),
        }

    @torch.no_grad()
    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with ``sentence_embedding``, (text, k) float32; zero for a blank text."""
        ids, lengths = features["input_ids"].cpu(), features["attention_mask"].sum(1).tolist()
        sequences = [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)]
        pooled = self._encoder.pooled
        vectors = pool(self.plm, pooled.pooling, sequences, batch_tokens=BATCH_TOKENS)
        raw, blank = mean_of_pieces(
            vectors.reshape(-1, pooled.dim),
            features["piece_text"].tolist(),
            features["piece_weight"].tolist(),
            features["texts"],
        )
        mapped = self._encoder.mapped(raw)
        mapped[blank] = 0.0
        embedding: Tensor = torch.from_numpy(mapped).to(self.plm.device)
        return {**features, "sentence_embedding": embedding}

    def save(self, output_path: str, safe_serialization: bool = True) -> None:
        """Write model, tokenizer and recipe into a folder that is there.

        Raises:
            UserError: pickled weights are asked for.
        """
        if not safe_serialization:
            raise UserError("safe_serialization is False: weights are written as safetensors only.")
        write_model(self.plm, self._encoder.recipe(), Path(output_path))

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        trust_remote_code: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        backend: str = "torch",
    ) -> RecipeModule:
        """Read an export, from a folder or the hub; sentence-transformers gives the arguments.

        Raises:
            UserError: no export, another backend, or settings of the model that the recipe fixes.
        """
        from sentence_transformers.util import load_dir_path

        given = {
            "model_kwargs": model_kwargs,
            "processor_kwargs": processor_kwargs,
            "config_kwargs": config_kwargs,
        }
        if names := [name for name, value in given.items() if value]:
            raise UserError(f"the recipe has its own model: leave {', '.join(names)} out.")
        if backend != "torch":
            raise UserError(f"backend is {backend!r}: a recipe runs with torch alone.")
        place = load_dir_path(
            model_name_or_path,
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        if place is None:
            raise UserError(f"there is no folder {model_name_or_path!r} with an export.")
        return cls(Encoder.from_recipe(exported_recipe(Path(place))))
