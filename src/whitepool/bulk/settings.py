"""What a bulk run was asked for, beside the texts and the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from whitepool.batches import check_budget
from whitepool.errors import UserError
from whitepool.recipe import LongText

CHOICES = {
    "format": ("parquet", "npy"),
    "dtype": ("float32", "float16"),
    "on_bad": ("error", "skip", "zero"),
}


@dataclass(frozen=True)
class Settings:
    """Settings of a bulk run.

    Attributes:
        format: of the shards.
        dtype: number type of the vectors on disk.
        shard_rows: vectors of a shard, the last aside.
        keep_text: write the texts beside the vectors.
        on_bad: what is done with a row that cannot be encoded: stop, leave it out, or give it a
            vector of zeros.
        normalize: scale vectors to length 1.
        truncate_dim: keep the first so many dimensions; None for all.
        prompt: put before each text.
        prompt_name: ``query`` or ``document``, for the recipe's prompts.
        long_text: what is done with long texts, in place of the recipe's word.
        batch_tokens: most tokens of a batch.

    Raises:
        UserError: a choice that is not known, or a number below 1.
    """

    format: Literal["parquet", "npy"] = "parquet"
    dtype: Literal["float32", "float16"] = "float32"
    shard_rows: int = 16384
    keep_text: bool = False
    on_bad: Literal["error", "skip", "zero"] = "error"
    normalize: bool = False
    truncate_dim: int | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    long_text: LongText | None = None
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise UserError(f"{name} is {value!r}: choose one of {', '.join(choices)}.")
        for name in ("keep_text", "normalize"):
            if not isinstance(value := getattr(self, name), bool):
                raise UserError(f"{name} is {value!r}: give true or false.")
        if not _whole(self.shard_rows) or self.shard_rows < 1:
            raise UserError(f"shard_rows is {self.shard_rows!r}: give a whole number from 1.")
        if self.truncate_dim is not None and not _whole(self.truncate_dim):
            raise UserError(f"truncate_dim is {self.truncate_dim!r}: give a whole number, or null.")
        if not _whole(self.batch_tokens):
            raise UserError(f"batch_tokens is {self.batch_tokens!r}: give a whole number from 1.")
        check_budget(self.batch_tokens)

    def of_vectors(self) -> dict[str, Any]:
        """The settings of `Encoder.vectors_of`."""
        names = ("normalize", "truncate_dim", "prompt", "prompt_name", "long_text", "batch_tokens")
        return {name: getattr(self, name) for name in names}

    def made_from(self) -> Mapping[str, Any]:
        """What finished shards depend on; ``on_bad`` only where there are bad rows."""
        return {name: value for name, value in asdict(self).items() if name != "on_bad"}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
