"""`whitepool.load`: where models come from, what goes together, and what names stand for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import whitepool
from test_conf import choices, composed
from whitepool import loading
from whitepool.assets import ASSETS, MODELS
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.plm import FrozenPLM
from whitepool.pooling import AttentionDiagonal, LinearPooling, MaxPooling, Uniform
from whitepool.pooling.named import NAMES, frame_of, name_of, named
from whitepool.pooling.spec import describe


def test_the_package_offers_its_names() -> None:
    assert set(whitepool.__all__) <= set(dir(whitepool))
    assert whitepool.__version__.count(".") == 2
    assert whitepool.load is loading.load
    assert {whitepool.Encoder.__name__, whitepool.Recipe.__name__} == {"Encoder", "Recipe"}
    with pytest.raises(AttributeError, match="module 'whitepool' has no attribute 'laod'"):
        whitepool.laod  # noqa: B018


def test_loading_needs_neither_hydra_nor_lightning(checkpoint: Callable[[str], Path]) -> None:
    code = (
        "import sys, whitepool;"
        f"e = whitepool.load({str(checkpoint('bert'))!r}, whitening='pca', k=2);"
        "e.fit(['a dog', 'a cat', 'the man eats', 'music']).encode('a dog');"
        "bad = {'hydra', 'wandb', 'pytorch_lightning', 'torchmetrics', 'omegaconf'};"
        "print(sorted(bad & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_heads_are_those_of_the_command_line(name: str) -> None:
    from hydra.utils import instantiate

    from whitepool.from_config import options

    config = composed(f"pooling={name}", "model=bert").pooling
    theirs = instantiate(options(config, "pooling"), _convert_="all")
    ours = named(name, **({"block": 0, "head": 9} if name == "ditto" else {}))
    assert describe(ours) == describe(theirs)


def test_every_head_of_the_command_line_has_its_name() -> None:
    """But those whose weights are counted on a corpus."""
    assert sorted((*NAMES, "idf", "sif", "usif", "static_remove_biases")) == choices("pooling")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "layers"])
def test_heads_are_called_by_their_name(name: str) -> None:
    head = named(name, **({"block": 1, "head": 2} if name == "ditto" else {}))
    assert name_of(head, frame_of(name)) == name


def test_a_template_of_ones_own_has_no_name_where_several_heads_could_be_meant() -> None:
    assert name_of(named("prompt"), Frame("{text} : [MASK]")) == "prompt"
    assert name_of(named("prompteol"), Frame("{text} :")) == "last_token"
    assert name_of(named("prompt_cot"), Frame("{text} :")) == "linear"


def test_heads_with_other_layers() -> None:
    assert name_of(LinearPooling(Uniform(), [3, 4])) == "layers"
    assert name_of(LinearPooling(AttentionDiagonal(0, 1), [3])) == "ditto"
    assert named("cls", [2]).needs.layers == (2,)
    assert named("max", [0, 1]).needs.layers == (0, 1)


def test_other_vocabularies_of_names() -> None:
    assert set(MODELS) == set(ASSETS) - {"stsb"}


def test_settings_reach_the_encoder(checkpoint: Callable[[str], Path]) -> None:
    head = MaxPooling([1])
    encoder = whitepool.load(
        checkpoint("bert"), pooling=head, max_length=7, dtype="bfloat16", device="cpu"
    )
    assert encoder.pooled.pooling is head
    assert encoder.max_length == 7
    assert encoder.device.type == "cpu"
    assert encoder.pooled.plm.model.dtype == torch.bfloat16
    assert encoder.encode("a dog").dtype.name == "float32"
    assert encoder.recipe().model.dtype == "bfloat16"
    assert encoder.recipe().model.name == checkpoint("bert").name


def test_a_recipe_keeps_its_number_type_unless_told(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    whitepool.load(checkpoint("bert"), dtype="bfloat16", device="cpu").save(tmp_path / "recipe")
    loaded = whitepool.load(tmp_path / "recipe", device="cpu")
    assert loaded.pooled.plm.model.dtype == torch.bfloat16
    loaded = whitepool.load(tmp_path / "recipe", dtype="float32", device="cpu")
    assert loaded.pooled.plm.model.dtype == torch.float32


def test_sources(monkeypatch: pytest.MonkeyPatch, plm: Callable[[str], Any]) -> None:
    asked: list[dict[str, Any]] = []
    bert = plm("bert")

    def from_pretrained(id: str | None = None, **arguments: Any) -> FrozenPLM:
        asked.append({"id": id, **arguments})
        return bert  # type: ignore[no-any-return]

    monkeypatch.setattr(FrozenPLM, "from_pretrained", from_pretrained)
    assert whitepool.load("all_minilm").recipe().model.asset == "all_minilm"
    model = whitepool.load("org/name", revision="abc123").recipe().model
    assert (model.id, model.revision) == ("org/name", "abc123")
    assert asked[0] == {
        "id": None, "asset": "all_minilm", "name": "all_minilm", "dtype": "float32",
        "max_length": None,
    }  # fmt: skip
    assert (asked[1]["id"], asked[1]["revision"], asked[1]["name"]) == (
        "org/name", "abc123", "org/name",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path_or_model": "allminilm"}, "'allminilm': give a folder, one of the embedded models "
         "all_minilm, all_mpnet, gemma, or a hub id"),
        ({"path_or_model": "stsb"}, "there is no folder and no model 'stsb'"),
        ({"path_or_model": "./absent"}, "no folder and no model './absent'"),
        ({"path_or_model": Path("absent/model")}, "no folder and no model 'absent/model'"),
        ({"path_or_model": "a/b/c"}, "no folder and no model 'a/b/c'"),
        ({"path_or_model": "all_minilm", "revision": "abc"}, "revision goes with a hub id"),
        ({"pooling": "mean"}, "pooling is 'mean': choose one of avg, cls, ditto"),
        ({"pooling": "ditto"}, "give pooling.block= and pooling.head="),
        ({"pooling": "ditto", "block": 9, "head": 0}, "block 9 head 0 does not exist"),
        ({"pooling": "avg", "head": 1}, "pooling='avg' takes no block and head"),
        ({"pooling": "pooler", "layers": [1]}, "takes no layers"),
        ({"pooling": MaxPooling(), "layers": [1]}, "pooling is an object"),
        ({"layers": []}, "give a list of layers"),
        ({"layers": [9]}, "layer 9 does not exist: this model has 3 blocks"),
        ({"whitening": "nope"}, "whitening is 'nope': choose one of pca, zca"),
        ({"whitening": "pca", "k": 0}, "give a whole number from 1"),
        ({"k": 8}, "k=8 is for whitening: give whitening='pca' too"),
        ({"max_length": 900}, "maximum length 900 is outside 3 to 64"),
        ({"dtype": "float16"}, "dtype is 'float16': choose one of float32, bfloat16, auto"),
        ({"prompts": {"passage": "x"}}, "prompts has 'passage'"),
        ({"prompts": {"query": 3}}, "prompts has 'query': 3"),
        ({"template": "x"}, "give a text with {text} in it once"),
        ({"long_text": "wrap"}, "choose one of truncate, error, chunk_mean"),
    ],
)  # fmt: skip
def test_mistakes(
    checkpoint: Callable[[str], Path], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as found:
        whitepool.load(**({"path_or_model": checkpoint("bert")} | arguments))
    assert message in str(found.value)


@pytest.mark.parametrize(
    "given",
    [
        {"pooling": "avg"}, {"whitening": "pca"}, {"k": 3}, {"layers": [1]}, {"block": 0},
        {"head": 0}, {"max_length": 8}, {"prompts": {}}, {"template": "{text}"},
        {"long_text": "error"}, {"revision": "a"},
    ],
)  # fmt: skip
def test_a_recipe_brings_its_own_settings(
    checkpoint: Callable[[str], Path], tmp_path: Path, given: dict[str, Any]
) -> None:
    folder = whitepool.load(checkpoint("bert"), device="cpu").save(tmp_path / "recipe")
    with pytest.raises(UserError, match=f"is a recipe, which brings its own {next(iter(given))}:"):
        whitepool.load(folder, **given)
