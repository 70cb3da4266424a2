"""What `test_place` has several processes do together; in a module that they can import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from whitepool.moments import Moments
from whitepool.ranks.place import gather_rows, merge_moments, place, sum_of

CPU = torch.device("cpu")
WORLDS = (1, 2, 3, 5)


def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(1e3, 1, (13, 4)).astype(np.float32)


def shares_of(rows: int, ranks: int) -> list[np.ndarray]:
    """Rows dealt in turn: with fewer of them than processes, some have none."""
    return [np.arange(rows)[rank::ranks] for rank in range(ranks)]


def moments_of(x: np.ndarray) -> Moments | None:
    return Moments(x.shape[1]).update(torch.from_numpy(x)) if len(x) else None


def work(rank: int, folder: Path) -> None:
    """Take part in a world of each size; the first process leaves what it has got."""
    for ranks in WORLDS:
        if rank >= ranks:
            continue
        store = dist.FileStore(str(folder / f"store{ranks}"), ranks)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
        assert place() == (rank, ranks)
        for rows in (0, 1, 2, 13):
            whole = vectors()[:rows]
            shares = shares_of(rows, ranks)
            mine = np.zeros((rows, 0), np.float32)
            if len(shares[rank]):
                mine = np.zeros_like(whole)
                mine[shares[rank]] = whole[shares[rank]]
            gathered = gather_rows(mine, shares, CPU)
            total = merge_moments(moments_of(whole[shares[rank]]), CPU)
            assert sum_of(rank + 1, CPU) == ranks * (ranks + 1) // 2
            if rank == 0:
                np.save(folder / f"rows{ranks}-{rows}.npy", gathered)
                assert (total is None) == (rows == 0)
                if total is not None:
                    flat = np.concatenate([[total.count], total.mean, total.scatter.flatten()])
                    np.save(folder / f"moments{ranks}-{rows}.npy", flat)
        dist.destroy_process_group()
