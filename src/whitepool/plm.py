"""A frozen pretrained language model that computes only what a head needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whitepool import attention, blocks, checkpoint
from whitepool.attention import Capture, Group
from whitepool.errors import UserError
from whitepool.feedforward import in_blocks
from whitepool.linears import prepack
from whitepool.passes import groups_of, left_aligned, parts_of, run, take
from whitepool.ranks.place import begin
from whitepool.room import Room
from whitepool.segment import segmented
from whitepool.states import Batch, Layer, Needs, States, Tokens, resolve_layer
from whitepool.tokenizing import Tokenized, added_ids, pad_id, tokenize


class FrozenPLM(nn.Module):
    """Tokenizer and frozen encoder behind one interface for all families.

    Args:
        loaded: the model and tokenizer, from `whitepool.checkpoint.load`.
        name: how results call it.
        max_length: tokens per text, special ones included; None for the model's own limit.
        segmenter: what cut texts into words before the tokenizer; None for nothing.

    Raises:
        UserError: max_length is over the model's limit or leaves no room for a token.
    """

    def __init__(
        self,
        loaded: checkpoint.Checkpoint,
        *,
        name: str,
        max_length: int | None = None,
        segmenter: str | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.segmenter = segmenter
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self.provenance = loaded.provenance
        self.missing = loaded.missing
        self.limit = blocks.length_limit(loaded.model, loaded.tokenizer, loaded.length_limit)
        self.max_length = self.check_length(max_length)
        self.depth = blocks.depth(loaded.model)
        self.heads = int(loaded.model.config.get_text_config().num_attention_heads)
        self._takes = set(inspect.signature(loaded.model.forward).parameters)
        self.window = blocks.window(loaded.model)
        self._prepared = False
        self._added = tuple(added_ids(loaded.tokenizer))
        self.room = Room()
        self._source: dict[str, Any] = {}
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
        segmenter: str | None = None,
    ) -> FrozenPLM:
        """Load a local folder or file, an embedded asset or a hub id, looked at in this order.

        Args:
            id: hub id.
            revision: commit of the hub id.
            path: local folder, or a file of word vectors, in place of the others.
            asset: name of an embedded asset; fetched when first used.
            name: how results call the model; the folder or hub id by default.
            dtype: ``float32`` or ``bfloat16``.
            max_length: see `FrozenPLM`.
            segmenter: ``jieba`` for models whose tokens are Chinese words, see
                `whitepool.segment`.

        Raises:
            UserError: no source is given, or it cannot be loaded.
        """
        if path is not None:
            folder = Path(path).expanduser()
            if not str(path) or not folder.exists():
                raise UserError(f"model folder {str(path)!r} does not exist: check model.path=.")
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
        if segmenter is not None:
            loaded = replace(loaded, tokenizer=segmented(loaded.tokenizer, segmenter))
        name = name or str(id or source)
        plm = cls(loaded, name=name, max_length=max_length, segmenter=segmenter)
        kept = {"id": id, "revision": revision, "path": path, "asset": asset, "dtype": dtype}
        plm._source = {**kept, "name": name, "max_length": max_length, "segmenter": segmenter}
        return plm

    def __reduce__(self) -> tuple[Callable[..., FrozenPLM], tuple[dict[str, Any]]]:
        """Another process of a pass loads the model itself: weights are not sent.

        Raises:
            UserError: the model was made of parts, so that no other process can find it.
        """
        if not self._source:
            raise UserError(
                f"model {self.name} is from nowhere that other processes can load it from: give a "
                "trainer= of one process."
            )
        return _load_again, (self._source,)

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
        tokenized = tokenize(self.tokenizer, texts, longest)
        rows = self.model.get_input_embeddings().weight.shape[0]
        if (most := max((max(ids) for ids in tokenized.ids if ids), default=0)) >= rows:
            raise UserError(
                f"the tokenizer of model {self.name} gives token {most} and the model has {rows} "
                "word embeddings: use the tokenizer that the model came with."
            )
        return tokenized

    def tokenize_bare(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Token ids of each text without special tokens, however many they are."""
        found = self.tokenizer(
            list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        return [tuple(ids) for ids in found["input_ids"]]

    @property
    def pad_id(self) -> int:
        """An id to pad with; any would do, since padding is masked and stands on the right."""
        return pad_id(self.tokenizer)

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
        for layer in needs.all_layers(self.depth):
            resolve_layer(layer, self.depth)
        for block, head in needs.diagonals:
            if not (0 <= block < self.depth and 0 <= head < self.heads):
                raise UserError(
                    f"block {block} head {head} does not exist: model {self.name} has {self.depth} "
                    f"blocks and {self.heads} heads, counted from 0."
                )
        if needs.pooler:
            blocks.pooler_map(self.model, self.missing, self.name)

    @torch.no_grad()
    def forward(self, tokens: Tokens, needs: Needs) -> States:
        """Hidden states and diagonals of one padded batch.

        Args:
            tokens: (batch, token); padding on either side, no row without a token.
            needs: what to keep. The pass stops after the last layer needed.

        Raises:
            UserError: see `check`.
        """
        ids, mask, back = left_aligned(tokens)
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        (states,) = self._pass(inputs, [ids], needs)
        hidden = states.hidden
        diagonals = {key: d.where(mask, 0.0) for key, d in states.diagonals.items()}
        if back is not None:
            hidden = {key: take(h, back) for key, h in hidden.items()}
            diagonals = {key: take(d, back) for key, d in diagonals.items()}
        return replace(states, mask=tokens.mask, ids=tokens.ids, hidden=hidden, diagonals=diagonals)

    def check_positions(self, wanted: str) -> None:
        """See that the model lets its tokens' positions be given, which ``wanted`` needs.

        Raises:
            UserError: it does not.
        """
        if "position_ids" not in self._takes:
            raise UserError(
                f"{wanted} gives tokens other positions than their own, and model {self.name} "
                "takes none: choose another pooling, or another model."
            )

    @torch.no_grad()
    def at_positions(self, ids: Tensor, positions: Tensor, needs: Needs) -> States:
        """States of tokens at positions of their own, both (batch, token) without padding."""
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "position_ids": positions,
        }
        (states,) = self._pass(inputs, [ids], needs)
        return states

    @torch.no_grad()
    def states(self, batch: Batch, needs: Needs) -> Iterator[tuple[Tensor, States]]:
        """Rows and states of a batch without padding, one part for each run of equal lengths.

        The sentences stand in one packed row where the model's attention can take that, so that
        each linear layer sees one large product; elsewhere each run is a batch of its own.

        Args:
            batch: sentences of a table, those of equal length side by side.
            needs: see `forward`.

        Yields:
            (sentence,) rows of the table, in the order of the batch, and their states.
        """
        groups = groups_of(batch.lengths)
        rows = torch.split(batch.rows, [n for n, _ in groups])
        in_one_row = len(groups) > 1 and max(batch.lengths) <= self.window and self.packs
        compute = self._packed if in_one_row else self._by_length
        yield from zip(rows, compute(batch, needs), strict=True)

    @cached_property
    def packs(self) -> bool:
        """Whether sentences packed in one row give what they give alone; found by trying.

        A model whose attention does not go through ours, or that lets neighbours in a row see
        each other in another way, does not.
        """
        takes_positions = {"input_ids", "position_ids"} <= self._takes
        if not takes_positions or self.model.config._attn_implementation != attention.NAME:
            return False
        lengths = tuple(min(n, self.window) for n in (5, 5, 3, 1))
        ids = torch.arange(sum(lengths), device=self.device) % self.model.config.vocab_size
        batch = Batch(torch.arange(len(lengths)), ids, lengths)
        packed, alone = (
            torch.cat([s.hidden[self.depth].flatten(0, 1) for s in compute(batch, Needs((-1,)))])
            for compute in (self._packed, self._by_length)
        )
        rounding = 1000 * torch.finfo(packed.dtype).eps
        return bool((packed - alone).abs().max() <= rounding * alone.abs().max())

    def _packed(self, batch: Batch, needs: Needs) -> Iterator[States]:
        """All sentences in one row; the states of each run of equal lengths."""
        groups = groups_of(batch.lengths)
        parts = parts_of(batch)
        positions = [blocks.positions(self.model, part).flatten() for part in parts]
        inputs = {"input_ids": batch.ids[None], "position_ids": torch.cat(positions)[None]}
        yield from self._pass(inputs, parts, needs, groups)

    def _by_length(self, batch: Batch, needs: Needs) -> Iterator[States]:
        """Each run of equal lengths as a batch of its own."""
        for part in parts_of(batch):
            inputs = {"input_ids": part, "attention_mask": torch.ones_like(part)}
            yield from self._pass(inputs, [part], needs)

    def _pass(
        self,
        inputs: dict[str, Tensor],
        ids: Sequence[Tensor],
        needs: Needs,
        groups: tuple[Group, ...] | None = None,
    ) -> list[States]:
        """One run of the blocks; the states of each group, whose ids are (sentence, token)."""
        self._prepare()
        self.check(needs)
        layers = [resolve_layer(layer, self.depth) for layer in needs.all_layers(self.depth)]
        numbered = [layer for layer in layers if isinstance(layer, int)]
        last = max([*numbered, *(block + 1 for block, _ in needs.diagonals), -1])
        heads: dict[int, list[int]] = {}
        for block, head in needs.diagonals:
            heads.setdefault(block, []).append(head)
        last = self.depth if needs.pooler else last
        capture = Capture(frozenset(numbered), last, heads, groups)
        if capture.last >= 0 and (final := run(self.model, inputs, capture)) is not None:
            capture.hidden[self.depth] = final
        if missing := set(needs.diagonals) - set(capture.diagonals):
            raise UserError(
                f"model {self.name} does not show the attention of block, head {sorted(missing)}: "
                "its attention goes through no function that is watched."
            )
        table = self.model.get_input_embeddings().weight if "static" in layers else None
        tokens = [part.numel() for part in ids]
        hidden = {
            layer: torch.split(h.flatten(0, 1), tokens) if groups else [h]
            for layer, h in capture.hidden.items()
        }
        result = []
        for i, part in enumerate(ids):
            own: dict[Layer, Tensor] = {
                layer: h[i].view(*part.shape, -1) for layer, h in hidden.items()
            }
            if table is not None:
                own["static"] = nn.functional.embedding(part, table)
            pooled = None
            if needs.pooler:
                to_pool = blocks.pooler_map(self.model, self.missing, self.name)
                pooled = to_pool(own[self.depth][:, 0])
            diagonals = {key: d[i] for key, d in capture.diagonals.items()}
            mask = torch.ones_like(part, dtype=torch.bool)
            mask_id = self.tokenizer.mask_token_id
            result.append(
                States(self.depth, mask, part, own, diagonals, pooled, mask_id, self._added)
            )
        return result

    def _prepare(self) -> None:
        """Fit weights and feed-forward parts to the processor, once the model runs on one."""
        if not self._prepared and self.device.type == "cpu":
            prepack(self.model)
            in_blocks(self.model)
        self._prepared = True


def _load_again(source: dict[str, Any]) -> FrozenPLM:
    """The model that the process which started this one has."""
    begin()
    return FrozenPLM.from_pretrained(**source)
