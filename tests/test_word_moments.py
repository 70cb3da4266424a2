"""Zipfian whitening: moments of words against a plain loop, and the paths that fit on them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import whitepool
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.fitting import fit_each
from whitepool.maps import Zipfian
from whitepool.pooling import (
    AttentionDiagonal,
    FirstToken,
    Idf,
    LinearPooling,
    MaxPooling,
    Uniform,
    Usif,
    VocabularyWeights,
    Words,
)
from whitepool.recipe import Recipe
from whitepool.whitening import Whitening, load_maps
from whitepool.word_moments import check_words, counted, moments_of_fit_sets, word_moments

from tiny_suite import composed, load

TEXTS = ["the dog runs", "the the cat eats", "a zebra is in the park", "two dog eats food", "a man"]


def frequencies(model: Any, texts: list[str]) -> dict[int, int]:
    special = {model.tokenizer.cls_token_id, model.tokenizer.sep_token_id}
    ids = (i for sequence in model.tokenize(texts).ids for i in sequence if i not in special)
    return Counter(ids)


def zipfian(table: np.ndarray, times: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and whitening matrix of the paper's algorithm, by loops and an SVD."""
    total = sum(times.values())
    mean = sum(n / total * table[i] for i, n in times.items())
    rows = np.stack([np.sqrt(n / total) * (table[i] - mean) for i, n in times.items()])
    _, singular, axes = np.linalg.svd(rows, full_matrices=False)
    kept = singular > 1e-7 * singular[0]
    return mean, axes[kept].T / singular[kept]


@pytest.mark.parametrize("head", ["static_words", "weighted"])
def test_a_sentence_is_the_mean_of_its_whitened_words(
    plm: Callable[[str], Any], checkpoint: Callable[[str], Path], head: str
) -> None:
    model = plm("bert")
    table = model.model.get_input_embeddings().weight.detach().double().numpy()
    mean, whiten = zipfian(table, frequencies(model, TEXTS))
    vocabulary = len(plm("bert").tokenizer)
    weighed = VocabularyWeights(torch.arange(vocabulary, dtype=torch.float64) % 3)
    tokens = Words() if head == "static_words" else weighed
    pooling = LinearPooling(tokens, ["static"])
    encoder = whitepool.load(
        checkpoint("bert"), pooling=pooling, whitening="zipfian", device="cpu"
    ).fit(TEXTS)
    found = encoder.encode(TEXTS).astype(np.float64)
    wanted = []
    for ids in model.tokenize(TEXTS).ids:
        ((_, states),) = model.states(_batch(ids), pooling.needs)
        weights = tokens(states)[0].double().numpy()
        wanted.append(
            sum(w * ((table[i] - mean) @ whiten) for w, i in zip(weights, ids, strict=True))
        )
    scale = np.sqrt(1 - 1 / sum(frequencies(model, TEXTS).values()))  # n - 1 here, n in the paper
    wanted = scale * np.stack(wanted)
    assert np.allclose(found @ found.T, wanted @ wanted.T, atol=1e-4)


def _batch(ids: Any) -> Any:
    from whitepool.states import Batch

    return Batch(torch.tensor([0]), torch.tensor(ids), (len(ids),))


