"""What vectors depend on: each of these changed gives another key, and nothing else does."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.utils import instantiate

from test_conf import choices, composed
from whitepool import identity
from whitepool.data import PairSet, Task
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.table import SentenceTable
from whitepool.inputs import choose
from whitepool.plm import FrozenPLM
from whitepool.reuse import digest

from tiny import make_checkpoint

PAIRS = [("the dog runs", "the cat runs in the park"), ("a man plays guitar", "two woman")]


def table_of(
    plm: FrozenPLM,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    *,
    sha256: str = "0",
    max_length: int | None = None,
) -> SentenceTable:
    first, second = zip(*pairs, strict=True)
    data = PairSet("t", "", "test", first, second, np.arange(float(len(pairs))), "made", sha256)
    return SentenceTable.build([Task("t", (data,))], lambda t: plm.tokenize(t, max_length))


@functools.cache
def head_of(*overrides: str) -> dict[str, Any]:
    return choose(composed("model=bert", *overrides)).head


def key_of(
    plm: FrozenPLM,
    head: dict[str, Any] | None = None,
    table: SentenceTable | None = None,
    *,
    batch_tokens: int = 4096,
    device: str = "cpu",
) -> str:
    table = table or table_of(plm)
    data = SentenceDataModule(table, batch_tokens=batch_tokens)
    content = identity.vectors_from(
        plm, head or head_of("pooling=avg"), table, data.batches, device=device
    )
    assert json.loads(json.dumps(content)) == content
    return digest(content)


@pytest.fixture(scope="module")
def model(plm: Callable[[str], Any]) -> FrozenPLM:
    found: FrozenPLM = plm("bert")
    return found


def test_the_same_gives_the_same(model: FrozenPLM, checkpoint: Callable[[str], Path]) -> None:
    again = FrozenPLM.from_pretrained(path=checkpoint("bert"), name="another name")
    assert key_of(model) == key_of(again) == key_of(model, table=table_of(model))


def test_a_copied_folder_is_the_same_model(
    model: FrozenPLM, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(checkpoint("bert"), tmp_path / "copy")
    assert key_of(FrozenPLM.from_pretrained(path=copy)) == key_of(model)


def test_changed_weights_and_configuration_are_another_model(
    model: FrozenPLM, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    seed = make_checkpoint("bert", tmp_path / "seed", seed=1)
    config = shutil.copytree(checkpoint("bert"), tmp_path / "config")
    content = json.loads((config / "config.json").read_text())
    (config / "config.json").write_text(json.dumps({**content, "hidden_act": "relu"}))
    keys = {key_of(FrozenPLM.from_pretrained(path=folder)) for folder in (seed, config)}
    half = FrozenPLM.from_pretrained(path=checkpoint("bert"), dtype="bfloat16")
    assert len(keys | {key_of(model), key_of(half)}) == 4


def test_changed_data_and_length_give_another_key(model: FrozenPLM) -> None:
    tables = [
        table_of(model),
        table_of(model, sha256="1"),
        table_of(model, max_length=4),
        table_of(model, [("the dog runs", "the cat runs in a park"), PAIRS[1]]),
        table_of(model, [*PAIRS, ("music", "food")]),
        table_of(model, PAIRS[::-1]),
    ]
    assert len({key_of(model, table=table) for table in tables}) == len(tables)
    assert key_of(model, table=table_of(model, max_length=64)) == key_of(model)  # nothing is cut


def test_where_one_sentence_ends_counts(model: FrozenPLM) -> None:
    """The same ids in a row, cut at other places."""
    table = table_of(model)
    (a, b, *rest) = table.ids
    moved = replace(table, ids=((*a, b[0]), b[1:], *rest))
    batches = [list(range(len(table)))]
    keys = {
        digest(identity.vectors_from(model, head_of("pooling=avg"), t, batches, device="cpu"))
        for t in (table, moved)
    }
    assert len(keys) == 2


def test_every_head_and_every_option_of_one_has_its_key(model: FrozenPLM) -> None:
    heads = [head_of(f"pooling={name}") for name in choices("pooling") if name != "layers"]
    heads += [
        head_of("pooling=ditto", "pooling.head=1"),
        head_of("pooling=ditto", "pooling.block=1"),
        head_of("pooling=ditto", "pooling.normalize=true"),
        head_of("pooling=ditto", "pooling.layers=[-1]"),
        head_of("pooling=pooler", "pooling.activation=none"),
        head_of("pooling=layers", "pooling.layers=[1]"),
        head_of("pooling=layers", "pooling.layers=[0,1,2]"),
    ]
    assert len({key_of(model, head) for head in heads}) == len(heads)
    for head in heads:
        arguments = {k: v for k, v in head.items() if k not in ("template", "full_stop")}
        instantiate(arguments, _convert_="all")


def test_one_head_under_two_names_has_one_key(model: FrozenPLM) -> None:
    for layers in ("[-1]", "[3]"):
        head = head_of("pooling=layers", f"pooling.layers={layers}")
        assert key_of(model, head) == key_of(model, head_of("pooling=avg"))


def test_batches_device_and_precision_count(model: FrozenPLM) -> None:
    keys = {
        key_of(model),
        key_of(model, batch_tokens=10),
        key_of(model, device="cuda"),
    }
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        keys.add(key_of(model))
    finally:
        torch.set_float32_matmul_precision(before)
    assert len(keys) == 4


def test_the_source_of_the_package_counts(
    model: FrozenPLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the package in which one comment was added."""
    source = Path(identity.whitepool.__file__).parent
    copy = shutil.copytree(source, tmp_path / "whitepool")
    identity.software.cache_clear()  # it may be from before the source was last written
    before = key_of(model)
    monkeypatch.setattr(identity.whitepool, "__file__", str(copy / "__init__.py"))
    try:
        identity.software.cache_clear()
        assert key_of(model) == before
        with (copy / "pooling" / "tokens.py").open("a") as file:
            file.write("# changed\n")
        identity.software.cache_clear()
        assert key_of(model) != before
    finally:
        identity.software.cache_clear()


def test_moments_belong_to_vectors_counts_and_batches() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    nudged = x.copy()
    nudged[2, 1] = np.nextafter(nudged[2, 1], np.float32(9))
    counts = {"t": np.array([1, 2, 0])}
    variants = [
        (x, counts, [[0, 1, 2]], "cpu"),
        (nudged, counts, [[0, 1, 2]], "cpu"),
        (x, {"u": counts["t"]}, [[0, 1, 2]], "cpu"),
        (x, {"t": np.array([1, 2, 1])}, [[0, 1, 2]], "cpu"),
        (x, counts, [[0, 1], [2]], "cpu"),
        (x, counts, [[0, 1, 2]], "cuda"),
    ]
    keys = {digest(identity.moments_from(v, c, b, device=d)) for v, c, b, d in variants}
    assert len(keys) == len(variants)


def test_what_may_change_unseen_has_no_identity(model: FrozenPLM) -> None:
    avg = head_of("pooling=avg")
    assert identity.why_unknown(model, avg) == ""
    foreign = {**avg, "tokens": {"_target_": "mine.heads.Idf"}}
    assert identity.why_unknown(model, foreign).startswith("mine.heads.Idf is no part")
    provenance = model.provenance
    try:
        for revision, known in ((None, False), ("main", False), ("a" * 40, True)):
            model.provenance = {**provenance, "sha256": None, "revision": revision}
            assert (identity.why_unknown(model, avg) == "") == known
        first = key_of(model)
        model.provenance = {**model.provenance, "revision": "b" * 40}
        assert key_of(model) != first
    finally:
        model.provenance = provenance
