"""Whole runs of evaluate.py with the recipe that another run left, inside this process."""

from __future__ import annotations

import csv
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hydra.core.global_hydra import GlobalHydra

import whitepool
from test_evaluate import SCRIPT
from whitepool.recipe import Recipe

Command = Callable[..., tuple[Path, str, str]]


@pytest.fixture
def evaluate(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pairs: Path,
) -> Iterator[Command]:
    """Runs evaluate.py on the pairs; gives its folder, what it printed and its error."""
    runs = 0
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()

    def run(*overrides: str) -> tuple[Path, str, str]:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"run{runs}"
        GlobalHydra.instance().clear()
        data = ["data=pairs", f"data.path={pairs}", "trainer=cpu", "logger=none"]
        data.append("figures=false")
        given = [str(SCRIPT), *data, f"hydra.run.dir={folder}", *overrides]
        monkeypatch.setattr(sys, "argv", given)
        with pytest.raises(SystemExit):
            runpy.run_path(str(SCRIPT), run_name="__main__")
        printed = capsys.readouterr()
        return folder, " ".join(printed.out.split()), printed.err

    yield run
    torch.set_num_threads(threads)


def scores(folder: Path) -> list[dict[str, str]]:
    with (folder / "scores.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def results(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize(
    "overrides",
    [
        ["whitening.k=8", "pooling=ditto", "pooling.block=0", "pooling.head=1"],
        ["pooling=first_last", "protocol=su", "batch_tokens=60"],
        ["whitening=off", "pooling=pooler", "pooling.activation=none", "model.max_length=6"],
        ["pooling=max", "trainer.precision=bf16-true"],
        ["whitening=tempered", "whitening.gamma=0.3", "whitening.k=8"],
    ],
    ids=["ditto", "su", "raw", "bf16", "tempered"],
)
def test_a_recipe_reproduces_the_run_bit_for_bit(
    evaluate: Command, checkpoint: Callable[[str], Path], overrides: list[str]
) -> None:
    fitted, out, err = evaluate(f"model.path={checkpoint('bert')}", "model=local", *overrides)
    assert (fitted / "recipe" / "recipe.yaml").exists(), err
    kept = [o for o in overrides if o.startswith(("protocol", "batch_tokens"))]
    again, out, err = evaluate(f"recipe={fitted}/recipe", *kept)
    assert scores(again) == scores(fitted), err
    whitens = "whitening=off" not in overrides
    step = "tempered" if "whitening=tempered" in overrides else "whitening"
    assert (f"{step} from the recipe" in err) == whitens
    assert ("(from the recipe)." in out) == whitens
    assert (" whitened " in out) == (whitens and step == "whitening")
    assert ("tempered: 8 of 32 directions" in out) == (step == "tempered")
    assert not (again / "whitening.safetensors").exists()
    files = [(folder / "recipe" / "weights.safetensors") for folder in (again, fitted)]
    assert not whitens or files[0].read_bytes() == files[1].read_bytes()
    content, first = results(again), results(fitted)
    assert content["recipe"]["max_length"] == first["recipe"]["max_length"]
    assert content["recipe"]["pooling"]["name"] == first["recipe"]["pooling"]["name"]
    assert content["recipe"]["model"] == first["recipe"]["model"]
    if whitens:
        assert content["fit"]["from_recipe"]
        assert not first["fit"]["from_recipe"]
        assert content["fit"]["sets"] == first["fit"]["sets"]
        assert content["fit"]["on"].startswith("mine: each task's test sentences")
    config = yaml.safe_load((again / "config.yaml").read_text(encoding="utf-8"))
    assert config["model"]["path"] == str(checkpoint("bert"))


def test_the_recipe_encodes_as_the_run_did(
    evaluate: Command, checkpoint: Callable[[str], Path], pairs: Path
) -> None:
    """Cosines of the API's vectors, in numpy and scipy, give the run's score."""
    from scipy import stats

    folder, _, _ = evaluate("model=local", f"model.path={checkpoint('bert')}", "whitening.k=8")
    encoder = whitepool.load(folder / "recipe", device="cpu")
    lines = [line.split("\t") for line in pairs.read_text(encoding="utf-8").split("\n")[1:-1]]
    a, b = encoder.encode([x for x, *_ in lines]), encoder.encode([x for _, x, _ in lines])
    gold = [float(x) for *_, x in lines]
    value = 100 * stats.spearmanr(encoder.similarity_pairwise(a, b).round(6), gold).statistic
    assert results(folder)["headline"]["value"] == pytest.approx(value, abs=0.1)


