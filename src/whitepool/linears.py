"""Linear layers whose weights are laid out once for the processor.

torch lays a weight matrix out for oneDNN's kernels anew at each product. The private operator
`mkldnn::_linear_pointwise` takes a weight that was laid out before, which gains a tenth in
float32 with AVX2 and far more in bfloat16 with AMX. Being private it is guarded: where it is
absent, or does not give what `torch.nn.functional.linear` gives, the layers stay as they are, and
the log says so.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import torch
from torch import Tensor, nn

log = logging.getLogger(__name__)

ROWS = 4096  # tokens of a usual batch, which the layout is chosen for
KERNELS = "64"  # of some ten batches


def keep_few_kernels() -> None:
    """Have torch and oneDNN each keep the kernels of a few numbers of rows, in place of 1,024.

    A batch has a number of tokens of its own, and a long run meets thousands of them: what is kept
    of each, here some 30 kB twice, would grow to a hundred MB (docs/performance.md). This has no
    effect once a linear layer has run in the process; what the user has set stays.
    """
    for cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(cache, KERNELS)


class PrepackedLinear(nn.Linear):
    """x W' + b with W laid out in advance; the weights themselves are shared with ``linear``."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight, ROWS)

    def forward(self, x: Tensor) -> Tensor:
        """(..., dim) -> (..., out)."""
        if x.device.type != "cpu":  # the model was moved after its weights were laid out
            return super().forward(x)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self._packed, self.bias, "none", [], ""
        )
        return result


@torch.no_grad()
def prepack(model: nn.Module) -> int:
    """Replace the linear layers of a model on a CPU by prepacked ones.

    Returns:
        How many were replaced: none without oneDNN, on another device, or where the operator
        does not give the right result.
    """
    linears = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent._modules.items()  # unlike named_children, with repeats
        if child is not None and type(child) is nn.Linear and child.weight.device.type == "cpu"
    ]
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not linears or not available:
        return 0
    try:
        fits = _agrees(linears[0][2])
    except (AttributeError, RuntimeError) as error:
        log.info("Linear layers are not laid out in advance: %s", str(error).split("\n")[0])
        return 0
    if not fits:
        log.warning("Linear layers are not laid out in advance: this torch gives other results.")
        return 0
    packed: dict[nn.Module, Any] = {}  # a layer may occur more than once
    for parent, name, child in linears:
        if child not in packed:
            packed[child] = PrepackedLinear(child)
        setattr(parent, name, packed[child])
    return len(packed)


def _agrees(linear: nn.Linear) -> bool:
    """Whether the operator gives what `torch.nn.functional.linear` gives, up to rounding."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, linear.in_features, generator=generator).to(linear.weight)
    wanted, found = linear(x).float(), PrepackedLinear(linear)(x).float()
    rounding = torch.finfo(linear.weight.dtype).eps * linear.in_features**0.5
    return bool((found - wanted).abs().max() <= 8 * rounding * wanted.abs().max())
