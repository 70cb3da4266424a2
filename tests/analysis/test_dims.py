"""Every k at once against single runs of one k, and against plain loops."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from whitepool.analysis import prefixes
from whitepool.analysis.base import Rows
from whitepool.analysis.dims import DimGrid
from whitepool.analysis.memory import plan_chunks
from whitepool.analysis.prefixes import Pairs, prefix_cosines
from whitepool.callbacks import WhiteningCallback
from whitepool.data import PairSet, Task
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.load import load_sts
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.fitting import fit_each
from whitepool.module import SentenceEncoder
from whitepool.plm import FrozenPLM
from whitepool.pooling import AttentionDiagonal, LinearPooling, MaxPooling, ModelPooler, Uniform
from whitepool.protocol import EvalProtocol, FitOn
from whitepool.scores import cosines, score
from whitepool.similarity import cosine
from whitepool.whitening import Affine, Whitening

from tiny import WORDS

CONF = Path(__file__).resolve().parents[2] / "conf"
HEADS: dict[str, Any] = {
    "first_last": lambda: LinearPooling(Uniform(), [1, -1]),
    "ditto": lambda: LinearPooling(AttentionDiagonal(1, 2), [0, -1]),
    "max": MaxPooling,
    "pooler": ModelPooler,
}


def sentences(generator: np.random.Generator, n: int) -> tuple[str, ...]:
    """Random sentences, some of them repeated, one blank."""
    made = [" ".join(generator.choice(WORDS, generator.integers(2, 9))) for _ in range(n - 3)]
    return (*made, made[0], made[1], " ")


def suite(model: Any, sizes: Sequence[int] = (60, 50, 45), seed: int = 0) -> SentenceTable:
    """Two sub-tasks of a year and a task of one file, which has another split."""
    generator = np.random.default_rng(seed)
    made = []
    for (task, subset, split), n in zip(
        (("sts12", "A", "test"), ("sts12", "B", "test"), ("stsb", "", "test"), ("stsb", "", "dev")),
        (*sizes, 20),
        strict=True,
    ):
        pairs = (sentences(generator, n), sentences(generator, n)[::-1])
        gold = generator.integers(0, 6, n).astype(float)
        made.append(PairSet(task, subset, split, *pairs, gold, "made", "0"))
    tasks = [Task("sts12", tuple(made[:2])), Task("stsb", (made[2],), (made[3],))]
    return SentenceTable.build(tasks, model.tokenize, other_splits=True)


def run(
    analysis: DimGrid,
    model: Any,
    protocol: EvalProtocol,
    table: SentenceTable,
    chunks: Sequence[SentenceTable] | None = None,
    batch_tokens: int = 200,
) -> dict[str, Rows]:
    """What a driver does."""
    analysis.plan(model, protocol, table)
    for chunk in chunks or [table]:
        analysis.start(chunk)
        data = SentenceDataModule(chunk, batch_tokens=batch_tokens)
        with torch.inference_mode():
            for batch in data.test_dataloader():
                for rows, states in model.states(batch, analysis.needs):
                    analysis.update(rows, states)
        analysis.finish()
    return analysis.tables()


def single(
    head: Any,
    model: Any,
    protocol: EvalProtocol,
    table: SentenceTable,
    batch_tokens: int = 200,
) -> tuple[np.ndarray, WhiteningCallback]:
    """Vectors and maps of a single run."""
    encoder, callback = (
        SentenceEncoder(model, head),
        WhiteningCallback(Whitening(), protocol.fit_on),
    )
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, callbacks=[callback], enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    data = SentenceDataModule(table, batch_tokens=batch_tokens)
    trainer.test(encoder, datamodule=data, verbose=False)
    return encoder.vectors, callback


def at(rows: Rows, k: int, stage: str) -> dict[tuple[str, ...], float]:
    return {
        (r["task"], r["subset"], r["aggregate"], r["metric"]): r["value"]
        for r in rows
        if r["k"] == k and r["stage"] == stage
    }


def scored(table: SentenceTable, stage: str, xs: Any) -> dict[tuple[str, ...], float]:
    return {
        (r.task, r.subset, r.aggregate, r.metric): r.value
        for r in score(table.scored, {stage: xs}, samples=0).rows
    }


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("fit_on", ["subset", "task", "suite"])
def test_every_k_equals_single_runs(head: str, fit_on: FitOn, plm: Callable[[str], Any]) -> None:
    """Whitened: whitening=pca whitening.k=K. Rotated: the same map without its scaling."""
    model, protocol = plm("bert"), EvalProtocol("x", "all", fit_on, all_splits=True)
    table = suite(model)
    rows = run(DimGrid(HEADS[head](), Whitening()), model, protocol, table)["dims"]
    vectors, callback = single(HEADS[head](), model, protocol, table)
    raw = scored(table, "raw", cosines(table, vectors, None, protocol)["raw"])
    assert at(rows, 32, "raw") == pytest.approx(raw, abs=1e-9)
    rank = min(m.rank for m in callback.maps.values())
    assert {r["k"] for r in rows if r["task"] == "avg" and r["stage"] == "post"} == {
        *range(1, rank + 1)
    }
    for k in (1, 2, 7, rank - 1, rank):
        for stage, maps in (
            ("post", {name: m.first(k) for name, m in callback.maps.items()}),
            ("rotated", {name: unscaled(m.first(k)) for name, m in callback.maps.items()}),
        ):
            xs = cosines(table, vectors, maps, protocol)["post"]
            assert at(rows, k, stage) == pytest.approx(scored(table, stage, xs), abs=1e-9)


def unscaled(affine: Affine) -> Affine:
    return Affine(affine.mean, affine.basis / affine.basis.norm(dim=0), affine.count, affine.rank)


def test_curves_equal_a_plain_loop_over_repeated_sentences(plm: Callable[[str], Any]) -> None:
    """Every sentence as often as it occurs, numpy's covariance, slices of the projections."""
    model, protocol = plm("bert"), EvalProtocol("x", "all", "task")
    table = suite(model)
    rows = run(DimGrid(MaxPooling(), Whitening()), model, protocol, table)["dims"]
    vectors, _ = single(MaxPooling(), model, protocol, table)
    s = table.scored[2]
    used = [*s.pairs.ravel(), *np.concatenate(table.other["stsb"]).ravel()]
    x = vectors[[row for row in used if table.ids[row]]].astype(float)
    values, columns = np.linalg.eigh(np.cov(x.T))
    columns = columns[:, ::-1]
    for stage, basis in (("rotated", columns), ("post", columns / np.sqrt(values[::-1]))):
        z = (vectors.astype(float) - x.mean(0)) @ basis
        z[table.is_blank] = 0
        for k in (1, 3, 16, 31, 32):
            found = scored(table, stage, [np.arange(len(t.gold)) for t in table.scored[:2]]
                           + [cosine(z[:, :k], s.pairs)])  # fmt: skip
            key = ("stsb", "", "all", "spearman")
            assert at(rows, k, stage)[key] == pytest.approx(found[key], abs=1e-9)


