"""The grid of heads against single runs, the formula, and its own invariances."""

from __future__ import annotations

import csv
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from whitepool.analysis.head_cosines import HeadCosines
from whitepool.analysis.heads import HeadGrid
from whitepool.data import PairSet, Task, load_sts
from whitepool.data.datamodule import plan_batches
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import AttentionDiagonal, LinearPooling
from whitepool.protocol import EvalProtocol
from whitepool.report import describe
from whitepool.scores import cosines, score
from whitepool.similarity import cosine
from whitepool.states import Batch, Needs, Tokens, pad

from tiny import WORDS

LISTS = ([-1], [0, -1], [1, -1])
FAMILIES = ("bert", "mpnet", "gpt2")
PROTOCOL = EvalProtocol("simcse", "all", "task")


def pair_set(task: str, split: str, n: int, seed: int, subset: str = "") -> PairSet:
    """Random sentences of the tiny vocabulary, with a pair of equal texts and a blank."""
    generator = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(generator.choice(WORDS, size=generator.integers(1, 14)))

    pairs = [(text(), text()) for _ in range(n)]
    pairs[1] = pairs[0][::-1]
    pairs[2] = (pairs[2][0], pairs[2][0])
    pairs[3] = (pairs[3][0], "  ")
    gold = generator.integers(0, 11, size=n) / 2
    return PairSet(task, subset, split, *zip(*pairs, strict=True), gold, "made", "0")


TASKS = (
    Task("stsb", (pair_set("stsb", "test", 40, 0),), (pair_set("stsb", "dev", 30, 1),)),
    Task(
        "sts12",
        (pair_set("sts12", "test", 25, 2, "A"), pair_set("sts12", "test", 25, 3, "B")),
    ),
)


def build(plm: FrozenPLM, grid: HeadGrid, tasks: Sequence[Task] = TASKS) -> SentenceTable:
    return SentenceTable.build(tasks, plm.tokenize, select=grid.select(tasks))


def chunked(table: SentenceTable, n: int) -> list[SentenceTable]:
    """The table cut into n tables, each with every n-th pair of every set and their sentences."""
    tables = []
    for part in range(n):
        sets = []
        for s in (*table.scored, *table.select):
            mine = np.arange(len(s.pairs)) % n == part
            sets.append(replace(s, pairs=s.pairs[mine], gold=s.gold[mine]))
        rows, local = np.unique(np.concatenate([s.pairs for s in sets]), return_inverse=True)
        ends = np.cumsum([len(s.pairs) for s in sets])[:-1]
        sets = [
            replace(s, pairs=p)
            for s, p in zip(sets, np.split(local.reshape(-1, 2), ends), strict=True)
        ]
        tables.append(
            replace(
                table,
                ids=tuple(table.ids[r] for r in rows),
                texts=tuple(table.texts[r] for r in rows),
                scored=tuple(sets[: len(table.scored)]),
                select=tuple(sets[len(table.scored) :]),
            )
        )
    return tables


def walk(
    grid: HeadGrid,
    plm: FrozenPLM,
    table: SentenceTable,
    protocol: EvalProtocol = PROTOCOL,
    chunks: int = 1,
    budget: int = 256,
) -> HeadGrid:
    """The life of an analysis."""
    grid.plan(plm, protocol, table)
    for chunk in chunked(table, chunks) if chunks > 1 else [table]:
        grid.start(chunk)
        for rows in plan_batches([len(i) for i in chunk.ids], budget):
            flat = torch.tensor([token for row in rows for token in chunk.ids[row]])
            batch = Batch(torch.tensor(rows), flat, tuple(len(chunk.ids[row]) for row in rows))
            for some, states in plm.states(batch, grid.needs):
                grid.update(some, states)
        grid.finish()
    return grid


@torch.no_grad()
def vectors(plm: FrozenPLM, table: SentenceTable, grid: HeadGrid) -> Any:
    """What single runs of every recipe give, (recipe, row, dim), float32."""
    heads = [LinearPooling(AttentionDiagonal(*r[:2]), r.layers) for r in grid.recipes]
    result = np.zeros((len(heads), len(table), 32), dtype=np.float32)
    for rows in plan_batches([len(i) for i in table.ids], 256):
        states = plm(pad([table.ids[row] for row in rows], plm.pad_id), grid.needs)
        for vector, head in zip(result, heads, strict=True):
            vector[rows] = head(states).numpy()
    return result


