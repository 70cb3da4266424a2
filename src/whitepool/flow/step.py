"""`whitening=flow` as a step after pooling: its options, and the map it comes to.

    z = f((x - m) B)

with m, B PCA whitening (`whitepool.whitening`), which is where training starts from, and f an
invertible network (`whitepool.flow.network`) that leaves whitened vectors as they are until it has
learnt more. It needs the vectors and not their moments alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.flow.network import Network
from whitepool.maps.affine import Affine
from whitepool.moments import Moments

PREFIX = "flow."
ORDER = ".order"


@dataclass(frozen=True, eq=False)
class FlowMap:
    """z = f(start(x)).

    Attributes:
        start: whitening, onto the directions that have variance.
        network: f, in float64.
        count: how many vectors both were trained on, and watched on.
    """

    start: Affine
    network: Network
    count: float

    @property
    def rank(self) -> int:
        """Effective rank of the vectors that were trained on."""
        return self.start.rank

    @property
    def dim(self) -> int:
        """Dimensions of the vectors it takes."""
        return self.start.dim

    @property
    def directions(self) -> int:
        """Dimensions of the vectors it gives."""
        return self.start.directions

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Map x, (dim,) or (n, dim); computed in float64, given in x's type."""
        start = self.start(x.double())
        z: Tensor = self.network(start.reshape(-1, self.directions))[0]
        result: Tensor = z.reshape(start.shape).to(x.dtype)
        return result

    @torch.no_grad()
    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) in nats, (n,), float64, of x, (n, dim), in the span of the fitted vectors."""
        # The columns of B are orthogonal, so that the product of their lengths is its volume.
        stretch = self.start.basis.norm(dim=0).log().sum()
        result: Tensor = self.network.log_density(self.start(x.double())) + stretch
        return result

    def arrays(self) -> dict[str, Tensor]:
        """What a recipe keeps, float64, by name."""
        own = {PREFIX + name: array.double() for name, array in self.network.state_dict().items()}
        return {**self.start.arrays(), **own}


def array_names(depth: int | None) -> list[str]:
    """The names of the arrays of a flow of so many steps; of an affine map where it has none."""
    own = Network(2, depth, 1).state_dict() if depth else {}
    return ["mean", "basis", *(PREFIX + name for name in own)]


def from_arrays(arrays: Mapping[str, Tensor], step: Flow, count: float, rank: int) -> FlowMap:
    """The map whose `FlowMap.arrays` these are.

    Raises:
        UserError: shapes that do not go together, or an order that is none.
    """
    start = Affine(arrays["mean"], arrays["basis"], count, rank)
    if start.directions < 2:
        raise UserError("the flow has 1 direction, and it takes 2 or more.")
    network = Network(start.directions, step.depth, step.hidden).double()
    state = {}
    for name, wanted in network.state_dict().items():
        array = arrays[PREFIX + name]
        if array.shape != wanted.shape:
            raise UserError(
                f"the array {PREFIX}{name} has the shape {tuple(array.shape)} where the others ask "
                f"for {tuple(wanted.shape)}."
            )
        if name.endswith(ORDER):
            if not torch.equal(array.sort().values, torch.arange(len(array)).double()):
                raise UserError(f"the array {PREFIX}{name} is no order of {len(array)} dimensions.")
            array = array.long()
        state[name] = array
    network.load_state_dict(state)
    return FlowMap(start, network.requires_grad_(requires_grad=False).eval(), count)


@dataclass(frozen=True)
class Flow:
    """BERT-flow.

    Args:
        depth: steps of the network.
        hidden: width of the hidden layer of each.
        epochs: most times that training goes through the vectors.
        patience: epochs without a gain on the held-out vectors after which it ends.
        learning_rate: of Adam.
        seed: of the network, of which tenth is held out, and of the order of the vectors.

    Raises:
        UserError: a number out of its range.
    """

    depth: int = 4
    hidden: int = 512
    epochs: int = 100
    patience: int = 5
    learning_rate: float = 3e-4
    seed: int = 0

    def __post_init__(self) -> None:
        ranges = {"depth": 64, "hidden": 2**14, "epochs": 10**6, "patience": 10**6}
        for name, most in ranges.items():
            value = getattr(self, name)
            if not _is_whole(value) or not 1 <= value <= most:
                raise UserError(
                    f"whitening.{name} is {value!r}: give a whole number from 1 to {most:,}."
                )
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**63:
            raise UserError(f"whitening.seed is {self.seed!r}: give a whole number from 0.")
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
            raise UserError(f"whitening.learning_rate is {rate!r}: give a number above 0, up to 1.")

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """Never a map, since moments are not enough; see `whitepool.flow.fit.fit_flow`.

        Raises:
            UserError: always.
        """
        raise UserError(
            "whitening=flow is trained on vectors, and there are only their moments here: choose "
            "another whitening."
        )


def of_vectors(step: object) -> bool:
    """Whether a step after pooling is fitted on vectors, and not on moments."""
    return isinstance(step, Flow)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
