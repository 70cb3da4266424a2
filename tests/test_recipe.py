"""Recipe folders: written whole, read back bit for bit, and refused where they are not ours."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from whitepool import whole_folder
from whitepool.errors import UserError
from whitepool.maps import RemoveCommon, RemoveTop, Soft, Tempered
from whitepool.maps.names import POST_PROCESSES
from whitepool.moments import Moments
from whitepool.pooling import (
    AttentionDiagonal,
    FirstToken,
    LastToken,
    LinearPooling,
    MaxPooling,
    ModelPooler,
    Pooling,
    Uniform,
    VocabularyWeights,
)
from whitepool.pooling.spec import build, describe
from whitepool.recipe import ModelSpec, PostSpec, Prompts, Recipe
from whitepool.recipe_model import describe_model, describe_post, open_model
from whitepool.whitening import Affine, Whitening

DIM, DIRECTIONS = 6, 4
HEADS: list[Pooling] = [
    LinearPooling(Uniform(), [-1]),
    LinearPooling(FirstToken(), [1, -1]),
    LinearPooling(LastToken(), ["static", 0, -2]),
    LinearPooling(AttentionDiagonal(2, 3, normalize=True), [0, -1]),
    LinearPooling(VocabularyWeights(torch.rand(9, dtype=torch.float64)), [-1]),
    MaxPooling([-1, 2]),
    ModelPooler("none"),
]


def arrays() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    options: dict[str, Any] = {"dtype": torch.float64, "generator": generator}
    return {"mean": torch.randn(DIM, **options), "basis": torch.randn(DIM, DIRECTIONS, **options)}


def make(**changes: Any) -> Recipe:
    parts: dict[str, Any] = {
        "model": ModelSpec("tiny", id="org/tiny", revision="abc"),
        "pooling": describe(HEADS[3])[0],
        "max_length": 64,
        "post": PostSpec("pca", "some: sentences", 120.0, 5, DIRECTIONS, k=4),
        "prompts": Prompts("query: ", "text: "),
        "template": 'It means "{text}" — é.',
        "long_text": "chunk_mean",
        "provenance": {"command": "python train.py", "n": 3, "exact": True, "share": 0.5},
        "versions": {"torch": "2.13"},
        "arrays": arrays(),
    }
    return Recipe(**(parts | changes))


def equal(a: Recipe, b: Recipe) -> bool:
    empty: dict[str, torch.Tensor] = {}
    same = a.arrays.keys() == b.arrays.keys()
    same = same and all(torch.equal(a.arrays[name], b.arrays[name]) for name in a.arrays)
    return same and vars(replace_arrays(a, empty)) == vars(replace_arrays(b, empty))


def replace_arrays(recipe: Recipe, content: dict[str, torch.Tensor]) -> Recipe:
    copy = object.__new__(Recipe)
    copy.__dict__.update(vars(recipe) | {"arrays": content})
    return copy


def test_a_recipe_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    recipe = make()
    folder = recipe.save(tmp_path / "deep" / "recipe")
    assert sorted(os.listdir(folder)) == ["recipe.yaml", "weights.safetensors"]
    assert equal(Recipe.load(folder), recipe)
    assert os.listdir(folder.parent) == ["recipe"]
    content = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    assert content["schema"] == 1
    assert content["pooling"]["tokens"] == {
        "kind": "attention_diagonal", "block": 2, "head": 3, "normalize": True,
    }  # fmt: skip


def test_without_arrays_there_is_no_weights_file(tmp_path: Path) -> None:
    folder = make(post=None, arrays={}).save(tmp_path / "recipe")
    assert os.listdir(folder) == ["recipe.yaml"]
    assert Recipe.load(folder).affine is None


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_heads_are_described_and_built_again(tmp_path: Path, head: Pooling) -> None:
    spec, weights = describe(head)
    extra = {} if weights is None else {"token_weights": weights}
    recipe = make(pooling=spec, arrays=arrays() | extra)
    again = Recipe.load(recipe.save(tmp_path / "recipe")).head
    assert type(again) is type(head)
    assert again.needs == head.needs
    assert describe(again)[0] == spec
    if isinstance(head, ModelPooler) and isinstance(again, ModelPooler):
        assert again.activation == head.activation
    if weights is not None:
        assert torch.equal(describe(again)[1], weights)


def test_heads_and_steps_without_a_name_are_refused() -> None:
    class Mine(MaxPooling):
        pass

    class Step(Whitening):
        pass

    with pytest.raises(UserError, match="no name for the head Mine: it knows LinearPooling, Max"):
        describe(Mine())
    affine = Affine(arrays()["mean"], arrays()["basis"], 9.0, 5)
    with pytest.raises(UserError, match="no name for the step Step: it knows Whitening"):
        describe_post(Step(), affine, "here")
    with pytest.raises(UserError, match="token weights int"):
        describe(LinearPooling(3, [-1]))  # type: ignore[arg-type]


STEPS: list[Any] = [
    *(made() for kind, made in POST_PROCESSES.items() if kind != "flow"),
    Tempered(3, gamma=0.25),
    Soft(4, eps=2.0),
    RemoveTop(remove=2),
    RemoveCommon(remove=3),
]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_are_described_and_built_again(tmp_path: Path, step: Any) -> None:
    """With the same map, bit for bit, and the same step to be fitted anew."""
    x = torch.randn(30, DIM, generator=torch.Generator().manual_seed(0)).double()
    moments = Moments(DIM).update(x)
    affine = step.fit(moments)
    spec = describe_post(step, affine, "some: sentences")
    recipe = make(post=spec, arrays={"mean": affine.mean, "basis": affine.basis})
    again = Recipe.load(recipe.save(tmp_path / "recipe"))
    assert again.post == spec
    assert again.affine is not None
    assert torch.equal(again.affine(x), affine(x))
    assert again.post.build() == step
    assert type(again.post.build()) is type(step)
    assert torch.equal(again.post.build().fit(moments).basis, affine.basis)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "pca", "gamma": 0.5}, r"post\.gamma is given, and post\.kind pca takes none"),
        ({"kind": "center", "k": 2}, r"post\.k is given, and post\.kind center takes none"),
        ({"kind": "tempered"}, r"post\.gamma is None: give a number from 0"),
        ({"kind": "tempered", "gamma": 2.0}, r"post\.gamma is 2\.0: give a number from 0"),
        ({"kind": "soft", "eps": -1.0}, r"post\.eps is -1\.0: give a number above 0"),
        ({"kind": "remove_top", "remove": 0}, r"post\.remove is 0: give a whole number from 1"),
        ({"kind": "remove_common"}, r"post\.remove is None: give a whole number from 1"),
    ],
)
def test_options_of_a_step(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PostSpec(fit="x", count=9.0, rank=5, directions=5, **changes)


def test_the_step_can_be_fitted_anew() -> None:
    post = make().post
    assert post is not None
    step = post.build()
    assert isinstance(step, Whitening)
    assert step.k == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": 0}, "max_length is 0"),
        ({"template": "no slot"}, "'no slot': give a text with {text} in it once"),
        ({"template": "{text} {text}"}, "in it once"),
        ({"arrays": {}}, r"has the arrays \(none\) where its settings ask for basis, mean"),
        ({"post": None}, r"basis, mean where its settings ask for \(none\)"),
        ({"arrays": {k: v.float() for k, v in arrays().items()}}, "is not all finite float64"),
        ({"arrays": arrays() | {"mean": torch.full((DIM,), torch.nan).double()}}, "array mean"),
        ({"arrays": arrays() | {"mean": torch.zeros(5).double()}}, "mean has 5 numbers"),
        ({"arrays": arrays() | {"basis": torch.zeros(DIM, 3).double()}}, r"shape \(6, 3\)"),
        ({"arrays": arrays() | {"basis": torch.zeros(DIM).double()}}, r"shape \(6,\)"),
    ],
)
def test_parts_that_do_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "model names no source"),
        ({"id": "../../etc"}, "model.id"),
        ({"id": "a/b/c"}, "model.id"),
        ({"id": "/etc/passwd"}, "model.id"),
        ({"id": "a..b/c"}, "model.id"),
        ({"id": "a/b", "revision": "../x"}, "model.revision"),
        ({"asset": "../x"}, "model.asset"),
        ({"path": "models/mine"}, "give an absolute path"),
        ({"path": "/models/../etc"}, r"without '\.\.'"),
        ({"path": "/models/\0"}, "absolute path"),
        ({"id": "a/b", "sha256": "abc"}, "model.sha256"),
        ({"id": "a/b", "name": "a\nb"}, "model.name"),
    ],
)
def test_sources_of_another_form(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ModelSpec(**({"name": "x"} | arguments))


def test_numbers_of_a_fit_are_checked() -> None:
    for count, rank, directions in ((1.0, 5, 4), (9.0, 3, 4), (9.0, 3, 0)):
        with pytest.raises(UserError, match="they go 1 <= directions <= rank"):
            PostSpec("pca", "x", count, rank, directions)
    with pytest.raises(UserError, match=r"post\.k is 0"):
        PostSpec("pca", "x", 9.0, 3, 3, k=0)


def test_a_recipe_replaces_a_recipe_alone(tmp_path: Path) -> None:
    folder = make().save(tmp_path / "recipe")
    again = make(max_length=32, post=None, arrays={})
    again.save(folder)
    assert equal(Recipe.load(folder), again)
    assert os.listdir(tmp_path) == ["recipe"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"notes.txt beside it would be lost"):
        make().save(folder)
    other = tmp_path / "other"
    other.mkdir()
    assert make().save(other) == other  # an empty folder is as good as none
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "cat.png").write_text("cat")
    with pytest.raises(UserError, match="holds other things than a recipe"):
        make().save(photos)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(UserError, match="is not a folder"):
        make().save(file)
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(UserError, match="is not a folder"):
        make().save(link)
    assert (photos / "cat.png").read_text() == "cat"
    assert file.read_text() == "x"


@pytest.mark.parametrize("moment", ["write", "sync", "rename"])
def test_the_old_recipe_survives_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    old = make()
    folder = old.save(tmp_path / "recipe")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    rename = Path.rename

    def stumble(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise OSError(5, "Input/output error")
        return rename(self, target)

    with monkeypatch.context() as patch:
        if moment == "write":
            patch.setattr("safetensors.torch.save_file", full)
        elif moment == "sync":
            patch.setattr(whole_folder, "sync", full)
        else:
            patch.setattr(Path, "rename", stumble)
        with pytest.raises(UserError, match=r"the recipe in .*recipe cannot be written \("):
            make(max_length=8).save(folder)
    assert equal(Recipe.load(folder), old)
    assert os.listdir(tmp_path) == ["recipe"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return make().save(tmp_path / "recipe")


def change(folder: Path, **content: Any) -> None:
    path = folder / "recipe.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8")) | content
    path.write_text(yaml.safe_dump(data), encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"schema": 2}, "its schema is 2 and this whitepool reads up to 1: install a newer"),
        ({"schema": "1"}, "schema is '1'"),
        ({"schema": True}, "schema is True"),
        ({"schema": 0}, "schema is 0"),
        ({"colour": "red"}, "no key 'colour'"),
        ({"_target_": "os.system"}, "no key '_target_'"),
        ({"arrays": {}}, "no key 'arrays'"),
        ({"pooling": {"_target_": "whitepool.pooling.MaxPooling"}}, "pooling.kind is null"),
        ({"pooling": {"kind": "os.system"}}, "choose one of linear, max, pooler"),
        ({"pooling": {"kind": "max", "layers": []}}, "give a list of layers"),
        ({"pooling": {"kind": "pooler", "activation": "relu"}}, "give tanh or none"),
        ({"similarity": "dot"}, "similarity is 'dot': give cosine"),
        ({"post": None}, "has the arrays basis, mean"),
        ({"post": {"kind": "os.system"}}, "post.kind is 'os.system': give pca or zca or"),
        ({"long_text": "wrap"}, "give truncate or error or chunk_mean"),
        ({"model": {"name": "x", "path": "../../secret"}}, "absolute path"),
    ],
)
def test_hostile_content(saved: Path, content: dict[str, Any], message: str) -> None:
    change(saved, **content)
    with pytest.raises(UserError, match=message) as found:
        Recipe.load(saved)
    assert str(found.value).startswith(f"recipe {saved}: ")


def test_no_layers_at_all() -> None:
    with pytest.raises(UserError, match="give a list of layers"):
        build(replace(describe(HEADS[0])[0], layers=()))


class Bomb:
    """Leaves a mark if it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("name", ["weights.pkl", "weights.bin", "model.pt", "weights.safetensors"])