@pytest.mark.parametrize("family", FAMILIES)
def test_every_head_equals_its_single_run(family: str, plm: Any) -> None:
    model = plm(family)
    grid = HeadGrid(LISTS)
    table = build(model, grid)
    rows = walk(grid, model, table).tables()["heads"]
    assert len(grid.recipes) == 3 * model.depth * model.heads
    found = {
        (r["block"], r["head"], r["layers"], r["task"], r["subset"], r["aggregate"]): r
        for r in rows
        if r["split"] == "test"
    }
    compared = 0
    singles = vectors(model, table, grid)
    for recipe, single in zip(grid.recipes, singles, strict=True):
        by_stage = cosines(table, single, None, PROTOCOL)
        for row in score(table.scored, by_stage, samples=0).rows:
            if row.metric == "spearman":
                layers = "[" + ",".join(map(str, recipe.layers)) + "]"
                mine = found[(*recipe[:2], layers, row.task, row.subset, row.aggregate)]
                assert mine["value"] == pytest.approx(row.value, abs=1e-4), recipe
                assert mine["n"] == row.n
                compared += 1
    assert compared == len(found) == len(grid.recipes) * 11


@pytest.mark.parametrize("family", FAMILIES)
def test_cosines_equal_the_formula(family: str, plm: Any) -> None:
    """A plain loop in float64: v = sum_t d_t mean_l h[l, t], then the cosine."""
    model = plm(family)
    table = build(model, HeadGrid(LISTS), TASKS[:1])
    lists = tuple(tuple(x % (model.depth + 1) for x in layers) for layers in LISTS)
    heads = [(block, head) for block in range(model.depth) for head in range(model.heads)]
    kept = HeadCosines([len(i) for i in table.ids], lists, heads)
    needs = Needs(tuple({x for layers in lists for x in layers}), tuple(heads))
    wanted = np.zeros((len(lists) * len(heads), len(table), 32))
    for row, ids in enumerate(table.ids):
        if not ids:
            continue
        states = model(pad([ids], model.pad_id), needs)
        kept.put(torch.tensor([row]), states)
        hidden = {layer: h[0].double().numpy() for layer, h in states.hidden.items()}
        recipe = 0
        for layers in lists:
            for head in heads:
                for t, weight in enumerate(states.diagonals[head][0].tolist()):
                    for layer in layers:
                        wanted[recipe, row] += weight * hidden[layer][t] / len(layers)
                recipe += 1
    pairs = np.concatenate([s.pairs for s in table.scored])
    found = kept.of(pairs)
    for vector, cosines_found in zip(wanted, found, strict=True):
        assert np.abs(cosine(vector, pairs) - cosines_found).max() < 5e-12


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_equal_pairs_tie_and_blanks_are_zero(chunks: int, plm: Any) -> None:
    """Pairs in different chunks too, whose states come from different batches."""
    model = plm("bert")
    grid = HeadGrid(LISTS)
    table = build(model, grid)
    walk(grid, model, table, chunks=chunks)
    first = table.scored[0]
    order = np.argsort(np.arange(len(first.pairs)) % chunks, kind="stable")
    found = grid._whole([first])[1][0][:, np.argsort(order)]
    assert np.array_equal(found[:, 0], found[:, 1])  # the same pair the other way round
    assert (found[:, 2] == 1).all()
    assert (found[:, 3] == 0).all()
    assert np.isfinite(found).all()


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_order_batches_and_padding_do_not_matter(plm: Any, data: st.DataObject) -> None:
    model = plm("bert")
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
    texts = data.draw(st.lists(sentence, min_size=2, max_size=6, unique=True))
    ids = model.tokenize(texts).ids
    heads = [(0, 1), (2, 3)]
    needs = Needs((0, 3), tuple(heads))
    pairs = np.array([(i, j) for i in range(len(ids)) for j in range(len(ids))])
    alone = HeadCosines([len(i) for i in ids], [(3,), (0, 3)], heads)
    for row in range(len(ids)):
        alone.put(torch.tensor([row]), model(pad([ids[row]], 0), needs))
    together = HeadCosines([len(i) for i in ids], [(3,), (0, 3)], heads)
    order = data.draw(st.permutations(range(len(ids))))
    cut = data.draw(st.integers(1, len(ids)))
    for rows in filter(None, (order[:cut], order[cut:])):
        tokens = pad([ids[r] for r in rows], 0, length=14 + data.draw(st.integers(0, 5)))
        if data.draw(st.booleans()):
            tokens = Tokens(tokens.ids.flip(1), tokens.mask.flip(1))
            lengths = tokens.mask.sum(1)
            for i, n in enumerate(lengths):  # the words in their order, padding on the left
                tokens.ids[i, -int(n) :] = torch.tensor(ids[rows[i]])
        together.put(torch.tensor(rows), model(tokens, needs))
    shuffled = data.draw(st.permutations(range(len(pairs))))
    flipped = pairs[shuffled][:, ::-1]
    assert np.abs(together.of(flipped) - alone.of(pairs)[:, shuffled]).max() < 2e-6


