"""The invertible network: its inverse, its determinant, and that its density is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from whitepool.flow.network import STEEPEST, Network

SHAPES = {"seed": st.integers(0, 2**32), "dim": st.integers(2, 9), "depth": st.integers(1, 5)}


def trained(seed: int, dim: int, depth: int = 3, hidden: int = 7) -> Network:
    """A network in float64 whose every weight is far from where it starts."""
    network = Network(dim, depth, hidden, seed).double()
    draw = torch.Generator().manual_seed(seed)
    for weight in network.parameters():
        weight.data = 0.4 * torch.randn(weight.shape, dtype=torch.float64, generator=draw)
    return network.requires_grad_(requires_grad=False)


def vectors(seed: int, n: int, dim: int) -> Tensor:
    draw = torch.Generator().manual_seed(seed + 1)
    return 2 * torch.randn(n, dim, dtype=torch.float64, generator=draw) + 1


@given(**SHAPES)
@settings(max_examples=25, deadline=None)
def test_the_inverse_is_exact_on_both_sides(seed: int, dim: int, depth: int) -> None:
    network, x = trained(seed, dim, depth), vectors(seed, 20, dim)
    assert (network.inverse(network(x)[0]) - x).abs().max() < 1e-5
    z = x / 4
    assert (network(network.inverse(z))[0] - z).abs().max() < 1e-5


@given(**SHAPES)
@settings(max_examples=10, deadline=None)
def test_the_determinant_is_that_of_the_jacobian(seed: int, dim: int, depth: int) -> None:
    network, x = trained(seed, dim, depth), vectors(seed, 4, dim)
    _, found = network(x)
    for row, log_det in zip(x, found, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: network(v[None])[0][0], row)
        wanted = torch.linalg.slogdet(jacobian).logabsdet
        assert log_det.item() == pytest.approx(wanted.item(), abs=1e-8)


def test_each_number_by_a_loop_from_the_formula() -> None:
    network, x = trained(5, 5, depth=2), vectors(5, 6, 5)
    for row, found in zip(x.numpy(), network(x)[0].numpy(), strict=True):
        v = row
        for step in network.steps:
            w = {name: p.numpy() for name, p in step.state_dict().items()}
            y = [(v[i] + w["shift"][i]) * np.exp(w["log_scale"][i]) for i in range(5)]
            y = [y[i] for i in w["order"]]
            a, b = y[:2], y[2:]
            hidden = [
                max(0.0, sum(w["inner_weight"][h, i] * a[i] for i in range(2)) + w["inner_bias"][h])
                for h in range(7)
            ]
            outer = [
                sum(w["outer_weight"][o, h] * hidden[h] for h in range(7)) + w["outer_bias"][o]
                for o in range(6)
            ]
            scale = [np.exp(STEEPEST * np.tanh(r / STEEPEST)) for r in outer[:3]]
            v = [*a, *(b[j] * scale[j] + outer[3 + j] for j in range(3))]
        assert np.abs(np.array(v) - found).max() < 1e-12


def test_the_density_is_one_over_the_plane() -> None:
    """A sum over a fine grid, which knows nothing of determinants."""
    network = trained(1, 2)
    corners = network.inverse(4.5 * torch.randn(5000, 2, dtype=torch.float64).clamp(-1.2, 1.2))
    low, high = corners.amin(0) - 1, corners.amax(0) + 1
    ends = zip(low.tolist(), high.tolist(), strict=True)
    axes = [torch.linspace(a, b, 700, dtype=torch.float64) for a, b in ends]
    cell = float((axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]))
    total = network.log_density(torch.cartesian_prod(*axes)).exp().sum() * cell
    assert float(total) == pytest.approx(1, abs=1e-3)


def test_untrained_it_only_puts_dimensions_in_another_order() -> None:
    network, x = Network(6, 4, 8, seed=3).double(), vectors(0, 9, 6)
    z, log_det = network(x)
    assert torch.equal(z.sort(1).values, x.sort(1).values)
    assert not torch.equal(z, x)
    assert not log_det.any()


def test_actnorm_is_set_by_the_vectors_that_reach_it() -> None:
    network, x = trained(2, 4), vectors(2, 300, 4)
    network.normalize(x)
    for step in network.steps:
        y = (x + step.shift) * step.log_scale.exp()
        assert y.mean(0).abs().max() < 1e-12
        assert (y.std(0) - 1).abs().max() < 1e-12
        x = step(x)[0]


def test_a_seed_gives_one_network() -> None:
    one, same, other = (Network(6, 2, 4, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["steps.0.inner_weight"], other["steps.0.inner_weight"])
