"""Folders with code in them: it is there to be run, and never is."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

import whitepool
from whitepool.checkpoint import load
from whitepool.commands.console import main as whitepool_command
from whitepool.data.corpus_files import text_files
from whitepool.data.retrieval import load_retrieval
from whitepool.errors import UserError
from whitepool.maps.affine import load_maps, save_maps
from whitepool.recipe import Recipe

from file_cases import affine, recipe

CODE = """
import pathlib
pathlib.Path({marker!r}).write_text(__name__)
from transformers import BertConfig, BertModel, BertTokenizerFast
class Config(BertConfig):
    model_type = "evil"
class Model(BertModel):
    config_class = Config
class Tokenizer(BertTokenizerFast):
    pass
class Module:
    pass
def generate(*args, **kwargs):
    pass
"""
JINJA = (
    "{{% for c in ''.__class__.__mro__[1].__subclasses__() %}}{{% if c.__name__ == 'Popen' %}}"
    "{{{{ c('touch {marker}', shell=True) }}}}{{% endif %}}{{% endfor %}}"
)


class Payload:
    """Writes the marker when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.marker}'",)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "MARKER"


@pytest.fixture
def folder(checkpoint: Callable[[str], Path], tmp_path: Path, marker: Path) -> Path:
    """A sound model folder with modules in it that write the marker."""
    place = Path(shutil.copytree(checkpoint("bert"), tmp_path / "model"))
    for name in ("evil", "generate", "modeling_bert", "tokenization_bert", "model", "conftest"):
        (place / f"{name}.py").write_text(CODE.format(marker=str(marker)), encoding="utf-8")
    (place / "custom_generate").mkdir()
    shutil.copy(place / "evil.py", place / "custom_generate" / "generate.py")
    return place


def change(path: Path, **content: Any) -> None:
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(before | content), encoding="utf-8")


def test_the_payloads_would_work(folder: Path, marker: Path, tmp_path: Path) -> None:
    """Without whitepool between, each way of running code does."""
    import jinja2
    from transformers import AutoModel, AutoTokenizer

    change(
        folder / "config.json", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    )
    AutoModel.from_pretrained(folder, trust_remote_code=True)
    assert marker.exists()
    marker.unlink()
    change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "evil.Tokenizer"]})
    AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()
    marker.unlink()
    jinja2.Template(JINJA.format(marker=marker)).render()
    end = time.monotonic() + 60
    while not marker.exists():  # by a process that nobody waits for
        assert time.monotonic() < end
        time.sleep(0.01)


def auto_map(folder: Path, marker: Path) -> None:
    auto = {
        "AutoConfig": "evil.Config",
        "AutoModel": "evil.Model",
        "AutoTokenizer": "evil.Tokenizer",
    }
    change(folder / "config.json", auto_map=auto, custom_generate="evil")


def unknown_type(folder: Path, marker: Path) -> None:
    auto_map(folder, marker)
    change(folder / "config.json", model_type="evil", architectures=["Model"])


def tokenizer_map(folder: Path, marker: Path) -> None:
    change(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]},
        tokenizer_class="Tokenizer",
    )


def chat_template(folder: Path, marker: Path) -> None:
    (folder / "chat_template.jinja").write_text(JINJA.format(marker=marker), encoding="utf-8")
    change(folder / "tokenizer_config.json", chat_template=JINJA.format(marker=marker))
    change(folder / "config.json", chat_template=JINJA.format(marker=marker))


def module_types(folder: Path, marker: Path) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in list(folder.glob("*.*")):
        file.rename(inner / file.name)
    shutil.copy(inner / "evil.py", folder / "evil.py")
    types = [
        {"path": "0_Transformer", "type": "evil.Transformer"},
        {"path": "", "type": "evil.Module"},
    ]
    (folder / "modules.json").write_text(json.dumps(types), encoding="utf-8")


def adapter(folder: Path, marker: Path) -> None:
    other = Path(shutil.copytree(folder, folder / "other"))
    unknown_type(other, marker)
    change(folder / "adapter_config.json", base_model_name_or_path=str(other), peft_type="LORA")


def pickled(folder: Path, marker: Path) -> None:
    arrays: dict[str, Any] = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({**arrays, "payload": Payload(marker)}, folder / "pytorch_model.bin")


def disguised(folder: Path, marker: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Payload(marker)))


def target(folder: Path, marker: Path) -> None:
    extra = {"_target_": "os.system", "_args_": [f"touch {marker}"]}
    change(folder / "config.json", **extra)


