"""Runs with `whitening=flow`, inside this process: trained, applied again, resumed, exported."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import whitepool
from test_recipe_run import Command, evaluate, scores
from test_train import command, files, text
from whitepool.errors import UserError
from whitepool.recipe import Recipe

__all__ = ["command", "evaluate", "files"]
FLOW = ["whitening=flow", "whitening.depth=2", "whitening.hidden=16", "whitening.epochs=3"]


@pytest.fixture
def trained(command: Any, files: dict[str, str], tmp_path: Path) -> Path:
    """The folder of a run, made once."""
    made = tmp_path.parent / "trained-flow"
    if not made.exists():
        code, folder = command(*text(files["all"]), *FLOW, "logger=csv")
        assert code == 0
        shutil.copytree(folder, made)
    return made


def test_a_trained_recipe_is_what_the_api_trains(
    trained: Path, files: dict[str, str], tmp_path: Path
) -> None:
    folder = trained
    recipe = Recipe.load(folder / "recipe")
    assert recipe.post is not None
    assert (recipe.post.kind, recipe.post.count, recipe.post.depth) == ("flow", 200, 2)
    assert (folder / "flow.ckpt").exists()
    assert "held_out_nll" in (folder / "csv" / "metrics.csv").read_text(encoding="utf-8")
    assert recipe.model.path is not None
    sentences = Path(files["all"]).read_text(encoding="utf-8").splitlines()
    encoder = whitepool.load(folder / "recipe")
    vectors = encoder.encode(sentences)
    assert vectors.shape == (200, recipe.post.rank)
    raw = whitepool.load(recipe.model.path).encode(sentences)
    assert recipe.fitted is not None
    assert np.array_equal(vectors, recipe.fitted(torch.from_numpy(raw)).numpy())
    again = whitepool.load(encoder.save(tmp_path / "again"))
    assert np.array_equal(again.encode(sentences), vectors)

    step = recipe.post.build()
    theirs = whitepool.load(recipe.model.path, whitening=step).fit(sentences)
    assert theirs.recipe().post == recipe.post.__class__(
        **{**vars(recipe.post), "fit": "200 sentences given to Encoder.fit"}
    )
    assert theirs.dimension == recipe.post.rank


def test_a_broken_run_goes_on_from_its_checkpoint(
    command: Any, files: dict[str, str], trained: Path
) -> None:
    code, short = command(*text(files["all"]), *FLOW[:-1], "whitening.epochs=1")
    assert code == 0
    kept = f"resume_from={short / 'flow.ckpt'}"
    code, resumed = command(*text(files["all"]), *FLOW, kept)
    assert code == 0
    one, other = (Recipe.load(folder / "recipe").arrays for folder in (resumed, trained))
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in other)


def test_what_a_flow_cannot_go_on_from(
    command: Any, files: dict[str, str], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = f"resume_from={trained / 'moments.safetensors'}"
    code, _ = command(*text(files["all"]), *FLOW, moments)
    assert code == 1
    assert "moments.safetensors is no checkpoint of whitening=flow" in capsys.readouterr().err
    code, _ = command(*FLOW, moments)
    assert code == 1
    assert "whitening=flow is trained on vectors, which are made anew" in capsys.readouterr().err


def test_evaluate_trains_and_its_recipe_gives_the_scores_again(
    evaluate: Command, checkpoint: Any
) -> None:
    first, out, err = evaluate(f"model.path={checkpoint('bert')}", "model=local", *FLOW)
    assert "flow: fitted on" in out, err
    assert not (first / "whitening.safetensors").exists()
    again, _, err = evaluate(f"recipe={first}/recipe")
    assert "flow from the recipe" in err
    assert scores(again) == scores(first)
    stages = {row["stage"]: row["value"] for row in scores(again) if row["metric"] == "spearman"}
    assert stages["raw"] != stages["post"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, "the recipe has the arrays"),
        ({"hidden": 17}, "has the shape"),
        ({"depth": None}, "post.depth is None: give a whole number|the recipe has the arrays"),
        ({"k": 3}, "post.k is given, and post.kind flow takes none"),
        ({"directions": 1}, "post 1 directions"),
    ],
)
def test_a_recipe_that_is_no_flow_is_refused(
    trained: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    changed = shutil.copytree(trained / "recipe", tmp_path / "changed")
    content = yaml.safe_load((changed / "recipe.yaml").read_text(encoding="utf-8"))
    content["post"] = {k: v for k, v in {**content["post"], **change}.items() if v is not None}
    (changed / "recipe.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        Recipe.load(changed)


def test_an_export_takes_our_own_module(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    whitepool.load(trained / "recipe", device="cpu").export(tmp_path / "export")
    assert "they have no flow" in (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    texts = ["a dog runs", "the cat eats food"]
    theirs = whitepool.sentence_transformer(tmp_path / "export", device="cpu").encode(texts)
    ours = whitepool.load(tmp_path / "export", device="cpu").encode(texts)
    assert theirs == pytest.approx(ours, abs=1e-5)


@pytest.mark.slow
def test_minilm_vectors_never_seen_are_likelier_than_whitened() -> None:
    """Trained on sentences of STS-B's train split, judged by those of its dev split."""
    from whitepool.data.stsb import read_embedded
    from whitepool.flow.fit import fit_flow
    from whitepool.flow.step import Flow
    from whitepool.moments import Moments
    from whitepool.whitening import Whitening

    encoder = whitepool.load("all_minilm", device="cpu")
    train, dev = (read_embedded("stsb", "", split) for split in ("train", "dev"))
    seen = list(dict.fromkeys([*train.first, *train.second]))[:4000]
    new = [t for t in dict.fromkeys([*dev.first, *dev.second]) if t not in set(seen)][:500]
    x, y = (torch.from_numpy(encoder.encode(texts)) for texts in (seen, new))
    made = fit_flow(Flow(epochs=6), x, torch.ones(len(x)))
    start = Whitening().fit(Moments(x.shape[1]).update(x))
    plain = made.__class__(start, made.network.__class__(start.directions, 1, 1).double(), 1.0)
    gain = made.log_density(y).mean() - plain.log_density(y).mean()
    assert float(gain) > 1.0  # nats, although whitening has seen a tenth more vectors
