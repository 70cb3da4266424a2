"""Readers of binary files and recipe folders, as `reader_cases` has those of text."""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import yaml

from whitepool.data import corpus_files, pairs_file, row_sources
from whitepool.data.table import ScoredSet
from whitepool.maps.affine import Affine, load_maps, save_maps
from whitepool.moments import Moments
from whitepool.moments_file import load_moments, merged, save_moments
from whitepool.pooling import LinearPooling, Uniform
from whitepool.pooling.spec import describe
from whitepool.predictions import load_predictions, save_predictions
from whitepool.recipe import ModelSpec, PostSpec, Recipe

from reader_cases import CUT, NAMES, Reader, parts, put

DIM = 3


def written(write: Callable[[Path], object], name: str = "x.safetensors") -> bytes:
    with tempfile.TemporaryDirectory() as place:
        write(Path(place))
        return (Path(place) / name).read_bytes()


def affine() -> Affine:
    return Affine(torch.arange(3.0).double(), torch.eye(3, dtype=torch.float64)[:, :2], 9.0, 3)


def moments() -> Moments:
    return Moments(DIM).update(torch.arange(12.0).double().reshape(4, DIM) ** 2)


def recipe() -> Recipe:
    return Recipe(
        model=ModelSpec("tiny", id="org/tiny", revision="abc"),
        pooling=describe(LinearPooling(Uniform(), [1, -1]))[0],
        max_length=64,
        post=PostSpec("pca", "some: sentences", 120.0, 3, 2, k=2),
        provenance={"command": "python train.py", "n": 3},
        versions={"torch": "2.13"},
        arrays=affine().arrays(),
    )


def recipe_seed() -> bytes:
    with tempfile.TemporaryDirectory() as place:
        folder = recipe().save(Path(place) / "recipe")
        names = ("recipe.yaml", "weights.safetensors")
        return CUT.join((folder / name).read_bytes() for name in names)


def predictions(folder: Path) -> None:
    one = ScoredSet("t", "", np.zeros((0, 2), np.int64), np.arange(4.0), False, "test")
    save_predictions(folder, [one], {"raw": [np.arange(4.0)], "post": [np.ones(4)]}, "all")


def parquet_seed() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    columns = {"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 2.5]}
    pq.write_table(pa.table({**columns, "text": ["a dog", "a cat"]}), sink, compression="none")
    return sink.getvalue()


def parquet_rows(raw: bytes) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(io.BytesIO(raw)).num_rows)


def read_maps(raw: bytes, folder: Path) -> int:
    maps, _ = load_maps(put(folder, "x.safetensors", raw))
    for one in maps.values():
        assert one(torch.ones(one.dim, dtype=torch.float64)).shape == (one.directions,)
        assert one.mean.isfinite().all()
        assert one.basis.isfinite().all()
    return 1


def read_moments(raw: bytes, folder: Path) -> int:
    path = put(folder, "x.safetensors", raw)
    found, _ = load_moments(path)
    assert found.scatter.isfinite().all()
    merged([path], {})
    return 1


def read_predictions(raw: bytes, folder: Path) -> int:
    put(folder, "predictions.safetensors", raw)
    found = load_predictions(folder)
    for stage in found.by_stage.values():
        for one, scored in zip(stage, found.sets, strict=True):
            assert one.shape[-1] == len(scored.gold)
    return 1


def read_recipe(raw: bytes, folder: Path) -> int:
    text, weights = parts(raw, 2)
    put(folder, "recipe.yaml", text)
    put(folder, "weights.safetensors", weights)
    found = Recipe.load(folder)
    assert found.head is not None
    if found.affine is not None:
        assert found.affine(torch.ones(found.affine.dim)).shape == (found.affine.directions,)
    return 1


def pairs_parquet(raw: bytes, folder: Path) -> int:
    return len(list(pairs_file.read_rows(raw, Path("x.parquet"), NAMES)))


def corpus_parquet(raw: bytes, folder: Path) -> int:
    reading = corpus_files.parquet_files(str(put(folder, "x.parquet", raw))).read()
    return len(list(reading)) + reading.blank


def encode_parquet(raw: bytes, folder: Path) -> int:
    (source,) = row_sources.open_input(str(put(folder, "x.parquet", raw)))
    return len(list(source.read()))


def one(_: bytes) -> int:
    return 1


