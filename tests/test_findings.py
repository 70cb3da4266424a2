"""`python -m benchmarks findings`: its criteria against loops, and its quick form."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import whitepool
from benchmarks import models, sentences
from benchmarks.__main__ import main
from benchmarks.finding_tables import claims
from benchmarks.findings import measure
from benchmarks.head_criteria import own_half, tfidf_cosines
from whitepool.plm import FrozenPLM
from whitepool.pseudo_gold import CRITERION, pseudo_gold
from whitepool.unlabelled import sentences as unlabelled

TOKENS = st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=8)


@given(TOKENS)
def test_tfidf_cosines(ids: list[list[int]]) -> None:
    n, words = len(ids), {1, 2, 4, 5, 6}
    idf = {w: math.log((1 + n) / (1 + sum(w in some for some in ids))) + 1 for w in range(7)}
    x = np.array([[some.count(w) * idf[w] * (w in words) for w in range(7)] for some in ids])
    norm = np.linalg.norm(x, axis=1)
    norm[norm == 0] = 1
    statistics: Any = SimpleNamespace(
        idf=torch.tensor([idf[w] for w in range(7)]),
        word=torch.tensor([w in words for w in range(7)]),
    )
    expected = (x @ x.T) / np.outer(norm, norm)
    assert tfidf_cosines(ids, statistics) == pytest.approx(expected, abs=1e-6)


def test_own_half() -> None:
    one = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    other = torch.tensor([[1.0, 0.1], [0.0, 1.0], [-1.0, -1.0]])
    assert own_half(one, other) == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    pairs = sentences.made_up().scored[0]
    folder = models.folder("tiny", tmp_path_factory.mktemp("tiny"), list(pairs.texts()))
    plm = FrozenPLM.from_pretrained(path=folder, name="tiny")
    return folder, pairs, measure(plm, pairs, pairs, 4096)


def test_values_are_those_of_single_runs(made_up: tuple[Path, Any, Any]) -> None:
    folder, pairs, found = made_up
    mean = whitepool.load(folder, pooling="first_last_0")
    texts, _ = unlabelled([SimpleNamespace(other_splits=(), scored=(pairs,), name="made_up")])  # type: ignore[list-item]
    gold = pseudo_gold(texts, mean.encode(texts))
    for place in (0, 5, 11):
        block, head = found.heads.names[place]
        ditto = whitepool.load(folder, pooling="ditto", block=block, head=head)

        def score(first: Any, second: Any, y: Any, encoder: Any = ditto) -> float:
            cosines = encoder.similarity_pairwise(encoder.encode(first), encoder.encode(second))
            return float(100 * stats.spearmanr(cosines, y).statistic)

        own = score(pairs.first, pairs.second, pairs.gold)
        assert found.heads.dev[place] == pytest.approx(own, abs=0.1)
        assert found.heads.test[place] == pytest.approx(own, abs=0.1)
        made = score(gold.first, gold.second, gold.gold)
        assert found.heads.criteria[CRITERION][place] == pytest.approx(made, abs=1.0)
    raw = found.vectors["layers 0, last"].test[0]
    single = mean.similarity_pairwise(mean.encode(pairs.first), mean.encode(pairs.second))
    assert raw == pytest.approx(single, abs=1e-5)


def test_claims_compare_what_they_say(made_up: tuple[Path, Any, Any]) -> None:
    _, pairs, found = made_up
    (row,) = [row for row in claims(found, 20) if row["claim"] == "1+last - last"]
    one, last = (
        100 * stats.spearmanr(found.vectors[name].test[0], pairs.gold).statistic
        for name in ("layers 1, last", "layer 3")
    )
    assert float(row["than"]) == pytest.approx(last, abs=0.06)
    assert float(row["difference"].split()[0]) == pytest.approx(one - last, abs=0.06)


def test_the_quick_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["findings", "--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    (heads,) = found["tables"]["heads"]
    assert heads["model"] == "tiny"
    assert heads["heads"] == "12"
    assert {CRITERION, "tf-idf cosines", "idf", "isotropy", "halves"} < set(heads)
    assert "| tiny" in capsys.readouterr().out
