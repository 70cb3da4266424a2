"""Every head of conf/pooling on a tiny model: encoded, kept as a recipe, and encoded again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.utils import instantiate
from test_vocabulary import corpus

import whitepool
from test_conf import choices, composed
from test_word_moments import rows
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.from_config import frame_of, options
from whitepool.plm import FrozenPLM
from whitepool.pooling.estimated import is_estimated
from whitepool.pooling.named import NAMES, named
from whitepool.pooling.named import frame_of as frame_by_name
from whitepool.pooling.spec import describe
from whitepool.recipe import Recipe
from whitepool.token_counts import with_corpus

import tiny_suite

TEXTS = ["a dog runs", "the cat", "a man eats the food in the park", "not a guitar ."]
DECODERS = ("prompteol", "prompt_cot", "prompt_ke", "echo", "weighted_mean", "last_token")
SETTINGS = {"ditto": ["pooling.block=0", "pooling.head=1"], "sbert_wk": ["pooling.start=0"]}


@pytest.mark.parametrize("pooling", choices("pooling"))
def test_a_head_survives_its_recipe(
    masked: Callable[[str], Path], tmp_path: Path, pooling: str
) -> None:
    folder = masked("gemma3" if pooling in DECODERS else "bert")
    config = composed(f"pooling={pooling}", *SETTINGS.get(pooling, []))
    head = instantiate(options(config.pooling, "pooling"), _convert_="all")
    frame = frame_of(config, head)
    if is_estimated(head):
        texts = ["the dog", "the cat", "the man", "the park", "the", "a guitar", "a", "food runs"]
        plm = FrozenPLM.from_pretrained(path=folder)
        head, _ = with_corpus(head, corpus(*texts), plm, 64, 9, frame)
    if pooling == "pooler":
        folder = masked("bert")
    encoder = whitepool.load(
        folder, pooling=head, template=frame.template, full_stop=frame.full_stop, device="cpu"
    )
    wanted = encoder.encode(TEXTS)
    assert np.isfinite(wanted).all()
    assert np.linalg.norm(wanted[0] - wanted[2]) > 0
    again = whitepool.load(encoder.save(tmp_path / "recipe"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), wanted)
    recipe = Recipe.load(tmp_path / "recipe")
    assert (recipe.template, recipe.full_stop) == (frame.template, frame.full_stop)
    assert describe(recipe.head)[0] == describe(head)[0]


@pytest.mark.parametrize("pooling", [name for name in choices("pooling") if name in NAMES])
def test_the_api_has_the_heads_of_the_command_line(pooling: str) -> None:
    options_of = {"ditto": ["pooling.block=0", "pooling.head=1"]}.get(pooling, [])
    config = composed(f"pooling={pooling}", *options_of)
    head = instantiate(options(config.pooling, "pooling"), _convert_="all")
    ditto = {"block": 0, "head": 1} if pooling == "ditto" else {}
    assert describe(named(pooling, **ditto))[0] == describe(head)[0]
    assert frame_by_name(pooling) == frame_of(config, head)


def test_heads_without_a_name_in_the_api_wait_for_a_corpus() -> None:
    missing = {*choices("pooling")} - {*NAMES}
    assert missing == {"idf", "sif", "usif", "static_remove_biases"}


@pytest.mark.parametrize(
    "overrides",
    [
        ["pooling=prompt_debiased", "pooling.template='a : {text} is [MASK] .'"],
        ["pooling=echo", "pooling.template='a : {text} is : {text}'", "whitening=off"],
        ["pooling=impact", "pooling.layers=[-1]", "whitening=zca"],
        ["pooling=avg", "pooling.template='not {text}'", "pooling.full_stop=true"],
    ],
    ids=["prompt_debiased", "echo", "impact", "avg"],
)
def test_a_run_and_its_recipe(
    masked: Callable[[str], Path], tmp_path: Path, overrides: list[str],
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Equal scores, from a run whose second pass reuses its vectors, and from the API's cosines."""
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tiny_suite, "load", _small)
    with caplog.at_level("INFO"):
        for name in ("run", "reused"):
            evaluate(tiny_suite.composed(masked("bert"), tmp_path / name, *overrides))
    assert ("masked copies of the sentences" in caplog.text) == ("pooling=impact" in overrides)
    found = rows(tmp_path / "run")
    assert rows(tmp_path / "reused") == found
    content = json.loads((tmp_path / "reused" / "results.json").read_text(encoding="utf-8"))
    assert content["vectors"]["reused"]
    recipe = tmp_path / "run" / "recipe"
    evaluate(tiny_suite.composed(masked("bert"), tmp_path / "again", f"recipe={recipe}"))
    assert rows(tmp_path / "again") == found


def _small() -> Any:
    (task,) = (task for task in LOAD() if task.name == "mine")
    return (task,)


LOAD = tiny_suite.load


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["pooling=prompt"], r"has a \[MASK\] slot and model .* has no mask token"),
        (["pooling=impact"], "hides tokens behind a mask token and model"),
        (["pooling=prompt", "pooling.template='{text}'"], r"give one with \[MASK\] in it once"),
        (["pooling=echo", "pooling.template='{text}'"], "in it twice"),
        (["pooling=avg", "pooling.template=3"], "give a text with {text} in it, and true or false"),
        (["pooling=impact", "analysis=layers"], "no head that reads its template or runs the mod"),
        (["pooling=sbert_wk", "pooling.layers=[1]"], "pooling=sbert_wk takes no pooling.layers"),
        (["pooling=sbert_wk"], "compares 3 layers or more"),
    ],
    ids=str,
)
def test_what_does_not_go_together(
    checkpoint: Callable[[str], Path], tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, "cache=off", *overrides))
