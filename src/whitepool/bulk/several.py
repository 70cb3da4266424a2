"""A bulk run on several processes: each makes every so manyth shard, and this one names them.

All read the input, which costs little beside encoding it, and none waits for another. This process
alone writes the manifest, as shards are made, so that a run that is broken off goes on from there
on any number of processes. Shards are the same bytes as from one process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytorch_lightning as pl
import torch
import torch.multiprocessing
from omegaconf import DictConfig

from whitepool.bulk.folder import OutputFolder, Shards, telling_of_disks
from whitepool.bulk.job import End, Job, telling_of_interrupts
from whitepool.bulk.manifest import ShardRecord, Total
from whitepool.bulk.pace import Pace
from whitepool.data.row_sources import STDIN, RowSource
from whitepool.errors import UserError
from whitepool.ranks.launch import processes
from whitepool.ranks.place import begin
from whitepool.ranks.settings import is_several

PATIENCE = 0.1  # seconds between two looks for shards that were made


def check_sources(config: DictConfig, sources: Sequence[RowSource]) -> None:
    """See that several processes can all read the input, on one machine.

    Raises:
        UserError: they cannot.
    """
    if not is_several(config):
        return
    if any(source.bytes is None for source in sources):
        raise UserError(
            f"input={STDIN} can be read once, and each of trainer.devices={config.trainer.devices} "
            "processes reads the input: give a file, or trainer=auto, cpu or gpu."
        )
    if config.trainer.num_nodes > 1:
        raise UserError(
            f"encode works on one machine and trainer.num_nodes is {config.trainer.num_nodes}: "
            "split the input, and give each machine a part and an output= of its own."
        )


class _Naming:
    """Names shards in the manifest, and in the log, while it is entered."""

    def __init__(self, folder: OutputFolder, pace: Pace, records: Any) -> None:
        self._folder, self._pace, self._records = folder, pace, records
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._fault: Exception | None = None

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def raise_fault(self) -> None:
        """Raise what kept a shard from being named."""
        if self._fault is not None:
            raise self._fault

    def _listen(self) -> None:
        while True:
            ended = self._ended.is_set()
            while not self._records.empty():
                self._name(*self._records.get())
            if ended:
                return
            self._ended.wait(PATIENCE)

    def _name(self, number: int, record: ShardRecord) -> None:
        if self._fault is not None:
            return
        try:
            self._folder.commit(number, record)
        except OSError as error:
            self._fault = error
            return
        with self._pace.window(record.rows):
            pass
        self._pace.tell(number)


def fill_on_several(
    job: Job, folder: OutputFolder, trainer: pl.Trainer, start_method: str
) -> Total:
    """Make the shards that are not there on the processes of ``trainer``; returns what was read.

    Args:
        job: what is to be encoded.
        folder: where.
        trainer: from ``trainer=ddp`` or ``ddp_cpu``.
        start_method: how it starts processes.

    Raises:
        UserError: see `Job.fill` and `whitepool.ranks.launch.processes`.
    """
    records = torch.multiprocessing.get_context(start_method).SimpleQueue()
    shards = replace(folder.to_make(), commit=partial(_send, records))
    pace = job.pace(folder.kept, show=False)
    naming = _Naming(folder, pace, records)
    with telling_of_interrupts(folder), telling_of_disks(folder.path, len(folder.shards)):
        with processes(trainer), pace, naming:
            devices = trainer.strategy.parallel_devices
            end: End = trainer.strategy.launcher.launch(_make, job, shards, devices)
        naming.raise_fault()
        return job.finish(folder, end)


def _send(records: Any, number: int, record: ShardRecord) -> None:
    records.put((number, record))


def _make(job: Job, shards: Shards, devices: Sequence[torch.device]) -> End:
    """What each process does."""
    begin()
    rank = int(os.environ["LOCAL_RANK"])  # Lightning's word
    job.to(devices[rank])
    listed = shards.bad_rows if rank == 0 else shards.bad_rows.with_suffix(f".{rank}")
    shards = replace(shards, bad_rows=listed, rank=rank, ranks=len(devices))
    return job.make(shards, Pace(None, show=False))
