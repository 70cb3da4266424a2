"""Whitening: identity covariance, rank, signs, files; oracle scikit-learn."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.whitening import Affine, Whitening, eigh_descending, load_maps, save_maps


def vectors(seed: int, n: int, dim: int, decay: float = 0.5, mean: float = 2.0) -> torch.Tensor:
    """Correlated vectors with eigenvalues that fall like j^-decay."""
    generator = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(generator.normal(size=(dim, dim)))
    scale = np.arange(1, dim + 1) ** -decay
    return torch.from_numpy(generator.normal(size=(n, dim)) * scale @ rotation + mean)


def fit(x: torch.Tensor, k: int | None = None) -> Affine:
    return Whitening(k).fit(Moments(x.shape[1]).update(x))


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(20, 80))
@settings(max_examples=50, deadline=None)
def test_whitened_data_have_mean_zero_and_covariance_one(seed: int, dim: int, n: int) -> None:
    x = vectors(seed, n, dim)
    z = fit(x)(x)
    assert z.mean(0).abs().max() < 1e-8
    assert (torch.atleast_2d(torch.cov(z.T)) - torch.eye(dim)).abs().max() < 1e-8


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_first_k_equals_fitting_k(seed: int, k: int) -> None:
    x = vectors(seed, 50, 6)
    assert torch.equal(fit(x).first(k)(x), fit(x, k)(x))


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 100), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_scale_and_shift_do_not_matter(seed: int, scale: float, shift: float) -> None:
    x = vectors(seed, 60, 5)
    assert torch.allclose(fit(x * scale + shift)(x * scale + shift), fit(x)(x), atol=1e-6)


def test_equals_scikit_learn() -> None:
    """Up to signs; scikit-learn too centres and divides by n - 1."""
    x = vectors(0, 300, 12)
    for k in (1, 5, 12):
        theirs = PCA(n_components=k, whiten=True).fit_transform(x.numpy())
        ours = fit(x, k)(x).numpy()
        assert np.allclose(ours * np.sign((ours * theirs).sum(0)), theirs, atol=1e-8)


def test_directions_are_sorted_and_signed() -> None:
    values, columns = eigh_descending(Moments(9).update(vectors(1, 100, 9)).covariance())
    assert (values[:-1] >= values[1:]).all()
    largest = columns.gather(0, columns.abs().argmax(0, keepdim=True))
    assert (largest > 0).all()


def test_one_vector_and_many() -> None:
    x = vectors(2, 40, 4)
    affine = fit(x)
    assert torch.allclose(affine(x[3]), affine(x)[3], atol=1e-12)
    assert affine(x[3]).shape == (4,)
    assert affine(x[:1]).shape == (1, 4)
    assert affine(x.float()).dtype == torch.float32


def test_rank_is_cut_reported_and_held_out_vectors_stay_small(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """100 vectors in 768 dimensions have rank 99; without a cut, new vectors reach norm 1e8."""
    x = vectors(3, 300, 768, decay=1.0)
    with caplog.at_level(logging.WARNING):
        affine = fit(x[:100])
    assert affine.rank == 99
    assert affine.basis.shape == (768, 99)
    assert "the 100 vectors span 99 of 768 dimensions" in caplog.text
    assert "669 without variance dropped" in caplog.text
    assert "100 vectors are too few for 99 directions" in caplog.text
    fitted, held_out = affine(x[:100]).norm(dim=1), affine(x[100:]).norm(dim=1)
    assert held_out.max() < 50 * fitted.max()


def test_k_at_and_above_the_rank() -> None:
    x = vectors(4, 11, 20)  # rank 10
    assert fit(x).basis.shape[1] == 10
    assert fit(x, 20).basis.shape[1] == 10  # k = dim keeps every direction above the cut
    assert fit(x, 10).basis.shape[1] == 10
    with pytest.raises(UserError, match=r"whitening.k=11 is over the effective rank 10 of 11"):
        fit(x, 11)
    with pytest.raises(UserError, match=r"whitening.k=21 is over the 20 dimensions"):
        fit(x, 21)


@pytest.mark.parametrize("k", [0, -3, 2.5, True, "all"])
def test_k_must_be_a_positive_whole_number(k: object) -> None:
    with pytest.raises(UserError, match="whole number from 1"):
        Whitening(k)  # type: ignore[arg-type]


def test_equal_vectors_cannot_be_whitened() -> None:
    with pytest.raises(UserError, match="all 5 vectors are equal"):
        fit(torch.ones(5, 3, dtype=torch.float64) * 0.1)


@pytest.mark.parametrize("n", [2, 5, 6, 7, 60])
def test_nothing_infinite_whatever_n(n: int) -> None:
    x = vectors(5, 200, 6)
    affine = fit(x[:n])
    assert affine.rank == min(n - 1, 6)
    assert torch.isfinite(affine(x)).all()


def test_dead_and_repeated_dimensions_are_dropped() -> None:
    x = vectors(6, 100, 5)
    x = torch.cat([x, x[:, :2], torch.full((100, 1), 7.0, dtype=x.dtype)], 1)
    affine = fit(x)
    assert affine.rank == 5
    z = affine(x)
    assert (torch.cov(z.T) - torch.eye(5)).abs().max() < 1e-8


def test_gpu_solver_that_fails_is_retried_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix on the `meta` device stands in for a GPU whose solver fails."""
    solve = torch.linalg.eigh
    wanted = Moments(3).update(vectors(7, 20, 3)).covariance()

    class OnGpu:
        device = torch.device("cuda")

        def cpu(self) -> torch.Tensor:
            return wanted

    def flaky(matrix: object) -> object:
        if isinstance(matrix, OnGpu):
            raise torch.linalg.LinAlgError("failed to converge")
        return solve(matrix)

    monkeypatch.setattr(torch.linalg, "eigh", flaky)
    values, _ = eigh_descending(OnGpu())  # type: ignore[arg-type]
    assert torch.allclose(values, solve(wanted)[0].flip(0))


def test_files_keep_every_bit(tmp_path: Path) -> None:
    x = vectors(8, 50, 6)
    maps = {"sts12": fit(x), "sts12.MSRpar": fit(x[:30], 4)}
    save_maps(tmp_path / "w.safetensors", maps, {"model": "bert", "fit_on": "task"})
    loaded, provenance = load_maps(tmp_path / "w.safetensors")
    assert list(loaded) == list(maps)
    for name, affine in maps.items():
        assert torch.equal(loaded[name].mean, affine.mean)
        assert torch.equal(loaded[name].basis, affine.basis)
        assert (loaded[name].count, loaded[name].rank) == (affine.count, affine.rank)
    assert provenance["model"] == "bert"
    assert provenance["fit_sets"]["sts12"] == {"count": 50.0, "rank": 6}


def test_pickles_and_strange_files_are_refused(tmp_path: Path) -> None:
    pickled = tmp_path / "w.pkl"
    pickled.write_bytes(pickle.dumps({"kernel": [1.0]}))
    with pytest.raises(UserError, match=r"w.pkl is not a .safetensors file"):
        load_maps(pickled)
    disguised = tmp_path / "w.safetensors"
    disguised.write_bytes(pickled.read_bytes())
    with pytest.raises(UserError, match="is not a whitening file of whitepool"):
        load_maps(disguised)
    with pytest.raises(UserError, match="is not a whitening file of whitepool"):
        load_maps(tmp_path / "absent.safetensors")