META = tuple(json.dumps(x).encode() for x in ("schema", "kind", "vectors", "corpora", "fit_sets"))
ARRAYS = (
    *META,
    b"F64",
    b"F32",
    b"BF16",
    b"I64",
    b"BOOL",
    b"F8_E4M3",
    b"[3]",
    b"[3,3]",
    b"[0]",
    b"[1]",
    b"mean",
    b"basis",
    b"count",
    b'"data_offsets"',
    b"\\u0022",
    b"\\",
    b"[]",
    b"{}",
    b"__metadata__",
    b"\0\0\0\0\0\0\xf0\x7f",
    b"\0\0\0\0\0\0\xf8\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
)
YAML = (
    b"kind: linear\n",
    b"kind: flow\n",
    b"schema: 2\n",
    b"- 1\n",
    b"  - static\n",
    b"k: 1\n",
    b"rank: 1\n",
    b"directions: 3\n",
    b"&a ",
    b"*a",
    b"!!python/object:os.system ",
    b"<<: ",
    b"? ",
    b"|\n",
    b".inf",
    b"1e400",
    b"2001-01-01",
    b"1:1",
    b"0b1",
    b"~",
    b"=",
    b"%YAML 1.1\n---\n",
    b"---\n",
    b"...\n",
    b"  _target_: os.system\n",
    b"path: /../x\n",
    b"path: /tmp/x\n",
    b"template: x\n",
    b"count: 1\n",
)

VALUES = (
    None,
    True,
    -1,
    0,
    1,
    2,
    2**40,
    2**70,
    1e300,
    "x",
    "",
    "pca",
    "test",
    "graded",
    "post",
    "\ud800",
    [],
    {},
    [1],
    ["x"],
    [[]],
    {"x": 1},
    {"all": {}},
    {"all": {"count": 1, "rank": 1}},
    [{}],
    "F32",
    "BF16",
    "I64",
    "F8_E4M3",
    [3],
    [3, 3],
    [0],
    [2],
    [0, 8],
    [8, 0],
    [0, 2**62],
    float("nan"),
)


def changed(value: object, draw: random.Random) -> object:
    """A JSON value with one part of it replaced, dropped or added."""
    if isinstance(value, str) and value[:2] == '{"' and draw.random() < 0.9:
        return json.dumps(changed(json.loads(value), draw))
    if isinstance(value, list | dict) and value and draw.random() < 0.8:
        copy = dict(value) if isinstance(value, dict) else dict(enumerate(value))
        key = draw.choice(list(copy))
        match draw.randrange(8):
            case 0:
                del copy[key]
            case 1:
                copy[draw.choice(("x", "kind", "schema", 0))] = copy[key]
            case _:
                copy[key] = changed(copy[key], draw)
        return (
            {str(k): v for k, v in copy.items()} if isinstance(value, dict) else list(copy.values())
        )
    return draw.choice(VALUES)


def header(raw: bytes, draw: random.Random) -> bytes:
    """A safetensors file with another header, of the right length, or other numbers."""
    size = int.from_bytes(raw[:8], "little")
    content, body = raw[8 : 8 + size], bytearray(raw[8 + size :])
    if draw.random() < 0.8:
        content = json.dumps(changed(json.loads(content), draw)).encode()
    else:
        at = 8 * draw.randrange(len(body) // 8)
        body[at : at + 8] = draw.choice(ARRAYS[-3:])
    return len(content).to_bytes(8, "little") + content + bytes(body)


def yaml_value(raw: bytes, draw: random.Random) -> bytes:
    """A recipe of which one value of its YAML is another, or its arrays' header is."""
    text, weights = parts(raw, 2)
    if draw.random() < 0.3:
        return text + CUT + header(weights, draw)
    content = changed(yaml.safe_load(text), draw)
    return yaml.dump(content, Dumper=yaml.SafeDumper).encode("utf-8", "replace") + CUT + weights


FILES = (
    Reader(
        "whitening",
        read_maps,
        one,
        written(lambda p: save_maps(p / "x.safetensors", {"all": affine()}, {"model": "m"})),
        ARRAYS,
        header,
    ),
    Reader(
        "moments",
        read_moments,
        one,
        written(
            lambda p: save_moments(p / "x.safetensors", moments(), {"vectors": {}, "corpora": []})
        ),
        ARRAYS,
        header,
    ),
    Reader(
        "predictions",
        read_predictions,
        one,
        written(predictions, "predictions.safetensors"),
        ARRAYS,
        header,
    ),
    Reader("recipe", read_recipe, one, recipe_seed(), (*YAML, *ARRAYS[5:]), yaml_value),
    Reader("pairs.parquet", pairs_parquet, parquet_rows, parquet_seed(), ARRAYS[-3:]),
    Reader("corpus.parquet", corpus_parquet, parquet_rows, parquet_seed(), ARRAYS[-3:]),
    Reader("encode.parquet", encode_parquet, parquet_rows, parquet_seed(), ARRAYS[-3:]),
)