def test_order_and_chunks_of_pairs_do_not_matter(plm: Callable[[str], Any]) -> None:
    """Each sentence computed alone, so that its vector is the same to the last bit."""
    model, protocol = plm("bert"), EvalProtocol("x", "all", "suite", all_splits=True)
    table = suite(model)
    head = HEADS["first_last"]
    whole = run(DimGrid(head(), Whitening()), model, protocol, table, batch_tokens=1)
    parts = [SentenceTable.build([task], model.tokenize, other_splits=True) for task in table.tasks]
    again = run(DimGrid(head(), Whitening()), model, protocol, table, parts[::-1], batch_tokens=1)
    assert len(whole["dims"]) == len(again["dims"])
    for one, other in zip(whole["dims"], again["dims"], strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    analysis = DimGrid(head(), Whitening())
    with pytest.raises(AssertionError, match="left sentences of the table out"):
        run(analysis, model, protocol, table, parts[:1])


def test_rows_end_at_the_rank_of_their_fit_set(
    plm: Callable[[str], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A sub-task of 10 pairs spans fewer than 32 dimensions; means of it end with it."""
    model, protocol = plm("bert"), EvalProtocol("x", "all", "subset")
    table = suite(model, (60, 10, 45))
    with caplog.at_level(logging.INFO):
        tables = run(DimGrid(HEADS["first_last"](), Whitening()), model, protocol, table)
    _, callback = single(HEADS["first_last"](), model, protocol, table)
    short = callback.maps["sts12.B"].rank
    assert short < 20
    assert f"k ends at the effective rank: sts12.A 31, sts12.B {short}, stsb 31." in caplog.text
    last: dict[tuple[str, str], int] = {}
    for row in tables["dims"]:
        if row["stage"] == "post":
            last[row["task"], row["subset"]] = row["k"]
    assert last == {
        ("sts12", "A"): 31, ("sts12", "B"): short, ("sts12", ""): short, ("stsb", ""): 31,
        ("avg", ""): short,
    }  # fmt: skip
    assert all(not math.isnan(row["value"]) for row in tables["dims"])


def test_best_k_beside_the_others(plm: Callable[[str], Any]) -> None:
    model, protocol = plm("bert"), EvalProtocol("x", "all", "task")
    tables = run(DimGrid(HEADS["ditto"](), Whitening()), model, protocol, suite(model))
    assert len(tables["dims_best"]) == 3 * 3 * 2 * 2  # tasks, aggregates, stages, metrics
    for best in tables["dims_best"]:
        curve = [
            r
            for r in tables["dims"]
            if not r["subset"] and all(r[c] == best[c] for c in ("task", "aggregate", "metric"))
        ]
        values = [r["value"] for r in curve if r["stage"] == best["stage"]]
        assert best["value"] == max(values)
        assert best["k"] == values.index(max(values)) + 1
        assert (best["full_k"], best["full_value"]) == (len(values), values[-1])
        assert [best["raw_value"]] == [r["value"] for r in curve if r["stage"] == "raw"]
        assert best["published_k"] is None


def test_the_published_k_is_shown_where_it_exists() -> None:
    from whitepool.aggregates import Cell
    from whitepool.analysis.dim_rows import tables

    def cell(values: Any) -> Cell:
        return Cell("stsb", "", "all", 9, np.asarray(values, dtype=float))

    curve = np.r_[np.nan, np.arange(299.0)]
    found = tables(
        {"spearman": [cell([5.0])]},
        {("post", "spearman"): [cell(curve)], ("rotated", "spearman"): [cell(curve * np.nan)]},
        ends={("stsb", ""): 290},
        dim=300,
    )
    post, rotated = found["dims_best"]
    assert (post["k"], post["value"], post["full_k"]) == (290, 288.0, 290)
    assert (post["published_k"], post["published_value"], post["raw_value"]) == (256, 254.0, 5.0)
    assert rotated["k"] is None
    assert math.isnan(rotated["value"])
    assert [row["k"] for row in found["dims"]] == [300, *range(1, 291), *range(1, 291)]


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 90),
)
@settings(max_examples=60, deadline=None)
def test_prefix_cosines_equal_slices(
    seed: int, shapes: list[tuple[int, int]], unit: int, values: int, block: int
) -> None:
    """Whatever the blocks: equal rows tie at 1, zero rows give 0, short sets end in zeros."""
    generator = np.random.default_rng(seed)
    sets = []
    for dim, pairs in shapes:
        z = generator.normal(size=(dim, 12)) * 10.0 ** generator.integers(-3, 4, (dim, 1))
        z[:, 3], z[:, 5] = 0.0, z[:, 6]
        scales = np.stack([np.ones(dim), generator.uniform(0.1, 5, dim)])
        for count in (pairs, pairs // 2):  # the second shares arrays with its neighbour
            sets.append(Pairs(z, scales, generator.integers(0, 12, (count, 2))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefixes, "_PAIRS", unit)
        patch.setattr(prefixes, "_VALUES", values)
        patch.setattr(prefixes, "_BLOCK", block)
        blocks = list(prefix_cosines(sets))
    found = [np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True)]
    for s, cosines_of in zip(sets, found, strict=True):
        assert cosines_of.shape == (2, max(dim for dim, _ in shapes), len(s.pairs))
        assert cosines_of.dtype == np.int64
        assert not cosines_of[:, len(s.coordinates) :].any()
        for stage in (0, 1):
            z = (s.coordinates * np.sqrt(s.scales[stage])[:, None]).T
            for k in range(1, len(s.coordinates) + 1):
                wanted = cosine(z[:, :k], s.pairs)
                assert np.allclose(cosines_of[stage, k - 1], 1e12 * wanted, rtol=0, atol=2.01)
        equal = (s.pairs == 5) | (s.pairs == 6)
        assert (cosines_of[:, : len(s.coordinates), equal.all(1)] == 10**12).all()


def test_without_whitening_only_the_rotation_is_scored(plm: Callable[[str], Any]) -> None:
    model, protocol = plm("bert"), EvalProtocol("x", "all", "task")
    table = suite(model)
    rows = run(DimGrid(HEADS["max"](), None), model, protocol, table)["dims"]
    both = run(DimGrid(HEADS["max"](), Whitening()), model, protocol, table)["dims"]
    assert rows == [row for row in both if row["stage"] != "post"]


@pytest.mark.parametrize("fit_on", ["subset", "suite"])
def test_memory_is_known_before_the_pass(fit_on: FitOn, plm: Callable[[str], Any]) -> None:
    model, protocol = plm("bert"), EvalProtocol("x", "all", fit_on)
    table = suite(model)
    analysis = DimGrid(HEADS["max"](), Whitening())
    analysis.plan(model, protocol, table)
    known = analysis.memory([len(ids) for ids in table.ids])
    run(analysis, model, protocol, table)
    maps = fit_each(Whitening(), analysis._fit_sets.finish(), analysis._names)
    pairs = analysis._coordinates(maps)
    arrays = {id(p.coordinates): p.coordinates for p in pairs}
    cosines_held = sum(x.nbytes for x in next(prefix_cosines(pairs)))
    least = sum(x.nbytes for x in arrays.values()) + cosines_held
    least += sum(8 * m.basis.numel() for m in maps.values()) + analysis._gathered.vectors.nbytes
    assert least < known < 5 * least
    with pytest.raises(UserError, match=r"one pair of sentences needs .* with what is kept to the"):
        plan_chunks(table, fit_on, analysis.memory, least // 2)


def test_what_makes_no_sense_is_refused(plm: Callable[[str], Any]) -> None:
    with pytest.raises(UserError, match=r"scores every k, so whitening.k=256 would do nothing"):
        DimGrid(MaxPooling(), Whitening(256))

    class Other(Whitening):
        pass

    with pytest.raises(UserError, match=r"takes whitening=pca or whitening=off, not Other"):
        DimGrid(MaxPooling(), Other())
    model, protocol = plm("bert"), EvalProtocol("x", "all", "task")
    with pytest.raises(UserError, match="layer 9 does not exist"):
        DimGrid(MaxPooling([9]), None).plan(model, protocol, suite(model))


def test_a_vector_that_is_not_finite_is_named(plm: Callable[[str], Any]) -> None:
    model = plm("bert")

    class Broken(MaxPooling):
        def __call__(self, states: Any) -> torch.Tensor:
            return super().__call__(states) / 0.0

    with pytest.raises(UserError, match=r"the vector of '.+' is not finite"):
        run(DimGrid(Broken(), None), model, EvalProtocol("x", "all", "task"), suite(model))


@pytest.mark.parametrize(
    ("post", "stages"), [(Whitening(), ("rotated", "post")), (None, ("rotated",))]
)
def test_the_shipped_choice_takes_the_head_and_the_map(
    post: Whitening | None, stages: tuple[str, ...]
) -> None:
    config = OmegaConf.load(CONF / "analysis" / "dims.yaml")
    arguments = {k: v for k, v in config.grids.dims.items() if k != "takes"}
    chosen = {"pooling": HEADS["ditto"](), "post": post}
    made = instantiate(arguments)(**{name: chosen[name] for name in config.grids.dims.takes})
    assert isinstance(made, DimGrid)
    assert made.stages == stages
    assert made.needs.diagonals == ((1, 2),)


@pytest.mark.slow
def test_minilm_on_stsb_equals_single_runs_at_every_tenth_k() -> None:
    """82.03 raw is published; its mean has rank 381 of 384, where both curves end."""
    model = FrozenPLM.from_pretrained(asset="all_minilm", name="all_minilm")
    protocol = EvalProtocol("x", "all", "task")
    table = SentenceTable.build(load_sts(["stsb"]), model.tokenize)
    head, batch = LinearPooling(Uniform(), [-1]), 4096
    analysis = DimGrid(head, Whitening())
    tables = run(analysis, model, protocol, table, batch_tokens=batch)
    vectors, callback = single(head, model, protocol, table, batch)
    rows, full = tables["dims"], callback.maps["stsb"]
    assert at(rows, 384, "raw")["stsb", "", "all", "spearman"] == pytest.approx(82.03, abs=0.01)
    assert max(r["k"] for r in rows if r["stage"] != "raw") == full.rank == 381
    for k in (*range(1, 381, 40), 256, 380, 381):
        for stage, affine in (("post", full.first(k)), ("rotated", unscaled(full.first(k)))):
            xs = cosines(table, vectors, {"stsb": affine}, protocol)["post"]
            assert at(rows, k, stage) == pytest.approx(scored(table, stage, xs), abs=1e-9)
    best = next(r for r in tables["dims_best"] if r["stage"] == "post")
    assert best["published_value"] == at(rows, 256, "post")["stsb", "", "all", "spearman"]
