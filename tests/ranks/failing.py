"""Heads that fail in one process of a pass alone."""

from __future__ import annotations

import os
import signal
import time

import torch
from torch import Tensor

from whitepool.pooling import MaxPooling
from whitepool.ranks.place import place
from whitepool.states import States


class Killed(MaxPooling):
    """Ends the second process as the system does where memory is short."""

    def __call__(self, states: States) -> Tensor:
        if place()[0] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(states)


class Stuck(MaxPooling):
    """Keeps the second process from coming to its end."""

    def __call__(self, states: States) -> Tensor:
        if place()[0] == 1:
            time.sleep(1000)
        return super().__call__(states)


class NotFinite(MaxPooling):
    """Gives vectors that are refused, in the second process."""

    def __call__(self, states: States) -> Tensor:
        vectors = super().__call__(states)
        return torch.full_like(vectors, torch.nan) if place()[0] == 1 else vectors


class Broken(MaxPooling):
    """Has a fault."""

    def __call__(self, states: States) -> Tensor:
        raise IndexError("such a fault")
