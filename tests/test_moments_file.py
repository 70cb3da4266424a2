"""Moments on disk: bit for bit, halves equal the whole, other vectors refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.moments_file import load_moments, merged, save_moments

VECTORS = {"model": {"sha256": "ab"}, "pooling": {"kind": "linear", "layers": [1, 3]}}
A = {"corpus": "a", "texts": 3, "sha256": "aa"}
B = {"corpus": "b", "texts": 4, "sha256": "bb"}


def moments(seed: int, n: int = 9, dim: int = 4) -> Moments:
    return Moments(dim).update(torch.from_numpy(np.random.default_rng(seed).normal(5, 1, (n, dim))))


def save(path: Path, what: Moments, corpus: dict[str, Any] = A, **vectors: Any) -> Path:
    save_moments(path, what, {"vectors": {**VECTORS, **vectors}, "corpora": [corpus]})
    return path


def test_bit_for_bit(tmp_path: Path) -> None:
    what = moments(0)
    found, content = load_moments(save(tmp_path / "m.safetensors", what))
    assert found.count == what.count
    assert torch.equal(found.mean, what.mean)
    assert torch.equal(found.scatter, what.scatter)
    assert content["vectors"] == VECTORS
    assert content["corpora"] == [A]
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


@given(st.integers(0, 2**32 - 1), st.integers(1, 39))
@settings(max_examples=25, deadline=None)
def test_two_halves_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("halves")
    x = torch.from_numpy(np.random.default_rng(seed).normal(3, 1, (40, 4)))
    first = save(folder / "a.safetensors", Moments(4).update(x[:cut]))
    second = save(folder / "b.safetensors", Moments(4).update(x[cut:]), B)
    found, corpora = merged([first, second], VECTORS)
    whole = Moments(4).update(x)
    assert found.count == 40
    assert torch.allclose(found.mean, whole.mean, rtol=0, atol=1e-10)
    assert torch.allclose(found.scatter, whole.scatter, rtol=0, atol=1e-10)
    assert corpora == [A, B]


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch

    path = save(tmp_path / "m.safetensors", moments(0))
    before = path.read_bytes()

    def half(arrays: object, target: Path, metadata: object) -> None:
        Path(target).write_bytes(before[:50])
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.torch, "save_file", half)
    with pytest.raises(KeyboardInterrupt):
        save(path, moments(1))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"sha256": "cd"}}, 'model is {"sha256": "cd"} there and {"sha256": "ab"} here'),
        ({"pooling": {"kind": "max"}}, 'pooling is {"kind": "max"} there and {"kind": "linear", '),
        ({"max_length": 64}, "max_length is 64 there and null here"),
    ],
)
def test_other_vectors_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = save(tmp_path / "m.safetensors", moments(0), **changes)
    with pytest.raises(UserError) as fault:
        merged([path], VECTORS)
    assert f"{path} has moments of other vectors: {message}" in str(fault.value)


def test_other_dimensions_are_refused(tmp_path: Path) -> None:
    first = save(tmp_path / "a.safetensors", moments(0, dim=4))
    second = save(tmp_path / "b.safetensors", moments(0, dim=5))
    with pytest.raises(UserError, match="of 5 dimensions where the others have 4"):
        merged([first, second], VECTORS)
    with pytest.raises(UserError, match="of 4 dimensions where the others have 7"):
        merged([first], VECTORS, dim=7)
    with pytest.raises(UserError, match="resume_from is empty"):
        merged([], VECTORS)


def test_what_is_no_moments_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no moments file .*no\.safetensors"):
        load_moments(tmp_path / "no.safetensors")
    pickled = tmp_path / "m.pt"
    torch.save({}, pickled)
    with pytest.raises(UserError, match="pickles and the like are not read"):
        load_moments(pickled)
    path = tmp_path / "m.safetensors"
    path.write_bytes(pickled.read_bytes())
    with pytest.raises(UserError, match="is not a moments file of whitepool"):
        load_moments(path)
    for content, message in (
        ({"schema": 1, "kind": "maps"}, "is not a moments file of whitepool"),
        (
            {"schema": 2, "kind": "moments"},
            "has schema 2 and this whitepool reads 1: install",
        ),
        ([], "is not a moments file of whitepool"),
        ({"schema": 1, "kind": "moments"}, "is not a moments file of whitepool"),
    ):
        save_file({"x": torch.ones(1)}, path, metadata={"whitepool": json.dumps(content)})
        with pytest.raises(UserError, match=message):
            load_moments(path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("mean", torch.ones(3, dtype=torch.float64), "arrays of shapes"),
        ("mean", torch.ones(4), "arrays of shapes"),
        (
            "scatter",
            torch.full((4, 4), torch.nan, dtype=torch.float64),
            "moments that are not finite",
        ),
        ("count", torch.tensor([-1.0], dtype=torch.float64), "or a count < 0"),
    ],
)
def test_arrays_that_are_no_moments(
    tmp_path: Path, name: str, array: torch.Tensor, message: str
) -> None:
    what = moments(0)
    arrays = {
        "count": torch.tensor([what.count], dtype=torch.float64),
        "mean": what.mean,
        "scatter": what.scatter,
        name: array,
    }
    content = json.dumps({"schema": 1, "kind": "moments"})
    save_file(arrays, tmp_path / "m.safetensors", metadata={"whitepool": content})
    with pytest.raises(UserError, match=message):
        load_moments(tmp_path / "m.safetensors")
