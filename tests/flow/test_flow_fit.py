"""Training: likelihood of vectors never seen, early stopping, and runs that are broken off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from scipy import stats
from torch import Tensor

from whitepool.errors import UserError
from whitepool.flow.fit import fit_flow, quiet_trainer
from whitepool.flow.step import Flow, FlowMap
from whitepool.flow.training import Shuffled

STEP = Flow(depth=4, hidden=32, epochs=8, patience=8, learning_rate=5e-3)
ONES = torch.ones


def bent(seed: int, n: int) -> Tensor:
    """Vectors (n, 4) whose second half depends on the square of the first."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=draw)
    return torch.cat([x, x.square() + 0.3 * torch.randn(n, 2, generator=draw)], 1) + 5


def same(one: FlowMap, other: FlowMap) -> bool:
    a, b = one.arrays(), other.arrays()
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def whole() -> FlowMap:
    """Trained in one go."""
    return fit_flow(STEP, bent(0, 900), ONES(900))


def test_new_vectors_are_likelier_than_under_a_normal_distribution(whole: FlowMap) -> None:
    seen, new = bent(0, 900).double(), bent(1, 2000).double()
    normal = stats.multivariate_normal(seen.mean(0).numpy(), torch.cov(seen.T).numpy())
    gain = float(whole.log_density(new).mean()) - normal.logpdf(new.numpy()).mean()
    assert gain > 0.5  # nats
    z = whole(new)
    assert torch.linalg.vector_norm(whole.network.inverse(z) - whole.start(new)) < 1e-5


def test_a_seed_decides_everything_whatever_torch_has_drawn_before(whole: FlowMap) -> None:
    torch.manual_seed(1)
    assert same(fit_flow(STEP, bent(0, 900), ONES(900)), whole)
    assert not same(fit_flow(replace(STEP, seed=1), bent(0, 900), ONES(900)), whole)


class Power(pl.Callback):
    """Fails in the middle of an epoch."""

    def on_train_batch_end(self, trainer: pl.Trainer, *rest: Any) -> None:
        if (trainer.current_epoch, rest[-1]) == (3, 1):
            raise RuntimeError("no power")


def test_a_run_that_was_broken_off_ends_as_if_it_had_not_been(
    tmp_path: Path, whole: FlowMap
) -> None:
    def failing(callbacks: Sequence[pl.Callback], epochs: int) -> pl.Trainer:
        return quiet_trainer([*callbacks, Power()], epochs)

    kept = tmp_path / "flow.ckpt"
    x = bent(0, 900)
    with pytest.raises(RuntimeError, match="no power"):
        fit_flow(STEP, x, ONES(900), trainer=failing, checkpoint=kept)
    assert [path.name for path in tmp_path.iterdir()] == ["flow.ckpt"]
    assert torch.load(kept, weights_only=True)["epoch"] == 2
    assert same(fit_flow(STEP, x, ONES(900), checkpoint=kept, resume=kept), whole)


def test_more_epochs_go_on_from_fewer(tmp_path: Path, whole: FlowMap) -> None:
    kept = tmp_path / "flow.ckpt"
    few = fit_flow(replace(STEP, epochs=3), bent(0, 900), ONES(900), checkpoint=kept)
    assert not same(few, whole)
    assert same(fit_flow(STEP, bent(0, 900), ONES(900), resume=kept), whole)


def test_training_ends_and_the_likeliest_epoch_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Of normal vectors there is nothing more to learn, and much to learn by heart."""
    caplog.set_level("INFO")
    step = Flow(depth=2, hidden=256, epochs=200, patience=2, learning_rate=2e-2)
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    made = fit_flow(step, x, ONES(200), name="here")
    assert "here: flow: " in caplog.text
    new = torch.randn(4000, 6, generator=torch.Generator().manual_seed(1)).double()
    normal = stats.multivariate_normal(x.mean(0).numpy(), torch.cov(x.T).numpy())
    assert float(made.log_density(new).mean()) > normal.logpdf(new.numpy()).mean() - 0.3


def test_weights_count(whole: FlowMap) -> None:
    x = bent(0, 900)
    heavy = fit_flow(replace(STEP, epochs=1), x, 3 * ONES(900))
    light = fit_flow(replace(STEP, epochs=1), x, ONES(900))
    assert (heavy.count, light.count) == (2700, 900)
    assert heavy(x.double()).numpy() == pytest.approx(light(x.double()).numpy(), abs=1e-2)
    some = ONES(900)
    some[x[:, 0] > 5] = 20  # draws the mean towards those
    assert (fit_flow(replace(STEP, epochs=1), x, some).start.mean[0] - 5) > 0.5


def test_each_epoch_has_every_row_once_in_an_order_of_its_own() -> None:
    sampler, orders = Shuffled(600, seed=3), []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        parts = list(sampler)
        assert len(parts) == len(sampler) == 3
        orders.append(torch.cat(parts))
        assert torch.equal(orders[-1].sort().values, torch.arange(600))
    assert torch.equal(orders[0], orders[2])
    assert not torch.equal(orders[0], orders[1])


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    x = bent(0, 60)
    with pytest.raises(UserError, match="was given 19 vectors: give at least 20"):
        fit_flow(STEP, x[:19], ONES(19))
    with pytest.raises(UserError, match="all 54 vectors are equal"):
        fit_flow(STEP, ONES(60, 4), ONES(60))
    with pytest.raises(UserError, match="all vectors lie on a line"):
        fit_flow(STEP, torch.arange(60.0)[:, None] * ONES(1, 4), ONES(60))
    kept, step = tmp_path / "flow.ckpt", replace(STEP, epochs=1)
    fit_flow(step, x, ONES(60), checkpoint=kept)
    for other, message in (
        ((replace(step, hidden=8), x, ONES(60)), "trained with hidden 32, and now it is 8"),
        ((step, x[:50], ONES(50)), "trained with vectors 60, and now it is 50"),
        ((step, x + 1, ONES(60)), "trained on other vectors, with another mean"),
    ):
        with pytest.raises(UserError, match=message):
            fit_flow(*other, resume=kept)
    (tmp_path / "no.ckpt").write_bytes(b"text")
    for name in ("no.ckpt", "absent.ckpt"):
        with pytest.raises(UserError, match=f"{name} is no checkpoint of whitening=flow"):
            fit_flow(step, x, ONES(60), resume=tmp_path / name)
