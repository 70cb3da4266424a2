"""The flow as a map: its density and arrays, and the options it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy import stats
from test_network import trained

from whitepool.errors import UserError
from whitepool.flow.network import Network
from whitepool.flow.step import Flow, FlowMap, array_names, from_arrays
from whitepool.moments import Moments
from whitepool.whitening import Whitening

STEP = Flow(depth=3, hidden=7)


def fitted(dim: int = 5, rank: int | None = None) -> tuple[FlowMap, torch.Tensor]:
    """A flow of many weights behind whitening, and the vectors of that."""
    draw = torch.Generator().manual_seed(0)
    mix = torch.randn(rank or dim, dim, dtype=torch.float64, generator=draw)
    x = torch.randn(80, rank or dim, dtype=torch.float64, generator=draw) @ mix + 3
    start = Whitening().fit(Moments(dim).update(x))
    return FlowMap(start, trained(4, start.directions), 80.0), x


def test_without_training_the_density_is_that_of_a_normal_distribution() -> None:
    made, x = fitted()
    plain = FlowMap(made.start, Network(5, 3, 7).double(), 80.0)
    moments = Moments(5).update(x)
    normal = stats.multivariate_normal(moments.mean.numpy(), moments.covariance().numpy())
    assert plain.log_density(x).numpy() == pytest.approx(normal.logpdf(x.numpy()), abs=1e-9)


def test_trained_the_density_has_the_jacobian_of_the_whole_map() -> None:
    made, x = fitted()
    for row in x[:5]:
        jacobian = torch.stack(
            [(made(row + 1e-5 * e) - made(row - 1e-5 * e)) / 2e-5 for e in torch.eye(5).double()]
        )
        z = made(row)
        normal = stats.norm.logpdf(z.numpy()).sum()
        wanted = normal + torch.linalg.slogdet(jacobian).logabsdet.item()
        assert made.log_density(row[None]).item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("rank", [None, 3])
def test_arrays_give_the_same_map_bit_for_bit(rank: int | None) -> None:
    made, x = fitted(rank=rank)
    arrays = made.arrays()
    assert sorted(arrays) == sorted(array_names(3))
    assert {array.dtype for array in arrays.values()} == {torch.float64}
    again = from_arrays(arrays, STEP, made.count, made.rank)
    assert (again.dim, again.directions, again.rank) == (5, rank or 5, rank or 5)
    assert torch.equal(again(x), made(x))
    assert again(x.float()).dtype == torch.float32
    assert torch.equal(again(x[0]), made(x[:1])[0])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("flow.steps.1.order", lambda a: a.clone().fill_(2), "steps.1.order is no order of 5"),
        ("flow.steps.0.order", lambda a: a + 0.5, "steps.0.order is no order of 5"),
        ("flow.steps.0.shift", lambda a: a[:4], r"has the shape \(4,\) where the others ask for"),
        ("basis", lambda a: a[:, :1], "the flow has 1 direction, and it takes 2 or more"),
    ],
)
def test_arrays_that_are_no_flow(name: str, change: Any, message: str) -> None:
    arrays = fitted()[0].arrays()
    with pytest.raises(UserError, match=message):
        from_arrays({**arrays, name: change(arrays[name])}, STEP, 80.0, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 0}, "whitening.depth is 0: give a whole number from 1 to 64."),
        ({"hidden": 1.5}, "whitening.hidden is 1.5: give a whole number"),
        ({"epochs": True}, "whitening.epochs is True"),
        ({"patience": None}, "whitening.patience is None"),
        ({"learning_rate": 0}, "whitening.learning_rate is 0: give a number above 0, up to 1."),
        ({"seed": -1}, "whitening.seed is -1: give a whole number from 0."),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Flow(**options)


def test_moments_are_not_enough() -> None:
    with pytest.raises(UserError, match="trained on vectors, and there are only their moments"):
        Flow().fit(Moments(3).update(torch.eye(3)))
