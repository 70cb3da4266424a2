"""``whitening=auto`` against scores and mean cosines computed one sentence at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from scipy import stats

import whitepool
from whitepool.data import PairSet, Task
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.framing import Frame
from whitepool.module import SentenceEncoder
from whitepool.pooling.named import named
from whitepool.recipe import Recipe
from whitepool.training import train
from whitepool.unlabelled import dev_splits, sentences
from whitepool.whitening import Whitening
from whitepool.whitening_choice import LIMIT, choose_whitening, is_auto, settled

from tiny import WORDS
from tiny_suite import CONF, pair_set


def config(*overrides: str) -> Any:
    given = ["trainer=cpu", "trainer.enable_progress_bar=false", "output_dir=out"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("evaluate", overrides=[*given, "whitening=auto", *overrides])


def task(name: str, *, dev: bool) -> Task:
    others = (pair_set(name, "", 60, "dev"), pair_set(name, "", 20, "train"))
    return Task(name, (pair_set(name, "", 80),), others if dev else others[1:])


@pytest.fixture(scope="module")
def encoder(checkpoint: Callable[[str], Path]) -> Any:
    return whitepool.load(checkpoint("bert"), pooling="avg")


def vectors(encoder: Any, texts: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.stack([encoder.encode(text) for text in texts])
    return found.astype(float)


def spearman(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], gold: Any) -> float:
    cosines = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    return float(100 * stats.spearmanr(cosines.round(9), gold).statistic)


def judged(plm: Any, tasks: list[Task], tmp_path: Path, **more: Any) -> Any:
    pooled = SentenceEncoder(plm("bert"), named("avg"))
    given = {"frame": Frame(), "folder": tmp_path, **more}
    return choose_whitening(config(), pooled, Whitening(), tasks, 64, **given)


def test_labels_of_the_dev_split_decide(
    plm: Callable[[str], Any], encoder: Any, tmp_path: Path
) -> None:
    one, other = task("one", dev=True), task("other", dev=True)
    raw, whitened = [], []
    for s in (one.other_splits[0], other.other_splits[0]):
        x, y = vectors(encoder, s.first), vectors(encoder, s.second)
        both = np.concatenate([x, y])
        values, directions = np.linalg.eigh(np.cov(both, rowvar=False))
        keep = values > values.max() * len(values) * np.finfo(float).eps * 1e3
        basis = directions[:, keep] / np.sqrt(values[keep])
        raw.append(spearman(x, y, s.gold))
        whitened.append(spearman((x - both.mean(0)) @ basis, (y - both.mean(0)) @ basis, s.gold))
    got = judged(plm, [one], tmp_path)
    assert got.labels
    assert got.on == "one dev"
    assert got.raw == pytest.approx(raw[0], abs=0.05)
    assert got.other == pytest.approx(whitened[0], abs=0.5)
    assert got.whiten == (whitened[0] > raw[0])
    both = judged(plm, [one, other], tmp_path)
    assert both.raw == pytest.approx(np.mean(raw), abs=0.05)
    assert both.other == pytest.approx(np.mean(whitened), abs=0.5)
    assert both.provenance()["whitening_chosen_on"] == "one dev, other dev"


def test_without_a_dev_split_the_mean_cosine_decides(
    plm: Callable[[str], Any], encoder: Any, tmp_path: Path
) -> None:
    tasks = [task("one", dev=True), task("other", dev=False)]
    texts = list(dict.fromkeys(text for t in tasks for text in t.scored[0].texts()))
    x = vectors(encoder, texts)
    cosines = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for i, a in enumerate(x) for b in x[:i]
    ]
    got = judged(plm, tasks, tmp_path)
    assert not got.labels
    assert got.raw == pytest.approx(100 * np.mean(cosines), abs=1e-3)
    assert got.whiten == (np.mean(cosines) > LIMIT)
    assert got.on == f"{len(texts)} sentences of one test, other test"


def test_labels_are_not_looked_at_where_they_do_not_decide(
    plm: Callable[[str], Any], tmp_path: Path
) -> None:
    one = task("one", dev=False)
    (scored,) = one.scored
    other = replace(one, scored=(replace(scored, gold=np.full(len(scored), np.nan)),))
    assert judged(plm, [one], tmp_path) == judged(plm, [other], tmp_path)


def test_too_little_to_judge_by(plm: Callable[[str], Any], tmp_path: Path) -> None:
    few = Task("few", (pair_set("few", "", 9),))
    with pytest.raises(UserError, match=r"whitening=auto has no dev split and only \d+ sentences"):
        judged(plm, [few], tmp_path)


def test_sentences_are_distinct_and_always_the_same() -> None:
    draw = random.Random(0)
    texts = tuple(" ".join(draw.choices(WORDS, k=8)) for _ in range(1500))
    big = Task("t", (PairSet("t", "", "test", texts, texts, np.zeros(1500), "", ""),))
    some, words = sentences([big])
    assert len(some) == len(set(some)) == 1000
    assert set(some) <= set(texts)
    assert sentences([big])[0] == some
    assert words == "1,000 sentences of t test"


def test_a_dev_split_that_is_scored_does_not_decide() -> None:
    dev = pair_set("t", "", 30, "dev")
    assert dev_splits([Task("t", (dev,), (pair_set("t", "", 9, "test"),))]) == []
    assert dev_splits([Task("t", (pair_set("t", "", 9),), (dev,))]) == [dev]


@pytest.mark.parametrize("whiten", [True, False])
def test_the_configuration_says_what_was_chosen(whiten: bool) -> None:
    given = config("whitening.k=5")
    assert is_auto(given)
    got = settled(given, whiten=whiten)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        name = "pca" if whiten else "off"
        like = compose(
            "evaluate",
            overrides=["output_dir=out", f"whitening={name}", *["whitening.k=5"][: int(whiten)]],
        )
    assert got.whitening == like.whitening
    assert not is_auto(got)


def run_config(script: str, checkpoint: Path, folder: Path, *overrides: str) -> Any:
    given = [f"output_dir={folder}", "trainer=cpu", "trainer.enable_progress_bar=false"]
    given += ["model=bert", f"model.path={checkpoint}", "logger=none", "figures=false"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(script, overrides=[*given, "whitening=auto", *overrides])


def test_evaluate_keeps_the_choices(
    checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path
) -> None:
    data = ["data=pairs", f"data.path={pairs}", "bootstrap=0"]
    ditto = ["pooling=ditto", "pooling.head=unsupervised"]
    evaluate(run_config("evaluate", checkpoint("bert"), tmp_path, *data, *ditto))
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    chosen = content["chosen"]
    name = chosen["whitening_chosen"]
    assert chosen["whitening_chosen_by"] == "mean cosine"
    assert chosen["whitening_chosen_limit"] == 100 * LIMIT
    assert content["recipe"]["whitening"]["name"] == name
    assert (content["fit"] is not None) == (name == "pca")
    assert content["recipe"]["pooling"]["block"] in range(3)
    recipe = Recipe.load(tmp_path / "recipe")
    assert {key: recipe.provenance[key] for key in chosen} == chosen
    assert (recipe.post is not None) == (name == "pca")


@pytest.mark.parametrize("limit", [-1.0, 1.0])
def test_train_keeps_the_choice(
    checkpoint: Callable[[str], Path],
    pairs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: float,
) -> None:
    monkeypatch.setattr("whitepool.whitening_choice.LIMIT", limit)
    data = ["data=pairs", f"data.path={pairs}", "corpus=pairs"]
    train(run_config("train", checkpoint("bert"), tmp_path, *data))
    recipe = Recipe.load(tmp_path / "recipe")
    assert str(recipe.provenance["whitening_chosen_on"]).endswith(" texts of corpus pairs")
    assert recipe.provenance["whitening_chosen"] == ("pca" if limit < 0 else "off")
    assert (recipe.post is not None) == (limit < 0)


def test_grids_show_both(checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path) -> None:
    data = ["data=pairs", f"data.path={pairs}", "analysis=dims"]
    with pytest.raises(UserError, match=r"analysis=dims shows raw and whitened scores beside"):
        evaluate(run_config("evaluate", checkpoint("bert"), tmp_path, *data))
