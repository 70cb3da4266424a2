"""Where this process stands among those of a pass, and what it moves to the first of them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from whitepool.moments import Moments
from whitepool.quiet import quiet_libraries

ROWS = 2**16  # vectors sent at a time


def place() -> tuple[int, int]:
    """Rank of this process, and how many there are; (0, 1) outside a distributed pass."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def begin() -> None:
    """What a process of a pass does first: say nothing, and end with the one that started it.

    What there is to say was said there. A process that waits for others would wait on.
    """
    if multiprocessing.current_process().name == "MainProcess":
        return
    quiet_libraries()
    logging.getLogger("whitepool").setLevel(logging.ERROR)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    while (parent := multiprocessing.parent_process()) is None:  # until all is unpickled
        time.sleep(0.1)
    parent.join()
    os._exit(1)


def end_at_once() -> None:
    """Let SIGTERM end this process where it stands.

    Lightning asks a process to end at its next step; one that waits for another has none.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def gather_rows(
    vectors: NDArray[np.float32], shares: Sequence[NDArray[np.int64]], device: torch.device
) -> NDArray[np.float32]:
    """The vectors of all processes on the first one, by row; on the others what they had.

    Args:
        vectors: (row, dim), of which this process has its own rows.
        shares: rows of each process. The first has some if any has.
        device: where tensors must be to be sent.

    Nobody waits for a process that has no rows, and it takes no part.
    """
    rank, ranks = place()
    dim = vectors.shape[1]
    for other in range(1, ranks):
        if rank not in (0, other):
            continue
        for start in range(0, len(shares[other]), ROWS):
            rows = shares[other][start : start + ROWS]
            if rank == other:
                dist.send(torch.from_numpy(vectors[rows]).to(device), 0)
            else:
                part = torch.empty(len(rows), dim, device=device)
                dist.recv(part, other)
                vectors[rows] = part.cpu().numpy()
    return vectors


def merge_moments(moments: Moments | None, device: torch.device) -> Moments | None:
    """The moments of all processes together on the first one, in a fixed order.

        ((0 + 1) + (2 + 3)) + ((4 + 5) + ...)

    Args:
        moments: of this process; None where it saw nothing.
        device: where tensors must be to be sent, with float64.

    Returns:
        The whole on the first process, None if no process saw anything; on the others a part.
    """
    rank, ranks = place()
    dim = torch.tensor(0 if moments is None else moments.dim, device=device)
    dist.all_reduce(dim, dist.ReduceOp.MAX)
    if not dim:
        return None
    total = Moments(int(dim), device) if moments is None else moments
    step = 1
    while step < ranks:
        if rank % (2 * step) == step:
            dist.send(_packed(total).to(device), rank - step)
            break
        if rank + step < ranks:
            part = torch.empty(1 + total.dim + total.dim**2, dtype=torch.float64, device=device)
            dist.recv(part, rank + step)
            total.merge(_unpacked(part, total.dim))
        step *= 2
    return total


def sum_of(value: int, device: torch.device) -> int:
    """The sum over all processes."""
    total = torch.tensor(value, device=device)
    dist.all_reduce(total)
    return int(total)


def _packed(moments: Moments) -> Tensor:
    count = torch.tensor([moments.count], dtype=torch.float64, device=moments.mean.device)
    return torch.cat([count, moments.mean, moments.scatter.flatten()])


def _unpacked(packed: Tensor, dim: int) -> Moments:
    moments = Moments(dim, packed.device)
    moments.count = float(packed[0])
    moments.mean, moments.scatter = packed[1 : 1 + dim], packed[1 + dim :].view(dim, dim)
    return moments
