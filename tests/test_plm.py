"""Loading and tokenising: limits, truncation, blanks, old checkpoints, missing weights."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from whitepool import checkpoint as loading
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import FirstToken, LinearPooling, Uniform
from whitepool.states import Needs, pad

from tiny import WORDS, make_checkpoint, make_tokenizer

Folder = Callable[[str], Path]


def copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


@pytest.mark.parametrize(
    ("family", "limit"), [("bert", 64), ("roberta", 64), ("mpnet", 64), ("gpt2", 64), ("qwen3", 64)]
)
def test_the_true_maximum_length_can_be_used(
    family: str, limit: int, plm: Callable[[str], Any]
) -> None:
    """RoBERTa's and MPNet's 66 positions hold 64 tokens; one more would be an IndexError."""
    model = plm(family)
    assert model.limit == limit
    tokenized = model.tokenize(["dog " * 500, "dog"])
    assert tokenized.truncated == [True, False]
    assert len(tokenized.ids[0]) == limit
    states = model(pad(tokenized.ids, model.pad_id), Needs((-1,)))
    assert torch.isfinite(states.hidden[model.depth]).all()


def test_max_length_keeps_special_tokens(plm: Callable[[str], Any]) -> None:
    ids = plm("bert").tokenize(["a man plays guitar"], max_length=4).ids[0]
    assert len(ids) == 4
    assert (ids[0], ids[-1]) == (0, 2)
    with pytest.raises(UserError, match="maximum length 2 is outside 3 to 64"):
        plm("bert").tokenize(["a"], max_length=2)


def test_stated_sequence_length_is_respected(tmp_path: Path, checkpoint: Folder) -> None:
    folder = copy(checkpoint("bert"), tmp_path / "m")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16}))
    assert FrozenPLM.from_pretrained(path=folder).limit == 16


@pytest.mark.parametrize("text", ["", " ", "\t\n \u3000"])
def test_blank_texts_have_no_tokens(text: str, plm: Callable[[str], Any]) -> None:
    assert plm("bert").tokenize([text, "dog"]).ids[0] == ()


@pytest.mark.parametrize("text", ["😀😀", "zzz qqq", ".", "\u200b"])
def test_odd_texts_have_finite_vectors(text: str, plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    tokens = pad(model.tokenize([text]).ids, model.pad_id)
    head = LinearPooling(Uniform(), [1, -1])
    assert torch.isfinite(head(model(tokens, head.needs))).all()


def test_nothing_learns(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    assert not model.model.training
    assert not any(p.requires_grad for p in model.parameters())


def test_bfloat16(checkpoint: Folder, plm: Callable[[str], Any]) -> None:
    model = FrozenPLM.from_pretrained(path=checkpoint("bert"), dtype="bfloat16")
    assert next(model.model.parameters()).dtype == torch.bfloat16
    head = LinearPooling(FirstToken(), [-1])
    tokens = pad(model.tokenize(["the dog runs"]).ids, model.pad_id)
    found, wanted = (head(m(tokens, head.needs)) for m in (model, plm("bert")))
    assert found.dtype == torch.float32
    assert torch.cosine_similarity(found, wanted).item() > 0.99


def test_missing_pooler_weights_are_refused_and_the_rest_works(
    tmp_path: Path, checkpoint: Folder
) -> None:
    folder = copy(checkpoint("bert"), tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    kept = {k: v for k, v in weights.items() if "pooler" not in k}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    model = FrozenPLM.from_pretrained(path=folder, name="mine")
    model.check(Needs((-1,)))
    with pytest.raises(UserError, match="checkpoint of model mine has no pooler weights"):
        model.check(Needs(pooler=True))


def test_missing_weights_of_a_block_are_refused(tmp_path: Path, checkpoint: Folder) -> None:
    folder = copy(checkpoint("bert"), tmp_path / "m")
    weights = load_file(folder / "model.safetensors")
    kept = {k: v for k, v in weights.items() if "layer.1." not in k}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match="which would be random"):
        FrozenPLM.from_pretrained(path=folder)


def bin_checkpoint(source: Path, folder: Path) -> Path:
    copy(source, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_old_checkpoints_are_read_without_unpickling(
    tmp_path: Path, checkpoint: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    folder = bin_checkpoint(checkpoint("bert"), tmp_path / "m")
    model = FrozenPLM.from_pretrained(path=folder)
    assert "weights-only reader" in caplog.text
    assert model.provenance["format"] == "bin, weights-only reader"


def test_old_checkpoints_need_a_safe_reader(
    tmp_path: Path, checkpoint: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bin_checkpoint(checkpoint("bert"), tmp_path / "m")
    monkeypatch.setattr(loading.torch, "__version__", "2.9.1+cpu")
    with pytest.raises(UserError, match=r"install torch 2.10 or later"):
        FrozenPLM.from_pretrained(path=folder)


def test_a_hostile_checkpoint_runs_nothing(tmp_path: Path, checkpoint: Folder) -> None:
    folder = bin_checkpoint(checkpoint("bert"), tmp_path / "m")
    proof = tmp_path / "proof"

    class Hostile:
        def __reduce__(self) -> Any:
            return Path.touch, (proof,)

    torch.save({"embeddings": Hostile()}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="holds more than tensors, which is not read"):
        FrozenPLM.from_pretrained(path=folder)
    assert not proof.exists()


def test_code_of_a_model_folder_is_not_run(tmp_path: Path, checkpoint: Folder) -> None:
    folder = copy(checkpoint("bert"), tmp_path / "m")
    proof = tmp_path / "proof"
    (folder / "evil.py").write_text(f"open({str(proof)!r}, 'w')\nclass M: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"auto_map": {"AutoConfig": "evil.M", "AutoModel": "evil.M"}, "model_type": "evil"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="cannot be loaded"):
        FrozenPLM.from_pretrained(path=folder)
    assert not proof.exists()


def test_the_same_folder_loads_the_same_model_twice(checkpoint: Folder) -> None:
    one, two = (FrozenPLM.from_pretrained(path=checkpoint("roberta")) for _ in range(2))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert one.provenance == two.provenance


def test_nested_sentence_transformers_folders(tmp_path: Path) -> None:
    make_checkpoint("bert", tmp_path / "0_Transformer")
    modules = [{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert FrozenPLM.from_pretrained(path=tmp_path).depth == 3


def test_hub_ids_offline_end_in_a_sentence() -> None:
    with pytest.raises(UserError, match="model nobody/nothing cannot be loaded"):
        FrozenPLM.from_pretrained("nobody/nothing")


def test_tokenizers_without_any_special_token() -> None:
    assert make_tokenizer("gpt2").pad_token_id is None


def test_the_same_words_in_another_order_tie_in_a_static_average(plm: Callable[[str], Any]) -> None:
    """Summed in float32, the order of summation would tell such sentences apart."""
    model = plm("bert")
    draw = random.Random(0)
    words = [draw.choice(WORDS) for _ in range(50)]
    texts = [" ".join(draw.sample(words, len(words))) for _ in range(20)]
    head = LinearPooling(Uniform(), ["static"])
    vectors = head(model(pad(model.tokenize(texts).ids, model.pad_id), head.needs))
    assert (vectors == vectors[0]).all()
