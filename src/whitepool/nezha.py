"""NEZHA: BERT's blocks with functional relative positions in place of a position table.

    e_ij = (x_i W^Q) · (x_j W^K + a_ij) / sqrt(d)      z_i = sum_j softmax_j(e_ij) (x_j W^V + a_ij)
    a_ij[2k] = sin(p / 10000^(2k/d))    a_ij[2k+1] = cos(p / 10000^(2k/d))    d dims of a head

The paper writes p = j - i; the released models have p = clip(j - i, -m, m) + m, m their
max_relative_position, which is what is computed here. transformers 5 no longer has this family, so
it is made known to transformers from here; no code of a model folder is run. Source: Wei et al.
2019, "NEZHA: Neural Contextualized Representation for Chinese Language Understanding".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertConfig, BertModel, BertTokenizer
from transformers.models.bert.modeling_bert import BertLayer


class NezhaConfig(BertConfig):
    """BERT's configuration, and how far apart two tokens are told apart."""

    model_type = "nezha"
    max_relative_position: int = 64


class NezhaEmbeddings(nn.Module):
    """Word and token-type embeddings, normalised; there is no position table."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        dim = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, dim, config.pad_token_id)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, dim)
        self.LayerNorm = nn.LayerNorm(dim, eps=config.layer_norm_eps)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None = None, **unused: Any
    ) -> Tensor:
        """(batch, token) -> (batch, token, dim); BERT's further arguments mean nothing here."""
        kinds = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        embedded: Tensor = self.LayerNorm(
            self.word_embeddings(input_ids) + self.token_type_embeddings(kinds)
        )
        return embedded


class NezhaSelfAttention(nn.Module):
    """Self-attention with relative positions in keys and values, by its own softmax."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.reach = config.max_relative_position
        dim = config.hidden_size
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.angles: Tensor | None = None  # no buffer: what loads weights would not fill it

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **unused: Any
    ) -> tuple[Tensor, Tensor]:
        """(batch, token, dim) to the same, and the probabilities (batch, head, token, token)."""
        batch, token, dim = hidden_states.shape
        q, k, v = (
            linear(hidden_states).view(batch, token, self.heads, -1).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        place = torch.arange(token, device=hidden_states.device)
        apart = (place[None] - place[:, None]).clamp(-self.reach, self.reach) + self.reach
        if self.angles is None or self.angles.device != q.device:
            self.angles = sinusoids(2 * self.reach + 1, q.shape[-1]).to(q.device)
        a = self.angles[apart].to(q.dtype)  # (token i, token j, head dim)
        scores = q @ k.transpose(2, 3) + torch.einsum("bhid,ijd->bhij", q, a)
        scores = scores * q.shape[-1] ** -0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = nn.functional.softmax(scores, dim=-1)
        z = weights @ v + torch.einsum("bhij,ijd->bhid", weights, a)
        return z.transpose(1, 2).reshape(batch, token, dim), weights


class NezhaModel(BertModel):
    """BERT with NEZHA's embeddings and attention."""

    config_class = NezhaConfig
    base_model_prefix = "nezha"
    _supports_sdpa = False
    _supports_flash_attn = False
    _supports_flex_attn = False
    _supports_attention_backend = False
    _can_record_outputs = {"hidden_states": BertLayer, "attentions": NezhaSelfAttention}  # noqa: RUF012

    def __init__(self, config: NezhaConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config, add_pooling_layer=add_pooling_layer)
        self.embeddings = NezhaEmbeddings(config)
        for layer in self.encoder.layer:
            layer.attention.self = NezhaSelfAttention(config)
        self.post_init()


def sinusoids(positions: int, dim: int) -> Tensor:
    """(position, dim): sines in even places, cosines in odd ones."""
    frequency = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def register() -> None:
    """Make the family known to transformers; safe to repeat."""
    AutoConfig.register("nezha", NezhaConfig, exist_ok=True)
    AutoModel.register(NezhaConfig, NezhaModel, exist_ok=True)
    AutoTokenizer.register(NezhaConfig, slow_tokenizer_class=BertTokenizer, exist_ok=True)
