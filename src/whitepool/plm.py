"""A frozen pretrained language model that computes only what a head needs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from whitepool import attention, blocks, checkpoint
from whitepool.attention import Capture, SoftmaxTap, capturing
from whitepool.errors import UserError
from whitepool.states import Batch, Layer, Needs, States, Tokens, resolve_layer


class Tokenized(NamedTuple):
    """Token ids of some texts, and which of them were cut.

    Attributes:
        ids: token ids of each text, special tokens included; () for a blank text.
        truncated: whether each text was longer than the limit.
    """

    ids: list[tuple[int, ...]]
    truncated: list[bool]


class FrozenPLM(nn.Module):
    """Tokenizer and frozen encoder behind one interface for all families.

    Args:
        loaded: the model and tokenizer, from `whitepool.checkpoint.load`.
        name: how results call it.
        max_length: tokens per text, special ones included; None for the model's own limit.

    Raises:
        UserError: max_length is over the model's limit or leaves no room for a token.
    """

    def __init__(
        self, loaded: checkpoint.Checkpoint, *, name: str, max_length: int | None = None
    ) -> None:
        super().__init__()
        self.name = name
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self.provenance = loaded.provenance
        self.missing = loaded.missing
        self.limit = blocks.length_limit(loaded.model, loaded.tokenizer, loaded.length_limit)
        self.max_length = self.check_length(max_length)
        self.depth = blocks.depth(loaded.model)
        self.heads = int(loaded.model.config.get_text_config().num_attention_heads)
        self._takes = set(inspect.signature(loaded.model.forward).parameters)
        blocks.install(loaded.model, self.depth)

    @classmethod
    def from_pretrained(
        cls,
        id: str | None = None,
        *,
        revision: str | None = None,
        path: str | Path | None = None,
        asset: str | None = None,
        name: str | None = None,
        dtype: str = "float32",
        max_length: int | None = None,
    ) -> FrozenPLM:
        """Load a local folder, an embedded asset or a hub id, looked at in this order.

        Args:
            id: hub id.
            revision: commit of the hub id.
            path: local folder, in place of the others.
            asset: name of an embedded asset; fetched when first used.
            name: how results call the model; the folder or hub id by default.
            dtype: ``float32`` or ``bfloat16``.
            max_length: see `FrozenPLM`.

        Raises:
            UserError: no source is given, or it cannot be loaded.
        """
        if path is not None:
            folder = Path(path).expanduser()
            if not folder.is_dir():
                raise UserError(f"model folder {path} does not exist: check model.path=.")
            source: str | Path = folder
        elif asset is not None:
            from whitepool.assets import fetch

            source = fetch(asset)
        elif id is not None:
            source = id
        else:
            raise UserError(
                "no model was given: pass model.path=FOLDER, or choose a model by name."
            )
        loaded = checkpoint.load(source, revision=revision, dtype=dtype)
        return cls(loaded, name=name or str(id or source), max_length=max_length)

    def check_length(self, max_length: int | None) -> int:
        """The length to cut texts at, in tokens, given what the user wants (None: the limit).

        Raises:
            UserError: over the model's limit, or no room for a token beside the special ones.
        """
        if max_length is None:
            return self.limit
        least = self.tokenizer.num_special_tokens_to_add() + 1
        if not least <= max_length <= self.limit:
            raise UserError(
                f"maximum length {max_length} is outside {least} to {self.limit}, the lengths "
                f"model {self.name} can take (special tokens included)."
            )
        return max_length

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> Tokenized:
        """Token ids of each text, cut to ``max_length`` tokens (the model's own by default).

        Blank texts (empty or white space only) get no tokens at all.
        """
        longest = self.check_length(max_length) if max_length is not None else self.max_length
        filled = [i for i, text in enumerate(texts) if text.strip()]
        options = {"padding": False, "return_attention_mask": False, "verbose": False}
        ids: list[tuple[int, ...]] = [()] * len(texts)
        truncated = [False] * len(texts)
        if not filled:
            return Tokenized(ids, truncated)
        found = self.tokenizer([texts[i] for i in filled], truncation=False, **options)["input_ids"]
        for i, sequence in zip(filled, found, strict=True):
            if len(sequence) > longest:
                truncated[i] = True
                sequence = self.tokenizer(  # noqa: PLW2901
                    texts[i], truncation=True, max_length=longest, **options
                )["input_ids"]
            ids[i] = tuple(sequence)
        return Tokenized(ids, truncated)

    @property
    def pad_id(self) -> int:
        """An id to pad with; any would do, since padding is masked and stands on the right."""
        tokenizer = self.tokenizer
        for candidate in (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id):
            if candidate is not None:
                return int(candidate)
        return 0

    @property
    def device(self) -> torch.device:
        """Where the model's weights are."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def check(self, needs: Needs) -> None:
        """See that the model has what a head needs, before any work is done.

        Raises:
            UserError: a layer, block or head that does not exist, or a pooler without weights.
        """
        for layer in needs.layers:
            resolve_layer(layer, self.depth)
        for block, head in needs.diagonals:
            if not (0 <= block < self.depth and 0 <= head < self.heads):
                raise UserError(
                    f"block {block} head {head} does not exist: model {self.name} has {self.depth} "
                    f"blocks and {self.heads} heads, counted from 0."
                )
        if needs.pooler:
            blocks.pooler_map(self.model, self.missing, self.name)

    def states(self, batch: Batch, needs: Needs) -> Iterator[tuple[Tensor, States]]:
        """Rows and states of a batch, in parts whose sentences are computed together.

        Args:
            batch: sentences of a table.
            needs: see `forward`.

        Yields:
            (sentence,) rows of the table, and their states.
        """
        yield batch.rows, self(batch.tokens, needs)

    @torch.no_grad()
    def forward(self, tokens: Tokens, needs: Needs) -> States:
        """Hidden states and diagonals of one batch.

        Args:
            tokens: (batch, token); padding on either side, no row without a token.
            needs: what to keep. The pass stops after the last layer needed.

        Raises:
            UserError: see `check`.
        """
        self.check(needs)
        layers = [resolve_layer(layer, self.depth) for layer in needs.layers]
        numbered = [layer for layer in layers if isinstance(layer, int)]
        last = max([*numbered, *(block + 1 for block, _ in needs.diagonals), -1])
        heads: dict[int, list[int]] = {}
        for block, head in needs.diagonals:
            heads.setdefault(block, []).append(head)
        capture = Capture(frozenset(numbered), self.depth if needs.pooler else last, heads)
        packed, back = _left_aligned(tokens)
        final = self._run(packed, capture) if capture.last >= 0 else None
        hidden: dict[Layer, Tensor] = {layer: h for layer, h in capture.hidden.items()}  # noqa: C416
        if final is not None:
            hidden[self.depth] = final
        if "static" in layers:
            table = self.model.get_input_embeddings().weight
            hidden["static"] = nn.functional.embedding(packed.ids, table)
        pooled = None
        if needs.pooler:
            assert final is not None
            pooled = blocks.pooler_map(self.model, self.missing, self.name)(final[:, 0])
        mask = packed.mask
        diagonals = {key: d.where(mask, 0.0) for key, d in capture.diagonals.items()}
        if missing := set(needs.diagonals) - set(diagonals):
            raise UserError(
                f"model {self.name} does not show the attention of block, head {sorted(missing)}: "
                "its attention goes through no function that is watched."
            )
        if back is not None:
            hidden = {key: _gather(h, back) for key, h in hidden.items()}
            diagonals = {key: _gather(d, back) for key, d in diagonals.items()}
        return States(self.depth, tokens.mask, tokens.ids, hidden, diagonals, pooled)

    def _run(self, tokens: Tokens, capture: Capture) -> Tensor | None:
        """Run the blocks; the last hidden state, (batch, token, dim), unless stopped before."""
        inputs: dict[str, Any] = {"input_ids": tokens.ids, "attention_mask": tokens.mask.long()}
        inputs |= {name: False for name in ("use_cache",) if name in self._takes}
        eager = self.model.config._attn_implementation != attention.NAME
        tap = SoftmaxTap() if capture.heads and eager else nullcontext()
        token = capturing.set(capture)
        try:
            with tap:
                output = self.model(**inputs)
        except blocks.Stop:
            return None
        finally:
            capturing.reset(token)
        final: Tensor = output.last_hidden_state
        return final


def _left_aligned(tokens: Tokens) -> tuple[Tokens, Tensor | None]:
    """Tokens with all padding on the right, and the positions (batch, token) that undo it.

    Absolute positions count from a row's start, so padding there would shift them; moving it
    aside makes every family indifferent to the padding side.
    """
    ids, mask = tokens
    if bool((mask[:, 1:] <= mask[:, :-1]).all()):
        return tokens, None
    order = torch.argsort((~mask).int(), dim=1, stable=True)
    return Tokens(ids.gather(1, order), mask.gather(1, order)), torch.argsort(order, dim=1)


def _gather(x: Tensor, positions: Tensor) -> Tensor:
    """Rows of x, (batch, token, ...), taken at positions, (batch, token)."""
    index = positions.view(*positions.shape, *([1] * (x.dim() - 2))).expand(*x.shape)
    return x.gather(1, index)
