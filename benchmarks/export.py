"""A model and a mean over its tokens as an ONNX file."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch


class _Mean(torch.nn.Module):
    """A model and the mean over its last states."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(batch, token) twice -> (batch, dim)."""
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(states.dtype)
        means: torch.Tensor = (states * weights).sum(1) / weights.sum(1)
        return means


def export(folder: Path, work: Path, attention: str) -> Path:
    """The ONNX file of a model and a mean over its tokens, for any batch and length.

    Args:
        folder: the model.
        work: where the file goes.
        attention: implementation to export; models that have only ``eager`` are exported so.
    """
    import onnx  # noqa: F401  (torch's exporter needs it)
    from transformers import AutoModel

    try:
        model = AutoModel.from_pretrained(folder, attn_implementation=attention)
    except ValueError:
        model, attention = AutoModel.from_pretrained(folder, attn_implementation="eager"), "eager"
    path = work / f"{folder.name}-{attention}.onnx"
    if path.exists():
        return path
    example = torch.tensor([[1, 2, 3], [3, 2, 0]])
    axes = {0: "batch", 1: "token"}
    with warnings.catch_warnings():
        # The exporter that works on graphs takes six times as long, and what it makes is slower.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Mean(model.eval()),
            (example, (example > 0).long()),
            path,
            dynamo=False,
            opset_version=17,
            input_names=["input_ids", "attention_mask"],
            output_names=["vectors"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "vectors": {0: "batch"}},
        )
    return path
