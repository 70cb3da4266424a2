"""An affine map of vectors, and how maps are kept: the outcome of every step after pooling.

z = (x - m) B
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, float64

from whitepool.arrays_file import opened
from whitepool.errors import UserError
from whitepool.whole_file import beside

SCHEMA = 1


class Map(Protocol):
    """A fitted step after pooling: vectors (dim,) or (n, dim) to as many of ``directions``."""

    @property
    def count(self) -> float:
        """How many vectors it was fitted on."""
        ...

    @property
    def rank(self) -> int:
        """Effective rank of those vectors."""
        ...

    @property
    def dim(self) -> int:
        """Dimensions of the vectors it takes."""
        ...

    @property
    def directions(self) -> int:
        """Dimensions of the vectors it gives."""
        ...

    def __call__(self, x: Tensor) -> Tensor:
        """Map vectors; computed in float64, given in x's type."""
        ...

    def arrays(self) -> dict[str, Tensor]:
        """What a recipe keeps of it, float64, by name."""
        ...


@dataclass(frozen=True, eq=False)
class Affine:
    """z = (x - mean) basis.

    Attributes:
        mean: (dim,), float64.
        basis: (dim, k), float64.
        count: how many vectors it was fitted on.
        rank: effective rank of those vectors.
    """

    mean: Tensor
    basis: Tensor
    count: float
    rank: int

    def __call__(self, x: Tensor) -> Tensor:
        """Map x, (dim,) or (n, dim), to (k,) or (n, k); computed in float64, given in x's type."""
        return ((x.to(self.mean) - self.mean) @ self.basis).to(x.dtype)

    @property
    def dim(self) -> int:
        """Dimensions of the vectors it takes."""
        return len(self.mean)

    @property
    def directions(self) -> int:
        """Dimensions k of the vectors it gives."""
        return self.basis.shape[1]

    def arrays(self) -> dict[str, Tensor]:
        """Mean and basis, as a recipe keeps them."""
        return {"mean": self.mean, "basis": self.basis}

    def first(self, k: int) -> Affine:
        """The map onto the first k directions."""
        if not 1 <= k <= self.basis.shape[1]:
            raise UserError(f"this map has {self.basis.shape[1]} directions, {k} were asked for.")
        return Affine(self.mean, self.basis[:, :k], self.count, self.rank)


def save_maps(path: Path, maps: Mapping[str, Affine], provenance: Mapping[str, Any]) -> None:
    """Write maps, by the name of their fit set, as named arrays with their provenance.

    The file is safetensors: ``NAME/mean`` and ``NAME/basis`` for each fit set, and JSON metadata.
    """
    from safetensors.torch import save_file

    arrays = {}
    for name, affine in maps.items():
        arrays[f"{name}/mean"] = affine.mean.contiguous()
        arrays[f"{name}/basis"] = affine.basis.contiguous()
    fits = {name: {"count": a.count, "rank": a.rank} for name, a in maps.items()}
    content = {"schema": SCHEMA, "fit_sets": fits, **provenance}
    with beside(path) as partial:
        save_file(arrays, partial, metadata={"whitepool": json.dumps(content)})


def load_maps(path: Path) -> tuple[dict[str, Affine], dict[str, Any]]:
    """Read what `save_maps` wrote, bit for bit: maps by fit set, and the provenance.

    Raises:
        UserError: not a safetensors file (a pickle is never opened), or not one of ours.
    """
    if Path(path).suffix != ".safetensors":
        raise UserError(f"{path} is not a .safetensors file; pickles and the like are not read.")
    with opened(path, "whitening", SCHEMA, again="make the file again", framework="pt") as (
        file,
        content,
    ):
        maps = {
            name: _checked(file.get_tensor(f"{name}/mean"), file.get_tensor(f"{name}/basis"), **fit)
            for name, fit in content["fit_sets"].items()
        }
    return maps, content


def _checked(mean: Tensor, basis: Tensor, count: float, rank: int) -> Affine:
    """A map of arrays from a file.

    Raises:
        ValueError: arrays or numbers that are no map.
    """
    if mean.dim() != 1 or basis.dim() != 2 or len(mean) != len(basis):
        raise ValueError(f"arrays of shapes {tuple(mean.shape)} and {tuple(basis.shape)}")
    if any(x.dtype != float64 or not bool(x.isfinite().all()) for x in (mean, basis)):
        raise ValueError("arrays that are not all finite float64")
    if type(rank) is not int or type(count) not in (int, float) or not min(rank, count) >= 1:
        raise ValueError(f"rank {rank!r} and count {count!r}")
    return Affine(mean, basis, count, rank)