def test_counts_and_moments(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    ids = model.tokenize(TEXTS).ids
    counts = counted(model, ids, [1, 2, 0, 1, 3])
    repeated = [TEXTS[i] for i in (0, 1, 1, 3, 4, 4, 4)]
    times = frequencies(model, repeated)
    assert {int(i): int(counts[i]) for i in counts.nonzero()} == times
    moments = word_moments(model, counts)
    table = model.model.get_input_embeddings().weight.detach().double().numpy()
    words = np.stack([table[i] for i, n in times.items() for _ in range(n)])
    assert moments.count == len(words)
    assert np.allclose(moments.mean.numpy(), words.mean(0), atol=1e-12)
    assert np.allclose(moments.covariance().numpy(), np.cov(words.T), atol=1e-12)


def test_fit_sets(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    ids = model.tokenize([*TEXTS, " "]).ids
    counts = {"one": np.array([1, 1, 0, 0, 0, 0]), "other": np.array([0, 0, 1, 1, 5, 2])}
    found = moments_of_fit_sets(model, ids, counts)
    assert found["one"].count == 7
    assert found["other"].count == 6 + 4 + 10
    nothing = {"none": np.zeros(6, dtype=np.int64)}
    with pytest.raises(UserError, match="fit set none: no sentence of it has any text"):
        fit_each(Zipfian(), moments_of_fit_sets(model, ids, nothing), nothing)


def rows(folder: Path) -> dict[tuple[str, ...], float]:
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        return {tuple(list(row.values())[:5]): float(row["value"]) for row in csv.DictReader(file)}


def test_a_run_and_its_recipe(
    checkpoint: Callable[[str], Path], plm: Callable[[str], Any], tmp_path: Path
) -> None:
    """The run's score by scipy, its map by the loop, its recipe's scores, from vectors reused."""
    zip_ = ["pooling=static_words", "whitening=zipfian", "whitening.fit_on=suite", "cache=off"]
    evaluate(composed(checkpoint("bert"), tmp_path / "run", *zip_))
    maps, _ = load_maps(tmp_path / "run" / "whitening.safetensors")
    sets = [s for task in load() for s in task.scored]
    texts = [text for s in sets for text in (*s.first, *s.second) if text.strip()]
    model = plm("bert")
    table = model.model.get_input_embeddings().weight.detach().double().numpy()
    mean, whiten = zipfian(table, frequencies(model, texts))
    affine = maps["suite"]
    assert affine.count == sum(frequencies(model, texts).values())
    assert np.allclose(affine.mean.numpy(), mean, atol=1e-9)
    scale = 1 - 1 / affine.count
    basis = affine.basis.numpy()
    assert np.allclose(basis @ basis.T, scale * whiten @ whiten.T, rtol=1e-6)
    recipe = Recipe.load(tmp_path / "run" / "recipe")
    assert recipe.post is not None
    assert recipe.post.kind == "zipfian"
    encoder = whitepool.Encoder.from_recipe(recipe)
    mine = next(s for s in sets if s.task == "mine")
    a, b = encoder.encode(mine.first), encoder.encode(mine.second)
    wanted = 100 * stats.spearmanr(encoder.similarity_pairwise(a, b).round(6), mine.gold).statistic
    found = rows(tmp_path / "run")
    assert found["mine", "", "all", "post", "spearman"] == pytest.approx(wanted, abs=0.3)
    evaluate(composed(checkpoint("bert"), tmp_path / "again", f"recipe={tmp_path}/run/recipe"))
    assert rows(tmp_path / "again") == found
    content = json.loads((tmp_path / "again" / "results.json").read_text(encoding="utf-8"))
    assert content["fit"]["from_recipe"]


def test_reused_vectors_give_the_same_map(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    zip_ = ["pooling=static_words", "whitening=zipfian"]
    for name in ("first", "second"):
        evaluate(composed(checkpoint("bert"), tmp_path / name, *zip_))
    content = json.loads((tmp_path / "second" / "results.json").read_text(encoding="utf-8"))
    assert content["vectors"]["reused"]
    assert rows(tmp_path / "first") == rows(tmp_path / "second")


def test_heads_that_are_no_mean_of_words() -> None:
    for head in (
        LinearPooling(Words(), [-1]),
        LinearPooling(Words(), ["static", 0]),
        MaxPooling(["static"]),
    ):
        with pytest.raises(UserError, match=r"whitening=zipfian whitens word vectors and the head"):
            check_words(Zipfian(), head)
        check_words(Whitening(), head)
    for tokens in (Uniform(), AttentionDiagonal(0, 0), FirstToken()):
        with pytest.raises(UserError, match=r"averages special tokens too: use pooling=static_wo"):
            check_words(Zipfian(), LinearPooling(tokens, ["static"]))
    for tokens in (Words(), Idf(), Usif(), VocabularyWeights(torch.ones(3))):
        check_words(Zipfian(), LinearPooling(tokens, ["static"]))


def test_wrong_heads_are_refused_before_work_is_done(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    for overrides, message in (
        (["whitening=zipfian"], "use pooling=static"),
        (["whitening=zipfian", "pooling=static_words", "analysis=layers"], "is fitted on words"),
        (["whitening=zca", "analysis=table1"], "takes whitening=pca or whitening=off, not Zca"),
        (["whitening=zca", "analysis=dims"], "takes whitening=pca or whitening=off, not Zca"),
    ):
        with pytest.raises(UserError, match=message):
            evaluate(composed(checkpoint("bert"), tmp_path, *overrides))
    with pytest.raises(UserError, match="use pooling=static"):
        whitepool.load(checkpoint("bert"), whitening="zipfian", device="cpu")


@pytest.mark.slow
def test_maps_of_word_vectors_do_what_their_papers_say() -> None:
    """On all-MiniLM's word embeddings, STS-B test: benchmarks/methods.md has the numbers."""
    from whitepool.data import load_sts

    ((scored,),) = (task.scored for task in load_sts(["stsb"]))
    sentences = [*scored.first, *scored.second]
    found = {}
    for pooling, whitening in (
        ("static", None),
        ("static_words", None),
        ("static_words", "remove_top"),
        ("static_words", "zipfian"),
    ):
        encoder = whitepool.load("all_minilm", pooling=pooling, whitening=whitening, device="cpu")
        encoder = encoder.fit(sentences) if whitening else encoder
        a, b = encoder.encode(scored.first), encoder.encode(scored.second)
        cosines = encoder.similarity_pairwise(a, b)
        found[pooling, whitening] = 100 * stats.spearmanr(cosines, scored.gold).statistic
    assert found["static_words", "remove_top"] > found["static_words", None] + 15
    assert found["static_words", "zipfian"] > found["static", None] + 15
    assert found["static_words", "zipfian"] == pytest.approx(72.1, abs=0.1)
