"""An invertible network that turns vectors into normal noise: Glow's steps, for vectors.

    x ~ p(x) = N(f(x); 0, 1) |det df/dx|,   f = f_depth ∘ … ∘ f_1

Each step scales and shifts every dimension (actnorm), puts them in another order, fixed and drawn
at random, and lets the first half a of them scale and shift the second half b (affine coupling):

    y = (x + m) exp(s),   (a, b) = y in that order,   f_i(x) = (a, b exp(r(a)) + t(a))

with r, t a network of one hidden layer. Sources: Kingma and Dhariwal 2018, "Glow"; Dinh,
Sohl-Dickstein and Bengio 2017, "Density Estimation using Real NVP"; Li et al. 2020, "On the
Sentence Embeddings from Pre-trained Language Models", who put fixed orders in the place of Glow's
1x1 convolutions. Glow's levels are left out, since a vector has no positions to squeeze together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

STEEPEST = 2.0  # most that one coupling adds to the logarithm of a scale
FLATTEST = 1e-6  # least standard deviation that actnorm divides by


class Step(nn.Module):
    """One step of the flow.

    Args:
        dim: dimensions of the vectors, at least 2.
        hidden: width of the coupling's hidden layer.
        generator: draws the order and the first weights; without training the coupling does
            nothing, since its last layer is zero.
    """

    def __init__(self, dim: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.known = dim // 2  # dimensions of the first half
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.order: Tensor
        self.register_buffer("order", torch.randperm(dim, generator=generator))
        first = torch.randn(hidden, self.known, generator=generator) / math.sqrt(self.known)
        self.inner_weight = nn.Parameter(first)
        self.inner_bias = nn.Parameter(torch.zeros(hidden))
        self.outer_weight = nn.Parameter(torch.zeros(2 * (dim - self.known), hidden))
        self.outer_bias = nn.Parameter(torch.zeros(2 * (dim - self.known)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x, (n, dim), to y, (n, dim), and the logarithm of the Jacobian's determinant, (n,)."""
        a, b = ((x + self.shift) * self.log_scale.exp())[:, self.order].tensor_split(
            [self.known], 1
        )
        log_scale, shift = self._coupling(a)
        y = torch.cat([a, b * log_scale.exp() + shift], 1)
        return y, self.log_scale.sum() + log_scale.sum(1)

    def inverse(self, y: Tensor) -> Tensor:
        """The x, (n, dim), whose y, (n, dim), this is."""
        a, b = y.tensor_split([self.known], 1)
        log_scale, shift = self._coupling(a)
        x = torch.cat([a, (b - shift) * (-log_scale).exp()], 1)[:, self.order.argsort()]
        return x * (-self.log_scale).exp() - self.shift

    @torch.no_grad()
    def normalize(self, x: Tensor) -> None:
        """Make actnorm give every dimension of x, (n, dim), mean 0 and variance 1."""
        self.shift.copy_(-x.mean(0))
        self.log_scale.copy_(-x.std(0).clamp_min(FLATTEST).log())

    def _coupling(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithms of scales, and shifts, (n, dim - half) each, by the first half, (n, half)."""
        hidden = torch.relu(functional.linear(a, self.inner_weight, self.inner_bias))
        steep, shift = functional.linear(hidden, self.outer_weight, self.outer_bias).chunk(2, 1)
        return STEEPEST * torch.tanh(steep / STEEPEST), shift


class Network(nn.Module):
    """The whole flow.

    Args:
        dim: dimensions of the vectors, at least 2.
        depth: number of steps.
        hidden: see `Step`.
        seed: of all that is drawn.
    """

    def __init__(self, dim: int, depth: int, hidden: int, seed: int = 0) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.dim = dim
        self.steps = nn.ModuleList(Step(dim, hidden, draw) for _ in range(depth))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x, (n, dim), to z, (n, dim), and the logarithm of the Jacobian's determinant, (n,)."""
        log_det = x.new_zeros(len(x))
        for step in self.steps:
            x, more = step(x)
            log_det = log_det + more
        return x, log_det

    def inverse(self, z: Tensor) -> Tensor:
        """The x, (n, dim), whose z, (n, dim), this is."""
        for step in reversed(self.steps):
            z = step.inverse(z)  # type: ignore[operator]
        return z

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) in nats, (n,), of x, (n, dim)."""
        z, log_det = self(x)
        normal = -0.5 * (z.square() + math.log(2 * math.pi)).sum(1)
        result: Tensor = normal + log_det
        return result

    @torch.no_grad()
    def normalize(self, x: Tensor) -> None:
        """Set every actnorm by the vectors, (n, dim), that reach it."""
        for step in self.steps:
            step.normalize(x)  # type: ignore[operator]
            x = step(x)[0]
