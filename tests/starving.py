"""Passes in a process that may not have much memory: argv is CHECKPOINT FOLDER.

Each is made twice, with all the memory there is and then with a limit of the system on the
process's addresses (as ``ulimit -v`` sets) that leaves 64 MB or less, which one batch of
all sentences outgrows. Prints, as JSON, for each pass what it said of that, the largest difference
of its vectors in units of the largest component, and what it gave otherwise.
"""

from __future__ import annotations

import ctypes
import json
import logging
import random
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir

import whitepool
from whitepool.bulk.run import encode
from whitepool.config_help import conf_folder
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.module import SentenceEncoder
from whitepool.plm import FrozenPLM

from tiny import WORDS

ALL = 1_000_000  # tokens
checkpoint, folder = Path(sys.argv[1]), Path(sys.argv[2])
model = [
    "model=bert",
    f"model.path={checkpoint}",
    "trainer=cpu",
    "trainer.enable_progress_bar=false",
]
said: list[str] = []


class Said(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "Out of memory" in record.getMessage():
            said.append(record.getMessage())


@contextmanager
def starved(megabytes: int) -> Iterator[None]:
    """A process that may have so much more memory than it has."""
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def config(name: str, *overrides: str) -> Any:
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return compose(name, [*model, *overrides])


def evaluated(output: str) -> tuple[Any, Any]:
    """Vectors and score of evaluate."""
    kept: list[Any] = []
    end = SentenceEncoder.on_test_epoch_end

    def keeping(self: SentenceEncoder) -> None:
        end(self)
        kept.append(self.vectors)

    SentenceEncoder.on_test_epoch_end = keeping  # type: ignore[method-assign]
    try:
        score = evaluate(config("evaluate", "data=pairs", f"data.path={folder / 'pairs.tsv'}",
            f"batch_tokens={ALL}", "cache=off", "figures=false", "bootstrap=0", "logger=none",
            f"output_dir={folder / output}"))  # fmt: skip
    finally:
        SentenceEncoder.on_test_epoch_end = end  # type: ignore[method-assign]
    return kept[0], score


def of_encoder(output: str) -> tuple[Any, Any]:
    """Vectors of the Python API."""
    encoder = whitepool.load(checkpoint, device="cpu")
    return encoder.encode(sentences, batch_tokens=ALL), None


def bulk(output: str) -> tuple[Any, Any]:
    """Vectors of encode."""
    rows = encode(config("encode", f"input={folder / 'texts.txt'}", f"output={folder / output}",
        "format=npy", f"batch_tokens={ALL}", f"output_dir={folder / 'run'}"))  # fmt: skip
    return np.concatenate([np.load(p) for p in sorted((folder / output).glob("*.npy"))]), rows


draw = random.Random(0)
sentences = [" ".join(draw.choices(WORDS, k=draw.randint(40, 60))) for _ in range(3000)]
(folder / "texts.txt").write_text("\n".join(sentences), encoding="utf-8")
lines = [f"{a}\t{b}\t{draw.random()}" for a, b in zip(sentences[::2], sentences[1::2], strict=True)]
(folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *lines, ""]))
logging.getLogger("whitepool").addHandler(Said())
result = {}
for run in (evaluated, of_encoder, bulk):
    wanted, other = run(f"{run.__name__}_whole")
    assert not said
    for megabytes in (64, 48, 32):  # what was freed may be had again, and is not the same each time
        with starved(megabytes):
            found, again = run(f"{run.__name__}_{megabytes}")
        if said:
            break
    difference = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    result[run.__name__] = {"said": said[:], "difference": difference, "gave": [other, again]}
    said.clear()

long = " ".join(draw.choices(WORDS, k=50))
encoder: Encoder = whitepool.load(checkpoint, device="cpu")
embedding = FrozenPLM.states  # a single text that does not fit: the smallest tensor is too large


def too_large(self: FrozenPLM, *arguments: Any) -> Any:
    np.empty(2**33, dtype=np.float64)  # 64 GiB
    return embedding(self, *arguments)


FrozenPLM.states = too_large  # type: ignore[method-assign]
with starved(64):
    try:
        encoder.encode([long, "a dog"])
    except UserError as error:
        result["one"] = {"error": str(error)}
sys.stdout.write(json.dumps(result))
