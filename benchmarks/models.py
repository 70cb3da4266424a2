"""Model folders to time: the embedded ones, and shapes with random weights made on the fly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from whitepool.assets import ASSETS, fetch
from whitepool.batches import make_batch
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.states import Needs

NAMES = ("all_minilm", "all_mpnet", "bert-base", "tiny")
TINY = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def folder(name: str, work: Path, texts: Sequence[str]) -> Path:
    """The folder of a model that whitepool and its peers can load.

    Args:
        name: one of `NAMES`, or a folder.
        work: where models with random weights are written. They take the time that trained ones
            take; ``bert-base`` has MiniLM's tokenizer and ``tiny`` knows the words of ``texts``.
        texts: sentences that will be encoded.

    Raises:
        UserError: neither a name nor a folder.
    """
    if name in ("bert-base", "tiny"):
        path = work / name
        if not path.exists():
            _make(path, texts if name == "tiny" else None)
        return path
    if name in ASSETS:
        return fetch(name)
    if (Path(name).expanduser() / "config.json").exists():
        return Path(name).expanduser()
    raise UserError(f"--model is {name!r}: choose one of {', '.join(NAMES)}, or a model's folder.")


def reads_masks(plm: FrozenPLM) -> bool:
    """Whether templates with a mask token suit a model; those for decoders suit all others."""
    return plm.tokenizer.mask_token is not None and not is_decoder(plm)


def is_decoder(plm: FrozenPLM) -> bool:
    """Whether a token's states depend on nothing behind it.

    A mask token does not tell: Gemma's vocabulary has one, and Gemma was never trained on it.
    """
    ids = plm.tokenize(["a b", "a c c"], plm.max_length).ids
    shared = next(i for i, (one, other) in enumerate(zip(*ids, strict=False)) if one != other)
    layer = Needs((plm.depth,))
    first, second = (
        states.hidden[plm.depth][0, :shared]
        for text in ids
        for _, states in plm.states(make_batch([text], [0]), layer)
    )
    return torch.allclose(first, second, atol=1e-4)


def _make(path: Path, texts: Sequence[str] | None) -> None:
    from transformers import AutoTokenizer, BertConfig, BertModel

    if texts is None:
        tokenizer, shape = AutoTokenizer.from_pretrained(fetch("all_minilm")), {}
    else:
        tokenizer, shape = _word_level(texts), TINY
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=len(tokenizer), **shape))
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


def _word_level(texts: Sequence[str]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    words = dict.fromkeys(word for text in texts for word in text.split())
    vocabulary = {word: i for i, word in enumerate([*special.values(), "[UNK]", *words])}
    core = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=64, unk_token="[UNK]", **special
    )