def quantised(folder: Path, marker: Path) -> None:
    extra = {"_target_": "os.system", "_args_": [f"touch {marker}"]}
    change(folder / "config.json", quantization_config=extra)


READ = {auto_map, tokenizer_map, chat_template, module_types, target}


@pytest.mark.parametrize(
    "plant",
    [
        auto_map,
        unknown_type,
        tokenizer_map,
        chat_template,
        module_types,
        adapter,
        pickled,
        disguised,
        target,
        quantised,
    ],
)
def test_model_folders(
    plant: Callable[[Path, Path], None], folder: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))  # to whom transformers may ask
    plant(folder, marker)
    if plant in READ:
        assert whitepool.load(folder, device="cpu").encode(["a dog"]).shape == (1, 32)
    else:
        with pytest.raises(UserError, match="model"):
            whitepool.load(folder, device="cpu")
    assert not marker.exists()


def tiny_gguf(path: Path, template: str) -> None:
    """A LLaMA of one block and 12 tokens, whose file has a chat template."""
    import gguf
    import numpy as np

    draw = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(32)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(12)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["<s>", "</s>", *"abcdefg", "ab", "abc", "<unk>"])
    writer.add_token_types([3, 3, *[1] * 9, 2])
    writer.add_token_merges(["a b", "ab c"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(template)
    block = {f"blk.0.attn_{x}": (32, 32) for x in ("q", "k", "v", "output")}
    block |= {f"blk.0.ffn_{x}": (32, 32) for x in ("gate", "up", "down")}
    block |= {f"blk.0.{x}": (32,) for x in ("attn_norm", "ffn_norm")}
    block |= {"token_embd": (12, 32), "output": (12, 32), "output_norm": (32,)}
    for name, shape in block.items():
        writer.add_tensor(f"{name}.weight", draw.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_chat_template_of_a_gguf_file(tmp_path: Path, marker: Path) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    folder = tmp_path / "model"
    folder.mkdir()
    template = JINJA.format(marker=marker)
    tiny_gguf(folder / "tiny.gguf", template)
    encoder: Any = whitepool.load(folder, device="cpu")
    assert encoder.pooled.plm.tokenizer.chat_template == template  # it is there, and stays a text
    assert encoder.encode(["abc", "d e"]).shape == (2, 32)
    assert not marker.exists()


def test_recipe_folders(tmp_path: Path, marker: Path) -> None:
    folder = recipe().save(tmp_path / "recipe")
    text = (folder / "recipe.yaml").read_text(encoding="utf-8")
    shell = f"touch {marker}"
    for part in ("", "model", "pooling", "post", "provenance", "versions"):
        content = yaml.safe_load(text)
        inner = content[part] if part else content
        inner |= {"_target_": "os.system", "command": shell}
        (folder / "recipe.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        with pytest.raises(UserError, match="_target_"):
            Recipe.load(folder)
    laughs = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    for bad in (
        f"x: !!python/object/apply:os.system ['{shell}']\n",
        f"x: !!python/object/new:os.system ['{shell}']\n",
        "x: !!python/name:os.system\n",
        laughs,
        "x: " + "[" * 5000,
        "x: " + "9" * 190_000,
    ):
        (folder / "recipe.yaml").write_text(text + bad, encoding="utf-8")
        with pytest.raises(UserError, match="recipe "):
            Recipe.load(folder)
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    (folder / "weights.safetensors").write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(UserError, match="not a safetensors file"):
        Recipe.load(folder)
    assert not marker.exists()


def test_metadata_of_a_whitening_file(tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "w.safetensors"
    extra = {"_target_": "os.system", "_args_": [f"touch {marker}"]}
    save_maps(path, {"all": affine()}, extra)
    maps, content = load_maps(path)
    assert list(maps) == ["all"]
    assert content["_target_"] == "os.system"  # kept as the text it is
    path.write_bytes(pickle.dumps(Payload(marker)))
    with pytest.raises(UserError, match="not a whitening file"):
        load_maps(path)
    assert not marker.exists()


def test_data_folders(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "mine"
    (place / "qrels").mkdir(parents=True)
    for name in ("mine", "corpus", "queries", "conftest", "__init__"):
        (place / f"{name}.py").write_text(CODE.format(marker=str(marker)), encoding="utf-8")
    (place / "corpus.jsonl").write_text('{"_id": "d", "text": "a"}\n', encoding="utf-8")
    (place / "queries.jsonl").write_text('{"_id": "q", "text": "b"}\n', encoding="utf-8")
    judged = "query-id\tcorpus-id\tscore\nq\td\t1\n"
    (place / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    monkeypatch.chdir(place)
    assert len(load_retrieval(place)) == 1
    assert len(list(text_files(str(place / "*.jsonl")).read())) == 2
    assert not marker.exists()


def test_run_folders(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Hydra left in a run's folder is read as text."""
    from whitepool.jobs import read_job

    (tmp_path / ".hydra").mkdir()
    overrides = tmp_path / ".hydra" / "overrides.yaml"
    monkeypatch.setenv("SOME_TOKEN", "not to be shown")
    overrides.write_text("- a=${oc.env:SOME_TOKEN}\n- output=${hydra:job.num}\n", encoding="utf-8")
    assert read_job(tmp_path).overrides == ("a=${oc.env:SOME_TOKEN}", "output=${hydra:job.num}")
    laughs = "- &a [x]\n" + "".join(
        f"- &{b} [{', '.join([f'*{a}'] * 20)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    for bad in (laughs, f"- !!python/object/apply:os.system ['touch {marker}']\n", "- [", "\xff"):
        overrides.write_text(bad, encoding="latin-1")
        with pytest.raises(UserError, match="overrides"):
            read_job(tmp_path)
    assert not marker.exists()


def test_lying_headers(folder: Path, tmp_path: Path) -> None:
    """Sizes and offsets that are not those of the file are errors, at once and without memory."""
    sound = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(sound[:8], "little")
    header = json.loads(sound[8 : 8 + size])
    name = next(key for key in header if key != "__metadata__")
    huge = 2**50

    def rebuilt(**changes: Any) -> bytes:
        raw = json.dumps({**header, name: {**header[name], **changes}}).encode()
        return len(raw).to_bytes(8, "little") + raw + sound[8 + size :]

    for bad in (
        b"",
        sound[:5],
        sound[: 8 + size // 2],
        sound[:-1],
        (2**63).to_bytes(8, "little") + sound[8:],
        (2**40).to_bytes(8, "little") + sound[8:],
        rebuilt(shape=[huge, huge]),
        rebuilt(shape=[huge], data_offsets=[0, 4 * huge]),
        rebuilt(data_offsets=[4, 0]),
        rebuilt(data_offsets=[huge, huge + 4]),
        rebuilt(dtype="PICKLE"),
    ):
        (folder / "model.safetensors").write_bytes(bad)
        with pytest.raises(UserError, match="cannot be loaded"):
            load(folder)
        for read in (load_maps, lambda path: Recipe.load(path.parent)):
            place = recipe().save(tmp_path / "recipe") / "weights.safetensors"
            place.write_bytes(bad)
            with pytest.raises(UserError, match="safetensors"):
                read(place)


@pytest.mark.parametrize("type_", ["evil.Module", "os.system", "subprocess.Popen", 3, None])
def test_modules_of_an_export(
    type_: Any, folder: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.chdir(folder)
    content = [{"idx": 0, "name": "0", "path": "", "type": type_}]
    (folder / "modules.json").write_text(json.dumps(content), encoding="utf-8")
    Recipe(**{**vars(recipe()), "post": None, "arrays": {}}).save(folder / "recipe")
    with pytest.raises((ValueError, TypeError, AttributeError)):
        whitepool.sentence_transformer(folder, device="cpu")
    assert not marker.exists()


def test_an_interpolation_in_a_recipe_is_refused(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It would put the user's environment into config.yaml."""
    monkeypatch.setenv("SOME_TOKEN", "not-to-be-shown")
    monkeypatch.chdir(tmp_path)
    encoder: Any = whitepool.load(folder, device="cpu")
    place = encoder.save(tmp_path / "mine")
    text = (place / "recipe.yaml").read_text(encoding="utf-8")
    spoiled = text.replace("name: model", "name: ${oc.env:SOME_TOKEN}")
    assert spoiled != text
    (place / "recipe.yaml").write_text(spoiled, encoding="utf-8")
    pairs = tmp_path / "x.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\na\tb\t1\n", encoding="utf-8")
    words = ["evaluate", f"recipe={place}", "data=pairs", f"data.path={pairs}", "figures=false"]
    monkeypatch.setattr(sys, "argv", ["whitepool", *words, "hydra.run.dir=run", "trainer=cpu"])
    with pytest.raises(SystemExit) as ended:
        whitepool_command()
    assert ended.value.code == 1
    assert "model.name, which a configuration would read as more" in capsys.readouterr().err
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"not-to-be-shown" not in file.read_bytes()
