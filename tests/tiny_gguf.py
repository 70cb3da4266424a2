"""A GGUF file of a tiny Qwen 2, written as llama.cpp's converters write theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

DIM, FEED, BLOCKS, HEADS = 32, 64, 2, 2
WORDS = ("th", "the", "in", "an", "on")


def write(path: Path, seed: int = 0) -> Path:
    """Write it; weights are drawn by ``seed``, and all but the norms' are quantised to 8 bits."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    tokens = [*letters, *WORDS, "<|endoftext|>"]
    merges = ["t h", "th e", "i n", "a n", "o n"]
    writer = GGUFWriter(path, "qwen2")
    writer.add_block_count(BLOCKS)
    writer.add_context_length(64)
    writer.add_embedding_length(DIM)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 1) + [3])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_pad_token_id(len(tokens) - 1)
    draw = np.random.default_rng(seed)

    def weight(name: str, *shape: int) -> None:
        values = quantize(draw.normal(0, 0.3, shape).astype(np.float32), GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, values, raw_dtype=GGMLQuantizationType.Q8_0)

    def vector(name: str, size: int) -> None:
        writer.add_tensor(name, draw.normal(1, 0.1, size).astype(np.float32))

    weight("token_embd.weight", len(tokens), DIM)
    vector("output_norm.weight", DIM)
    for block in range(BLOCKS):
        for part in ("attn_q", "attn_k", "attn_v"):
            weight(f"blk.{block}.{part}.weight", DIM, DIM)
            vector(f"blk.{block}.{part}.bias", DIM)
        weight(f"blk.{block}.attn_output.weight", DIM, DIM)
        weight(f"blk.{block}.ffn_gate.weight", FEED, DIM)
        weight(f"blk.{block}.ffn_up.weight", FEED, DIM)
        weight(f"blk.{block}.ffn_down.weight", DIM, FEED)
        vector(f"blk.{block}.attn_norm.weight", DIM)
        vector(f"blk.{block}.ffn_norm.weight", DIM)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
