"""Batches that outgrow memory: cut in halves until they fit, and those behind them from the start.

    tokens <- tokens of the batch that did not fit / 2

The plan of batches stays as it is, each of them is only worked on in parts, so that rows and their
order do not depend on memory. A vector may differ in the last bits of float32, as with any other
``batch_tokens``.
"""

from __future__ import annotations

import gc
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from whitepool.errors import UserError
from whitepool.states import Batch

log = logging.getLogger(__name__)

Part = TypeVar("Part")

# What torch says where no class of its own tells: its allocators of the processor and of MPS, C++,
# and oneDNN, which needs memory for each kernel that it makes.
SAID = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "std::bad_alloc",
    "could not create a primitive",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error is a want of memory, of a GPU or of the processor."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in SAID)


class Room:
    """What fits into memory at once, as far as that has shown.

    Attributes:
        tokens: most tokens of a batch; None before any did not fit.
    """

    def __init__(self) -> None:
        self.tokens: int | None = None

    def each(self, batch: Batch, work: Callable[[Batch], Part]) -> Iterator[Part]:
        """What ``work`` makes of a batch, or of its parts in order where the whole does not fit.

        Args:
            batch: sentences.
            work: leaves nothing behind where it fails.

        Raises:
            UserError: not even one sentence fits.
        """
        start = 0
        while start < len(batch.lengths):
            end = self._end(batch.lengths, start)
            part = _between(batch, start, end)
            try:
                result = work(part)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                why = _reason(error)
            else:
                yield result
                start = end
                continue
            # Only now does nothing refer to what had been made of the part.
            _release()
            size = sum(part.lengths)
            if len(part.lengths) == 1:
                raise UserError(
                    f"memory does not suffice for a single text of {size:,} tokens ({why}): cut "
                    "texts with model.max_length=, or free memory."
                )
            # Threads may get here together; the least that any has found holds.
            self.tokens = min(size // 2, self.tokens or size)
            log.warning(
                "Out of memory on a batch of %s tokens (%s): going on with batch_tokens=%d.",
                f"{size:,}",
                why,
                self.tokens,
            )

    def _end(self, lengths: Sequence[int], start: int) -> int:
        """The place behind the sentences from ``start`` on that go together, one at least."""
        if self.tokens is None:
            return len(lengths)
        sizes = itertools.accumulate(lengths[start:])
        return start + max(1, sum(size <= self.tokens for size in sizes))


def _between(batch: Batch, start: int, end: int) -> Batch:
    """Some sentences of a batch."""
    before, within = sum(batch.lengths[:start]), sum(batch.lengths[start:end])
    ids = batch.ids[before : before + within]
    return Batch(batch.rows[start:end], ids, batch.lengths[start:end])


def _reason(error: BaseException) -> str:
    """What an allocator says, without the place in its source."""
    line = str(error).strip().split("\n")[0].rpartition("err == 0. ")[2]
    return line or type(error).__name__


def _release() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
