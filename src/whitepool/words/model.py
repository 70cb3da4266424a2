"""A word-vector file as a model: no blocks, one layer, which is the table itself.

Texts are cut at white space. A piece that the vocabulary has as it stands, or in lower case, is a
word; any other is cut further into runs of letters and digits and single other characters, and the
parts are looked up in the same way. What is not found is left out of the text and counted.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from whitepool.errors import UserError
from whitepool.words import fasttext, files
from whitepool.words.table import WordTable

log = logging.getLogger(__name__)

PARTS = re.compile(r"[^\W_]+|\S")
SHOWN = 5  # words without a vector that the log names


class WordTokenizer:
    """Words of a text as rows of a table, with the interface of a tokenizer of transformers.

    Args:
        table: the vocabulary.

    Attributes:
        unknown: words that were not found, with their number.
        known: number of words that were.
    """

    model_max_length = int(1e30)
    is_fast = False
    pad_token_id = eos_token_id = unk_token_id = cls_token_id = sep_token_id = mask_token_id = None
    all_special_ids: tuple[int, ...] = ()

    def __init__(self, table: WordTable) -> None:
        self.table = table
        self.unknown: Counter[str] = Counter()
        self.known = 0
        self._words: list[str] | None = None

    def num_special_tokens_to_add(self) -> int:
        """None."""
        return 0

    def row(self, word: str) -> int | None:
        """Row of a word as it stands, or in lower case."""
        found = self.table.rows.get(word)
        return self.table.rows.get(word.lower()) if found is None else found

    def __call__(
        self,
        texts: str | Sequence[str],
        *,
        truncation: bool,
        padding: bool,
        return_attention_mask: bool,
        verbose: bool,
        max_length: int | None = None,
    ) -> dict[str, Any]:
        """Rows of the words of each text, cut to ``max_length`` where ``truncation`` says so."""
        if isinstance(texts, str):
            return {"input_ids": self._rows(texts, count=False)[:max_length]}
        before = self.unknown.total()
        found = [self._rows(text) for text in texts]
        self.table.need(row for rows in found for row in rows)
        if self.unknown.total() > before:
            self._report()
        return {"input_ids": found}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The words of some rows."""
        if self._words is None:
            self._words = list(self.table.rows)
        return " ".join(self._words[row] for row in ids)

    def _rows(self, text: str, count: bool = True) -> list[int]:
        rows = []
        for piece in text.split():
            whole = self.row(piece)
            for part in [piece] if whole is not None else PARTS.findall(piece):
                row = self.row(part)
                if row is not None:
                    rows.append(row)
                elif count:
                    self.unknown[part] += 1
        if count:
            self.known += len(rows)
        return rows

    def _report(self) -> None:
        missing = self.unknown.total()
        log.warning(
            "%s of %s words have no vector and are left out, %s of them distinct: %s.",
            f"{missing:,}",
            f"{missing + self.known:,}",
            f"{len(self.unknown):,}",
            ", ".join(word for word, _ in self.unknown.most_common(SHOWN)),
        )


class WordVectors(nn.Module):
    """The table as an encoder without blocks."""

    def __init__(self, table: WordTable) -> None:
        super().__init__()
        from transformers import PreTrainedConfig

        rows, dim = table.vectors.shape
        self.config = PreTrainedConfig(
            num_hidden_layers=0, num_attention_heads=0, hidden_size=dim, vocab_size=rows
        )
        self.config.model_type = "words"
        weight = nn.Parameter(torch.from_numpy(table.vectors), requires_grad=False)
        self.table = nn.Embedding(rows, dim, _weight=weight)

    def get_input_embeddings(self) -> nn.Embedding:
        """The table."""
        return self.table

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """The vectors of (batch, token) rows as ``last_hidden_state``, (batch, token, dim)."""
        return SimpleNamespace(last_hidden_state=self.table(input_ids))


def load(path: Path) -> tuple[WordVectors, WordTokenizer, str]:
    """The model, its tokenizer, and the form of the file.

    Raises:
        UserError: the file cannot be read, or is malformed.
    """
    try:
        binary = fasttext.is_fasttext(path)
    except OSError as fault:
        raise UserError(f"{path} cannot be read ({fault.strerror}): check model.path=.") from fault
    if binary:
        table, form = fasttext.read(path), "fasttext"
    else:
        gathered = files.read(path)
        if gathered.repeated:
            log.warning(
                "%s has %d words twice or more: the first vector of each counts.",
                path,
                gathered.repeated,
            )
        table, form = gathered.table(), "words"
    return WordVectors(table), WordTokenizer(table), form
