"""Feed-forward parts in blocks of rows give what transformers' own pass gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModel

from whitepool import feedforward
from whitepool.feedforward import in_blocks

from tiny import FAMILIES

PARTS = {"bert", "roberta", "distilbert", "albert", "electra", "layoutlm", "xlm"} | {
    "mpnet", "deberta", "nezha",
    "gpt2", "modernbert", "gemma3", "qwen3", "xlm_roberta", "roformer", "llama",
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.integers(1, 13), batch=st.integers(1, 4), length=st.integers(1, 6))
def test_same_states(
    family: str,
    plm: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    batch: int,
    length: int,
) -> None:
    """Blocks of some rows against one block, which calls what transformers wrote."""
    model = plm(family).model
    ids = torch.randint(4, 20, (batch, length), generator=torch.Generator().manual_seed(rows))
    sizes: list[int] = []
    linears = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    hooks = [
        linear.register_forward_pre_hook(lambda _, x: sizes.append(x[0][..., 0].numel()))
        for linear in linears
    ]
    with torch.no_grad():
        assert bool(in_blocks(model)) == (family in PARTS)
        whole = model(input_ids=ids).last_hidden_state
        seen_whole = len(sizes)
        monkeypatch.setattr(feedforward, "VALUES", rows * whole.shape[-1])
        parts = model(input_ids=ids).last_hidden_state
        monkeypatch.undo()
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(parts, whole, atol=2e-6, rtol=2e-6)
    if family in PARTS - {"gpt2"} and rows < batch * length:  # GPT-2's are of a class of its own
        assert len(sizes) > 2 * seen_whole
        assert min(sizes) <= rows


def test_a_copy_uses_its_own_weights(
    checkpoint: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedforward, "VALUES", 64)
    model = AutoModel.from_pretrained(checkpoint("bert")).eval()
    in_blocks(model)
    other = copy.deepcopy(model)
    ids = torch.arange(4, 20).view(2, 8)
    with torch.no_grad():
        before = model(input_ids=ids).last_hidden_state
        for parameter in other.parameters():
            parameter.zero_()
        torch.testing.assert_close(model(input_ids=ids).last_hidden_state, before)
        assert not other(input_ids=ids).last_hidden_state.any()


def test_a_model_that_moved_is_not_cut(checkpoint: Callable[[str], Any]) -> None:
    model = AutoModel.from_pretrained(checkpoint("bert"))
    in_blocks(model)
    layer = model.to("meta").encoder.layer[0]
    x = torch.empty(1, feedforward.VALUES, 32, device="meta")
    assert layer.feed_forward_chunk(x).shape == x.shape
