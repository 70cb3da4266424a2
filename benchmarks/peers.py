"""Other programs that turn sentences into vectors, each behind the same two lines.

All take a batch size and sort by length themselves, as sentence-transformers does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.export import export
from whitepool.errors import UserError

Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str], int], Floats]
BATCH_SIZES = (16, 32, 64, 128)
BASE = "sentence-transformers"  # what the others are compared with


class Missing(Exception):
    """A peer that cannot run here, and why."""


@dataclass(frozen=True)
class Peer:
    """A program to compare with.

    Attributes:
        name: as in `PEERS`.
        encode: texts and a batch size to vectors, (sentence, dim).
    """

    name: str
    encode: Encode


def load(names: Sequence[str] | None, folder: Path, work: Path) -> tuple[list[Peer], list[str]]:
    """Load peers of a model.

    Args:
        names: which; None for the usual ones that can run here.
        folder: the model.
        work: where exported models go.

    Returns:
        The peers, and a line on each that was left out.

    Raises:
        UserError: an unknown name, or one given by name cannot run here.
    """
    peers, left_out = [], []
    for name in names if names is not None else USUAL:
        if name not in PEERS:
            raise UserError(f"--peers has {name!r}: choose from {', '.join(PEERS)}, or none.")
        try:
            peers.append(Peer(name, PEERS[name](folder, work)))
        except (ImportError, Missing) as error:
            reason = str(error)
            if isinstance(error, ImportError):
                reason = f'{error.name} is not there: pip install "whitepool[benchmarks]"'
            if names is not None:
                raise UserError(f"peer {name} cannot run: {reason}.") from error
            left_out.append(f"{name} is left out: {reason}.")
    return peers, left_out


def _sentence_transformers(dtype: str) -> Callable[[Path, Path], Encode]:
    def make(folder: Path, work: Path) -> Encode:
        from sentence_transformers import SentenceTransformer

        arguments = {"dtype": getattr(torch, dtype)}
        model = SentenceTransformer(str(folder), device="cpu", model_kwargs=arguments)

        def encode(texts: Sequence[str], batch_size: int) -> Floats:
            found = model.encode(list(texts), batch_size=batch_size, show_progress_bar=False)
            return np.asarray(found)

        return encode

    return make


def _onnxruntime(folder: Path, work: Path) -> Encode:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    exported = export(folder, work, "eager")
    session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    return _over_batches(folder, lambda inputs: session.run(None, inputs)[0])


def _openvino(precision: str) -> Callable[[Path, Path], Encode]:
    def make(folder: Path, work: Path) -> Encode:
        import openvino

        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property(
            "CPU", "OPTIMIZATION_CAPABILITIES"
        ):
            raise Missing("OpenVINO has no bfloat16 on this processor")
        settings = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "NUM_STREAMS": 1,
        }
        exported = openvino.convert_model(export(folder, work, "sdpa"))
        compiled = core.compile_model(exported, "CPU", settings)
        return _over_batches(folder, lambda inputs: compiled(inputs)[0])

    return make


PEERS: dict[str, Callable[[Path, Path], Encode]] = {
    "sentence-transformers": _sentence_transformers("float32"),
    "sentence-transformers-bf16": _sentence_transformers("bfloat16"),
    "onnxruntime": _onnxruntime,
    "openvino": _openvino("f32"),
    "openvino-bf16": _openvino("bf16"),
}
USUAL = ("sentence-transformers", "onnxruntime", "openvino", "openvino-bf16")


def _over_batches(folder: Path, run: Callable[[dict[str, Any]], Any]) -> Encode:
    """Encode in padded batches of similar length."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)

    def encode(texts: Sequence[str], batch_size: int) -> Floats:
        result: Floats | None = None
        for rows, inputs in _batches(tokenizer, texts, batch_size):
            vectors = run(inputs)
            if result is None:
                result = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
            result[rows] = vectors
        assert result is not None
        return result

    return encode


def _batches(
    tokenizer: Any, texts: Sequence[str], batch_size: int
) -> Iterator[tuple[list[int], dict[str, Any]]]:
    ids = tokenizer(list(texts), truncation=True)["input_ids"]
    order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        longest = len(ids[rows[0]])
        padded = np.zeros((len(rows), longest), dtype=np.int64)
        mask = np.zeros_like(padded)
        for i, row in enumerate(rows):
            padded[i, : len(ids[row])] = ids[row]
            mask[i, : len(ids[row])] = 1
        yield rows, {"input_ids": padded, "attention_mask": mask}
