"""Texts to pooled vectors, batch by batch, without Lightning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.batches import BATCH_TOKENS, check_budget, make_batch, plan_batches
from whitepool.errors import UserError
from whitepool.framing import Frame, check_frame, is_apart
from whitepool.longtext import Pieces, cut
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.binding import bind
from whitepool.recipe import SLOT, LongText
from whitepool.states import Batch
from whitepool.tokenizing import Tokenized

Floats = NDArray[np.float32]
log = logging.getLogger(__name__)

FETCH_EVERY = 32  # batches; fetching from a GPU waits for all that it has to do


class PooledTexts:
    """Texts to vectors before any map is applied.

    Args:
        plm: the frozen model, on the device to work on.
        pooling: the head.
        max_length: tokens per text, special ones included.
        template: a text with the slot ``{text}``, put around every prompt and text.
        long_text: what is done with longer texts; see `whitepool.longtext`.
        full_stop: whether a text without a full stop at its end gets one.

    Attributes:
        dim: dimensions of the vectors.

    Raises:
        UserError: the head needs what the model or the template has not.
    """

    def __init__(
        self,
        plm: FrozenPLM,
        pooling: Pooling,
        max_length: int,
        template: str = SLOT,
        long_text: LongText = "truncate",
        full_stop: bool = False,
    ) -> None:
        frame = Frame(template, full_stop)
        check_frame(pooling, frame)
        self.plm = plm
        self.pooling = bind(pooling, plm, frame)
        plm.check(self.pooling.needs)
        self.max_length = max_length
        self.template = template
        self.full_stop = full_stop
        self.long_text = long_text
        # This pass also does what a model does once: after it, passes only read from the model.
        some = [(plm.pad_id,) * 2, (plm.pad_id,)]
        if not frame.is_plain:
            some = self.tokenize(["a a", "a"]).ids
        trial = pool(plm, self.pooling, some, batch_tokens=sum(map(len, some)))
        self.dim = int(trial.shape[1])

    def tokenize(self, texts: Sequence[str], prompt: str = "") -> Tokenized:
        """Token ids of each text behind a prompt in the template, and which texts are cut."""
        return self.pieces(texts, prompt, "truncate").whole()

    def pieces(
        self, texts: Sequence[str], prompt: str = "", long_text: LongText | None = None
    ) -> Pieces:
        """What `whitepool.longtext.cut` makes of texts behind a prompt in the template.

        Raises:
            UserError: see there.
        """
        return cut(
            self.plm,
            texts,
            max_length=self.max_length,
            long_text=long_text or self.long_text,
            prompt=prompt,
            template=self.template,
            full_stop=self.full_stop,
            apart=is_apart(self.pooling),
        )

    def __call__(
        self,
        texts: Sequence[str],
        *,
        prompt: str = "",
        long_text: LongText | None = None,
        batch_tokens: int | None = None,
        done: Callable[[int], None] | None = None,
        shortened: Callable[[int], None] | None = None,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Vectors of texts, (text, dim), zero for blank ones, and which are blank, (text,).

        Args:
            texts: what to encode; equal token sequences are encoded once.
            prompt: put before each text.
            long_text: in place of the object's own.
            batch_tokens: most tokens of a batch.
            done: told how many sequences each batch had.
            shortened: told how many texts are cut, in place of a word in the log.

        Raises:
            UserError: see `whitepool.longtext.cut` and `pool`.
        """
        pieces = self.pieces(texts, prompt, long_text)
        truncated = sum(pieces.truncated)
        if shortened is not None:
            shortened(truncated)
        elif truncated:
            log.warning("%d texts are cut to %d tokens.", truncated, self.max_length)
        budget = BATCH_TOKENS if batch_tokens is None else check_budget(batch_tokens)
        row = {ids: i for i, ids in enumerate(dict.fromkeys(pieces.ids))}
        unique = pool(self.plm, self.pooling, list(row), batch_tokens=budget, done=done)
        each = unique.reshape(-1, self.dim)[[row[ids] for ids in pieces.ids]]
        return mean_of_pieces(each, pieces.owner, pieces.weight, len(texts))


