"""Processes started for one pass, and what is said when one of them fails.

Lightning starts them and waits (`pytorch_lightning.strategies.launchers`). The process of the
command is none of them: it reads, writes, fits and reports alone, so that a pass on several
processes leaves what one leaves. The script is not run again for each process, as Lightning's
``ddp`` would, which begins multiruns anew.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytorch_lightning as pl
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from whitepool.errors import UserError
from whitepool.stopping import unmasked

PRELOAD = "whitepool.ranks.preload"
PORT = "MASTER_PORT"
OURS = re.compile(rf"{UserError.__module__}\.{UserError.__name__}: (.*)", re.DOTALL)
WAITED = re.compile(r"timed? ?out", re.IGNORECASE)


class DeadProcess(RuntimeError):
    """A process of a pass ended for a reason that is not the user's."""


@contextmanager
def processes(trainer: pl.Trainer) -> Iterator[None]:
    """Around a call of the trainer that starts processes; none of them is left behind.

    Raises:
        UserError: what a process raised, a process that was killed, or one that waited too long.
        KeyboardInterrupt: Ctrl-C or SIGTERM, of which Lightning would make an exit of its own.
        DeadProcess: a process failed otherwise; the message is the last line of its traceback.
    """
    multiprocessing.set_forkserver_preload([PRELOAD])
    port = os.environ.get(PORT)
    before = multiprocessing.active_children()
    try:
        with unmasked():
            yield
    except (ProcessExitedException, ProcessRaisedException) as error:
        raise _in_words(error, trainer) from error
    except SystemExit as exit:
        if trainer.interrupted:
            raise KeyboardInterrupt from exit
        raise
    except (BrokenPipeError, EOFError) as error:
        raise DeadProcess("a process ended while it was started") from error
    finally:
        for process in multiprocessing.active_children():
            if process not in before:
                process.kill()
                process.join()
        if port is None:  # Lightning sets it: the next pass takes a free one again
            os.environ.pop(PORT, None)


def _in_words(
    error: ProcessExitedException | ProcessRaisedException, trainer: pl.Trainer
) -> Exception:
    # Where one is killed, others fail for want of it, and either may be seen first.
    codes = [process.exitcode or 0 for process in trainer.strategy.launcher.procs]
    killed = [i for i, code in enumerate(codes) if code < 0 and code != -signal.SIGTERM]
    if killed:
        name = signal.Signals(-codes[killed[0]]).name
        return UserError(
            f"process {killed[0] + 1} of {len(codes)} was ended by {name}, which the system does "
            "where memory is short: there are no results, give fewer trainer.devices or a smaller "
            "batch_tokens."
        )
    last = str(error).strip().splitlines()[-1]
    if found := OURS.search(str(error)):
        return UserError(found[1].strip())
    if WAITED.search(last):
        seconds = trainer.strategy._timeout.total_seconds()
        return UserError(
            f"process {error.error_index + 1} of {len(codes)} waited {seconds:g} s for another: "
            "look for what holds that up, or raise trainer.strategy.timeout.seconds."
        )
    return DeadProcess(f"process {error.error_index + 1} of {len(codes)}: {last}")
