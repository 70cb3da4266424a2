"""Tiny random checkpoints of every family, made from their configurations; no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

WORDS = (
    "a an the man woman dog cat plays runs eats music guitar food in on park is not two"
).split()
SPECIAL = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
ROBERTA = {**SMALL, "max_position_embeddings": 66, "pad_token_id": 1}
DECODER = {**SMALL, "num_key_value_heads": 2, "head_dim": 8}

# family -> (configuration class, its arguments)
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", SMALL),
    "roberta": ("RobertaConfig", ROBERTA),
    "distilbert": (
        "DistilBertConfig",
        {"dim": 32, "n_heads": 4, "n_layers": 3, "hidden_dim": 48, "max_position_embeddings": 64},
    ),
    "albert": ("AlbertConfig", {**SMALL, "embedding_size": 16}),
    "electra": ("ElectraConfig", {**SMALL, "embedding_size": 16}),
    "deberta": (
        "DebertaConfig",
        {
            **SMALL,
            "relative_attention": True,
            "pos_att_type": "c2p|p2c",
            "position_biased_input": False,
        },
    ),
    "mpnet": ("MPNetConfig", ROBERTA),
    "xlm": (
        "XLMConfig",
        {"emb_dim": 32, "n_heads": 4, "n_layers": 3, "max_position_embeddings": 64},
    ),
    "t5": ("T5Config", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4}),
    "layoutlm": ("LayoutLMConfig", SMALL),
    "squeezebert": (
        "SqueezeBertConfig",
        {**SMALL, "embedding_size": 32, **{f"{part}_groups": 2 for part in ("q", "k", "v")}},
    ),
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 64}),
    "modernbert": ("ModernBertConfig", {**SMALL, "pad_token_id": 3, "local_attention": 4}),
    "xlm_roberta": ("XLMRobertaConfig", ROBERTA),
    "nezha": ("NezhaConfig", {**SMALL, "max_relative_position": 4}),
    "roformer": ("RoFormerConfig", {**SMALL, "embedding_size": 32}),
    "gemma3": ("Gemma3TextConfig", {**DECODER, "sliding_window": 4}),
    "qwen3": ("Qwen3Config", DECODER),
    "llama": ("LlamaConfig", DECODER),
    "opt": ("OPTConfig", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
}
DECODERS = ("gpt2", "gemma3", "qwen3", "llama", "opt")


def make_tokenizer(family: str) -> Any:
    """A word-level tokenizer; decoders get no pad and no special token."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    # RoBERTa and MPNet compute positions from the padding index 1, so it must be the pad token.
    vocabulary = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", *WORDS, ".", ","]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocabulary)}, "[UNK]"))
    core.normalizer = normalizers.Lowercase()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if family in DECODERS:
        return PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]")
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=core, **SPECIAL)


def make_checkpoint(family: str, folder: Path, seed: int = 0, **changes: Any) -> Path:
    """Write a tiny random checkpoint of ``family`` and its tokenizer into ``folder``."""
    import transformers

    from whitepool import nezha

    class_name, arguments = FAMILIES[family]
    tokenizer = make_tokenizer(family)
    nezha.register()
    config_class = getattr(nezha if family == "nezha" else transformers, class_name)
    config = config_class(vocab_size=len(tokenizer), **{**arguments, **changes})
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(config)
    for name, parameter in model.named_parameters():  # far from the near-zero initial weights
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
        elif "bias" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def shared_folder() -> Path:
    """The folder of published data sets and reference values, which the project does not ship."""
    default = Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get("WHITEPOOL_SHARED", default))