def test_a_pickle_is_never_opened(saved: Path, tmp_path: Path, name: str) -> None:
    (saved / "weights.safetensors").unlink()
    (saved / name).write_bytes(pickle.dumps(Bomb(tmp_path / "mark")))
    with pytest.raises(UserError, match=name):
        Recipe.load(saved)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda a: {"mean": a["mean"]}, "has the arrays mean where"),
        (lambda a: a | {"more": a["mean"].clone()}, "has the arrays basis, mean, more where"),
        (lambda a: a | {"token_weights": a["mean"] * 1}, "basis, mean, token_weights where"),
        (lambda a: a | {"mean": a["mean"].float()}, r"mean \(torch.float32\)"),
        (lambda a: a | {"basis": a["basis"] / 0}, "basis .* is not all finite"),
        (lambda a: a | {"basis": a["basis"][:, :2].contiguous()}, r"shape \(6, 2\)"),
        (lambda a: a | {"basis": a["basis"].long()}, "int64"),
    ],
)
def test_arrays_that_do_not_fit(
    saved: Path, content: Callable[[dict[str, torch.Tensor]], Any], message: str
) -> None:
    save_file(content(arrays()), saved / "weights.safetensors")
    with pytest.raises(UserError, match=message):
        Recipe.load(saved)