@pytest.mark.parametrize("chunks", [2, 3])
def test_chunks_change_nothing(chunks: int, plm: Any) -> None:
    model = plm("bert")
    whole, parts = HeadGrid(LISTS), HeadGrid(LISTS)
    table = build(model, whole)
    wanted = walk(whole, model, table).tables()
    found = walk(parts, model, table, chunks=chunks).tables()
    for name, rows in wanted.items():
        for a, b in zip(rows, found[name], strict=True):
            numbers = [k for k in a if isinstance(a[k], float)]
            assert {k: v for k, v in a.items() if k not in numbers} == {
                k: v for k, v in b.items() if k not in numbers
            }
            assert [b[k] for k in numbers] == pytest.approx([a[k] for k in numbers], abs=1e-4)


def test_a_lost_pair_is_noticed(plm: Any) -> None:
    model = plm("bert")
    grid = HeadGrid(LISTS)
    table = build(model, grid)
    walk(grid, model, table, chunks=2)
    grid._pieces["test", "stsb"].pop()
    with pytest.raises(RuntimeError, match=r"stsb: \d+ of 40 pairs"):
        grid.tables()


def test_memory_is_what_is_kept(plm: Any) -> None:
    model = plm("bert")
    grid = HeadGrid([[-1], [0, -1], [3]])
    table = build(model, grid)
    lengths = [len(ids) for ids in table.ids]
    walk(grid, model, table)
    grid.start(table)
    for rows in plan_batches(lengths, 256):
        tokens = pad([table.ids[row] for row in rows], model.pad_id)
        grid.update(torch.tensor(rows), model(tokens, grid.needs))
    kept = grid._cosines
    tensors = (*kept.tokens.hidden.values(), kept.tokens.diagonals)
    bytes_kept = sum(t.nbytes - t[-1:].nbytes for t in tensors) + kept._norms.nbytes
    results = 8 * len(grid.recipes) * sum(len(s.pairs) for s in (*table.scored, *table.select))
    assert grid.memory(lengths) == bytes_kept + results
    assert len(kept.tokens.hidden) == 2  # -1 and 3 are one layer