def pool(
    plm: FrozenPLM,
    pooling: Pooling,
    ids: Sequence[Sequence[int]],
    *,
    batch_tokens: int,
    done: Callable[[int], None] | None = None,
) -> Floats:
    """Pooled vectors of token sequences, (row, dim), float32.

    Args:
        plm: the frozen model.
        pooling: the head.
        ids: token ids of each row, none of them empty.
        batch_tokens: most tokens of a batch.
        done: told how many rows each batch had.

    Raises:
        UserError: a vector is not finite; the message gives the row's tokens.
    """
    result: Floats = np.zeros((len(ids), 0), dtype=np.float32)
    waiting: list[tuple[list[int], torch.Tensor]] = []
    batches = plan_batches([len(sequence) for sequence in ids], batch_tokens)
    for index, rows in enumerate(batches):
        batch = make_batch(ids, rows)
        batch = batch._replace(ids=batch.ids.to(plm.device))
        waiting.append((rows, pool_batch(plm, pooling, batch)))
        last = index + 1 == len(batches)
        if last or plm.device.type == "cpu" or (index + 1) % FETCH_EVERY == 0:
            fetched = [row for rows, _ in waiting for row in rows]
            values = torch.cat([vectors for _, vectors in waiting]).cpu().numpy()
            waiting = []
            if not result.shape[1]:
                result = np.zeros((len(ids), values.shape[1]), dtype=np.float32)
            result[fetched] = values
            _check(plm, ids, fetched, values)
        if done is not None:
            done(len(rows))
    return result


def pool_batch(plm: FrozenPLM, pooling: Pooling, batch: Batch) -> torch.Tensor:
    """Pooled vectors of a batch on the model's device, (sentence, dim), float32.

    A batch that does not fit into memory is worked on in parts; see `whitepool.room`.

    Raises:
        UserError: not even one sentence fits.
    """

    def vectors(part: Batch) -> torch.Tensor:
        return torch.cat([pooling(states) for _, states in plm.states(part, pooling.needs)])

    return torch.cat(list(plm.room.each(batch, vectors)))


def _check(
    plm: FrozenPLM, ids: Sequence[Sequence[int]], rows: Sequence[int], values: Floats
) -> None:
    bad = ~np.isfinite(values).all(1)
    if bad.any():
        text = plm.tokenizer.decode(ids[rows[int(bad.argmax())]], skip_special_tokens=True)
        raise UserError(
            f"the vector of {text[:60]!r} is not finite: use float32, or look for a fault in the "
            "model's weights."
        )


def mean_of_pieces(
    vectors: Floats, owner: Sequence[int], weight: Sequence[int], texts: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Vectors of texts, (text, dim), from those of their pieces, and which texts have none.

    Args:
        vectors: (piece, dim).
        owner: the text each piece is of, ascending.
        weight: how much each piece counts among those of its text.
        texts: number of texts.

    A text of one piece has that piece's vector, bit for bit.
    """
    owners = np.asarray(owner, dtype=np.int64)
    pieces = np.bincount(owners, minlength=texts)
    if (pieces <= 1).all():
        result = np.zeros((texts, vectors.shape[1]), dtype=np.float32)
        result[owners] = vectors
        return result, pieces == 0
    w = np.asarray(weight, dtype=np.float64)
    total = np.zeros((texts, vectors.shape[1]))
    np.add.at(total, owners, vectors * w[:, None])
    total /= np.maximum(np.bincount(owners, w, minlength=texts), 1)[:, None]
    result = total.astype(np.float32)
    single = pieces[owners] == 1
    result[owners[single]] = vectors[single]
    return result, pieces == 0