@pytest.mark.parametrize("size", [0, 4, 8, 60, 150])
def test_a_cut_weights_file(saved: Path, size: int) -> None:
    path = saved / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match=r"weights.safetensors is not a safetensors file"):
        Recipe.load(saved)


def test_folders_that_are_no_recipe(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(UserError, match=r"recipe folder .*absent does not exist"):
        Recipe.load(tmp_path / "absent")
    with pytest.raises(UserError, match=r"is not a recipe: it has no recipe.yaml"):
        Recipe.load(tmp_path)
    (saved / "recipe.yaml").write_bytes(b"schema: 1\nname: \xff\n")
    with pytest.raises(UserError, match="not UTF-8"):
        Recipe.load(saved)
    (saved / "recipe.yaml").write_text("- 1\n")
    with pytest.raises(UserError, match="has no schema number"):
        Recipe.load(saved)
    (saved / "recipe.yaml").write_text("")
    with pytest.raises(UserError, match="has no schema number"):
        Recipe.load(saved)


JUNK = ["null", "true", "-1", "1e999", ".nan", "[]", "{}", "!!python/name:os.system", "'", "&a",
        "*a", "\t", "{text}", "../..", "_target_: os.system", "~", "<<: *x", "0x10", "2020-01-01",
        "? a", "- ", "|", "\u2028", "\x07", "9" * 30, "schema: 3"]  # fmt: skip


def outcome(folder: Path) -> tuple[Recipe | None, str]:
    """What a folder is read as, or why it is refused; anything but a UserError is a fault."""
    try:
        return Recipe.load(folder), ""
    except UserError as error:
        return None, str(error)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A recipe that tests may spoil, and the text it began with."""
    folder = make().save(tmp_path_factory.mktemp("fuzz") / "recipe")
    return folder, (folder / "recipe.yaml").read_text(encoding="utf-8")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_changed_recipe_is_read_or_refused(fuzzed: tuple[Path, str], data: st.DataObject) -> None:
    """Lines dropped, doubled, moved in, values replaced by junk."""
    folder, original = fuzzed
    lines = original.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        action = data.draw(st.sampled_from(["drop", "double", "value", "insert", "text", "indent"]))
        junk = data.draw(st.sampled_from(JUNK) | st.text(max_size=6))
        if action == "drop" and len(lines) > 1:
            del lines[i]
        elif action == "double":
            lines.insert(i, lines[i])
        elif action == "value":
            lines[i] = f"{lines[i].partition(':')[0]}: {junk}"
        elif action == "insert":
            lines.insert(i, junk)
        elif action == "text":
            lines[i] = lines[i] + junk
        else:
            lines[i] = " " + lines[i]
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    (folder / "recipe.yaml").write_bytes(text)
    found, message = outcome(folder)
    assert found is not None or message.startswith(f"recipe {folder}")
    assert found is None or (found.affine is not None and equal(found, reread(found, folder)))


def reread(recipe: Recipe, folder: Path) -> Recipe:
    return Recipe.load(recipe.save(folder.parent / "again"))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_weights_file_with_changed_bytes_is_read_or_refused(
    fuzzed: tuple[Path, str], data: st.DataObject
) -> None:
    folder, original = fuzzed
    (folder / "recipe.yaml").write_text(original, encoding="utf-8")
    path = folder / "weights.safetensors"
    save_file(arrays(), path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 160))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    found, message = outcome(folder)
    assert found is not None or message.startswith(f"recipe {folder}")


def test_another_model_in_the_same_place_is_refused(
    tmp_path: Path, checkpoint: Callable[[str], Path], plm: Callable[[str], Any]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint("bert"), folder)
    spec = describe_model(plm("bert"), path=folder)
    assert open_model(spec).provenance["sha256"] == spec.sha256
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match="model bert is not the one of the recipe: the checksum"):
        open_model(spec)
    shutil.rmtree(folder)
    with pytest.raises(UserError, match=r"does not exist: put the model there, or write its new"):
        open_model(spec)