def test_heads_are_chosen_on_dev_and_reported_on_test(
    plm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = plm("bert")
    grid = HeadGrid([[-1], [0, -1]], published_block=1, published_head=2)
    caplog.set_level(logging.INFO)
    table = build(model, grid)
    assert [(s.task, s.split) for s in table.select] == [("stsb", "dev")]
    assert "No dev split of sts12: chosen on STS-B's dev split." in caplog.text
    tables = walk(grid, model, table).tables()
    best, every = tables["heads_best"], tables["heads"]

    def values(split: str, task: str) -> dict[Any, float]:
        return {
            (r["block"], r["head"], r["layers"]): r["value"]
            for r in every
            if (r["split"], r["task"], r["aggregate"]) == (split, task, "all")
        }

    dev = values("dev", "stsb")
    assert len(best) == 3 * 2 * 2  # stsb, sts12, avg; two lists; selected and published
    for row in best:
        test = values("test", row["task"])
        recipe = (row["block"], row["head"], row["layers"])
        of_list = {key: dev[key] for key in dev if key[2] == row["layers"]}
        if row["choice"] == "selected":
            assert recipe == max(of_list, key=lambda key: of_list[key])
        else:
            assert recipe[:2] == (1, 2)
        assert (row["dev"], row["value"]) == (dev[recipe], test[recipe])
        assert row["dev_rank"] == 1 + sum(v > dev[recipe] for v in dev.values())
        assert row["rank"] == 1 + sum(v > test[recipe] for v in test.values())
        oracle = max(test[key] for key in of_list)
        assert row["oracle_value_not_for_selection"] == oracle
        key = (
            row["oracle_block_not_for_selection"],
            row["oracle_head_not_for_selection"],
            row["layers"],
        )
        assert test[key] == oracle
        assert (row["dev_set"], row["recipes"], row["dtype"]) == ("stsb dev", 24, "float32")
    assert "published head 1,2 (block, head)" in caplog.text


def test_the_winners_of_a_short_type_are_confirmed(
    checkpoint: Any, plm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    exact = plm("bert")
    short = FrozenPLM.from_pretrained(path=checkpoint("bert"), dtype="bfloat16")
    grid = HeadGrid([[-1], [0, -1]], published_block=1, published_head=2)
    table = build(short, grid)
    walk(grid, short, table)
    assert grid.tables()["heads_best"][0]["dtype"] == "bfloat16"
    assert "Heads were chosen in bfloat16" in caplog.text
    again = walk(grid.confirmation(), exact, table)
    assert (1, 2) in again.heads
    assert len(again.heads) < len(grid.heads)
    caplog.set_level(logging.INFO)
    grid.confirm(again)
    confirmed = grid.tables()["heads_best"]
    assert "Searched in bfloat16; the heads below are confirmed in float32." in caplog.text
    full = walk(HeadGrid([[-1], [0, -1]]), exact, table).tables()["heads"]
    for row in confirmed:
        wanted = [
            r["value"]
            for r in full
            if (r["block"], r["head"], r["layers"]) == (row["block"], row["head"], row["layers"])
            and (r["task"], r["aggregate"], r["split"]) == (row["task"], "all", "test")
        ]
        assert row["dtype"] == "float32"
        assert row["value"] == pytest.approx(wanted[0], abs=1e-4)


def test_what_the_model_has_not_is_refused(
    plm: Any, checkpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = plm("bert")
    grid = HeadGrid([[-1, 4]])
    table = build(model, grid)
    with pytest.raises(UserError, match="layer 4 does not exist"):
        grid.plan(model, PROTOCOL, table)
    with pytest.raises(UserError, match="has 16 dimensions and its layers 32"):
        HeadGrid([["static", -1]]).plan(plm("electra"), PROTOCOL, table)
    HeadGrid([["static"]], published_block=9, published_head=0).plan(
        plm("electra"), PROTOCOL, table
    )
    assert "This model has no block and head (9, 0), the published one." in caplog.text
    for layers in ([], [-1], [[]], [[-1], []]):
        with pytest.raises(UserError, match="give a list of lists of layers"):
            HeadGrid(layers)  # type: ignore[arg-type]


def test_states_that_are_not_finite_are_named(checkpoint: Any) -> None:
    broken = FrozenPLM.from_pretrained(path=checkpoint("bert"))
    with torch.no_grad():
        broken.model.get_input_embeddings().weight[broken.tokenize(["guitar"]).ids[0][1]] = np.nan
    grid = HeadGrid()
    table = build(broken, grid)
    with pytest.raises(UserError, match=r"the states of '.*guitar.*' are not finite"):
        walk(grid, broken, table)


def test_the_shipped_yaml_builds_it() -> None:
    folder = Path(__file__).resolve().parents[2] / "conf"
    config = OmegaConf.create(
        {
            "model": OmegaConf.load(folder / "model" / "bert.yaml"),
            "analysis": OmegaConf.load(folder / "analysis" / "heads.yaml"),
        }
    )
    grid = instantiate(config.analysis.grids.heads, _convert_="all")
    assert isinstance(grid, HeadGrid)
    assert grid.lists == ((-1,), (0, -1))
    assert grid.published == (0, 9)


def test_scored_sets_know_their_split(plm: Any) -> None:
    table = build(plm("bert"), HeadGrid())
    assert [(s.name, s.split) for s in table.scored] == [
        ("stsb", "test"),
        ("sts12.A", "test"),
        ("sts12.B", "test"),
    ]
    assert isinstance(table.select[0], ScoredSet)
    (selecting,) = describe(table)["selected_on"]
    assert selecting == {
        **{"task": "stsb", "subset": "", "split": "dev", "pairs": 30, "unjudged": 0},
        **{"source": "made", "sha256": "0"},
    }
    assert table.sentences == 2 * (40 + 25 + 25 + 30)
    assert table.blank == 4
    assert sum(table.fit_sets("suite")["suite"]) == 2 * 90 - 3  # dev is not fitted on


@pytest.mark.slow
def test_one_pass_gives_the_reference_values(shared: Path) -> None:
    """The rows of Ditto's own code: STS-B and STS16, and STS-B's dev split, which chooses."""
    with (shared / "reference" / "reference.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["model"], row["pooling"], row["whitening"]) == ("all_minilm", "ditto", "off")
            and (row["subset"] or row["task"]).startswith(("stsb", "sts16"))
        ]
    plm = FrozenPLM.from_pretrained(asset="all_minilm")
    grid = HeadGrid()
    tasks = load_sts(["stsb", "sts16"], root=shared / "sts" / "whiteningbert")
    tables = walk(grid, plm, build(plm, grid, tasks), budget=4096).tables()
    found = {
        (r["block"], r["head"], r["layers"], r["split"], r["task"], r["subset"], r["aggregate"]): r[
            "value"
        ]
        for r in tables["heads"]
    }
    assert len(rows) >= 40
    for row in rows:
        name = row["subset"] or row["task"]
        split = "dev" if name.endswith(".dev") else "test"
        task, _, subset = name.removesuffix(".dev").partition(".")
        aggregate = row["aggregate"] if row["aggregate"] in ("mean", "wmean") else "all"
        value = found[
            int(row["block"]),
            int(row["head"]),
            f"[{row['layers']}]",
            split,
            task,
            subset,
            "" if subset else aggregate,
        ]
        assert value == pytest.approx(float(row["value"]), abs=float(row["tolerance"])), row
    assert {r["dev_set"] for r in tables["heads_best"]} == {"stsb dev"}
