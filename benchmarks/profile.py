"""Where the time of encoding goes, by kind of work, wherever in the model it is done."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks import ours
from whitepool import attention
from whitepool.linears import PrepackedLinear

KINDS: dict[str, tuple[type, ...]] = {
    "linear layers": (PrepackedLinear, torch.nn.Linear),
    "LayerNorm": (torch.nn.LayerNorm,),
    "embedding tables": (torch.nn.Embedding,),
}
TOTAL = "all"
OTHER = "residual sums, layout of batches, overhead"


@dataclass
class Watch:
    """Adds up seconds by kind; what runs within another counts for itself alone."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _running: list[str] = field(default_factory=list)
    _since: float = 0.0

    @contextmanager
    def during(self, kind: str) -> Iterator[None]:
        """Count the time of the block for ``kind``."""
        self._switch()
        self._running.append(kind)
        try:
            yield
        finally:
            self._switch()
            self._running.pop()

    def _switch(self) -> None:
        now = time.perf_counter()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since
        self._since = now

    def around(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*arguments: Any, **options: Any) -> Any:
            with self.during(kind):
                return function(*arguments, **options)

        return timed


def measure(
    folder: Path, texts: Sequence[str], precision: str, batch_tokens: int
) -> dict[str, float]:
    """Seconds by kind of work of one encode on a CPU, after another that sets things up."""
    from transformers import AttentionInterface

    plm, pooling = ours.load(folder, precision), ours.mean(-1)
    ours.encode(plm, texts, pooling, batch_tokens)
    watch = Watch()
    modules: list[Any] = list(plm.model.modules())
    for module in modules:
        kinds = [kind for kind, types in KINDS.items() if isinstance(module, types)]
        if "activation" in type(module).__module__ or isinstance(module, torch.nn.GELU):
            kinds.append("activation")
        for kind in kinds:
            module.forward = watch.around(kind, module.forward)
    plm.tokenize = watch.around("tokenising", plm.tokenize)  # type: ignore[method-assign]
    pool = ours.Timed(pooling, watch.around("pooling", pooling))
    watched = watch.around("attention", attention.attention_forward)
    AttentionInterface.register(attention.NAME, watched)
    try:
        with watch.during(OTHER):
            ours.encode(plm, texts, pool, batch_tokens)
    finally:
        AttentionInterface.register(attention.NAME, attention.attention_forward)
    return dict(watch.seconds)


def rows(seconds: dict[str, float]) -> list[dict[str, str]]:
    """The table that is printed."""
    total = sum(seconds.values())
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return [
        {"work": kind, "seconds": f"{taken:.3f}", "%": f"{100 * taken / total:.1f}"}
        for kind, taken in [*ordered, (TOTAL, total)]
    ]