def test_a_map_fitted_elsewhere_is_applied_not_refitted(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    encoder = whitepool.load(checkpoint("bert"), whitening="pca", k=3, device="cpu")
    encoder.fit(["a dog runs", "the cat eats", "a man plays music", "food in the park", "two"])
    encoder.save(tmp_path / "mine")
    folder, out, _ = evaluate(f"recipe={tmp_path / 'mine'}")
    assert "3 of 32 directions, fitted on 5 sentences given to Encoder.fit (from the" in out
    assert results(folder)["fit"]["sets"]["mine"] == {"vectors": 5.0, "rank": 4, "k": 3}
    stages = {row["stage"] for row in scores(folder)}
    assert stages == {"raw", "post"}


def test_a_template_is_applied(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    encoder = whitepool.load(
        checkpoint("bert"), template="not {text} .", max_length=12, device="cpu"
    )
    encoder.save(tmp_path / "framed")
    plain = whitepool.load(checkpoint("bert"), max_length=12, device="cpu").save(tmp_path / "plain")
    framed, _, _ = evaluate(f"recipe={tmp_path / 'framed'}")
    bare, _, _ = evaluate(f"recipe={plain}")
    assert scores(framed) != scores(bare)


@pytest.mark.parametrize("long_text", ["error", "chunk_mean"])
def test_long_texts_are_not_cut_in_silence(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path, long_text: str
) -> None:
    options: dict[str, Any] = {"long_text": long_text, "device": "cpu"}
    whitepool.load(checkpoint("bert"), max_length=5, **options).save(tmp_path / "short")
    _, _, err = evaluate(f"recipe={tmp_path / 'short'}")
    assert f"texts are over the recipe's max_length 5, which long_text={long_text} does" in err
    whitepool.load(checkpoint("bert"), **options).save(tmp_path / "long")
    folder, _, _ = evaluate(f"recipe={tmp_path / 'long'}")
    assert scores(folder)


@pytest.mark.parametrize(
    "override",
    ["pooling=cls", "model.max_length=9", "whitening=off", "whitening.k=3",
     "experiment=whiteningbert"],
)  # fmt: skip
def test_a_recipe_brings_model_pooling_and_whitening(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path, override: str
) -> None:
    whitepool.load(checkpoint("bert"), device="cpu").save(tmp_path / "mine")
    _, _, err = evaluate(f"recipe={tmp_path / 'mine'}", override)
    assert f"brings its own model, pooling and whitening: leave {override} out" in err
    assert "Traceback" not in err


def test_precision_may_be_asked_for(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    whitepool.load(checkpoint("bert"), device="cpu").save(tmp_path / "mine")
    folder, _, _ = evaluate(f"recipe={tmp_path / 'mine'}", "trainer.precision=bf16-true")
    assert results(folder)["recipe"]["model"]["dtype"] == "bfloat16"


def test_recipes_that_are_none(evaluate: Command, tmp_path: Path) -> None:
    _, _, err = evaluate("recipe=absent")
    assert "recipe folder absent does not exist" in err
    (tmp_path / "empty").mkdir()
    _, _, err = evaluate("recipe=empty")
    assert "empty is not a recipe: it has no recipe.yaml" in err


def test_a_head_without_a_name_leaves_no_recipe(
    evaluate: Command, checkpoint: Callable[[str], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "mine.py").write_text(
        "from whitepool.pooling import MaxPooling\nclass Mine(MaxPooling): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder, _, err = evaluate(
        "model=local", f"model.path={checkpoint('bert')}", "pooling=max",
        "pooling._target_=mine.Mine",
    )  # fmt: skip
    assert scores(folder)
    assert not (folder / "recipe").exists()
    assert "No recipe is left: a recipe has no name for the head Mine" in err


def test_the_recipe_of_a_run_is_what_it_was(
    evaluate: Command, checkpoint: Callable[[str], Path]
) -> None:
    folder, _, _ = evaluate("model=local", f"model.path={checkpoint('bert')}", "whitening.k=8")
    recipe = Recipe.load(folder / "recipe")
    assert recipe.post is not None
    assert (recipe.post.count, recipe.post.directions, recipe.post.k) == (121.0, 8, 8)
    assert recipe.model.path == str(checkpoint("bert"))
    from whitepool.whitening import load_maps

    maps, _ = load_maps(folder / "whitening.safetensors")
    assert recipe.affine is not None
    assert torch.equal(recipe.affine.basis, maps["mine"].basis)
