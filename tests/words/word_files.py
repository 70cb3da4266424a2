"""Word-vector files in every form, written here from their published descriptions."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

WORDS = ["the", "dog", "Dog", "café", "日本", "n't", "."]


def vectors(words: list[str] = WORDS, dim: int = 5) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(words), dim)).astype(np.float32)


def text(path: Path, words: list[str], table: np.ndarray, *, header: bool, tail: str = "") -> Path:
    lines = [f"{len(words)} {table.shape[1]}"] * header
    lines += [
        " ".join([word, *map(repr, row.tolist())]) + tail
        for word, row in zip(words, table, strict=True)
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def word2vec(path: Path, words: list[str], table: np.ndarray, *, end: bytes = b"") -> Path:
    body = b"".join(
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, table, strict=True)
    )
    path.write_bytes(f"{len(words)} {table.shape[1]}\n".encode() + body)
    return path


def fasttext(
    path: Path,
    words: list[str],
    matrix: np.ndarray,
    *,
    bucket: int,
    minn: int,
    maxn: int,
    version: int = 12,
    quantised: bool = False,
    labels: tuple[str, ...] = (),
    pruned: int = -1,
) -> Path:
    """The form that fastText's saveModel writes, as far as the input matrix."""
    dim = matrix.shape[1]
    raw = struct.pack("<ii", 793712314, version)
    raw += struct.pack("<12i", dim, 5, 1, 1, 5, 1, 2, 2, bucket, minn, maxn, 100)
    raw += struct.pack("<d", 1e-4)
    names = [*words, *labels]
    raw += struct.pack("<iiiqq", len(names), len(words), len(labels), 99, pruned)
    for i, name in enumerate(names):
        raw += name.encode() + b"\0" + struct.pack("<qb", 7, int(i >= len(words)))
    raw += struct.pack("<?", quantised) + struct.pack("<qq", *matrix.shape)
    path.write_bytes(raw + matrix.astype("<f4").tobytes())
    return path
