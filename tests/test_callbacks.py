"""The whitening callback in a real Lightning pass, against one-shot moments of repeated rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from whitepool.callbacks import WhiteningCallback
from whitepool.data import PairSet, Task
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.pooling import LinearPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.scores import cosines
from whitepool.whitening import Whitening

PAIRS = [
    ("the dog runs", "the cat runs"),
    ("the dog runs", "the dog runs"),
    ("the dog runs", "a man plays guitar"),
    ("  ", "two woman"),
    ("two woman in the park", "the dog runs"),
]


def run(model: Any, **options: Any) -> tuple[SentenceTable, SentenceEncoder, WhiteningCallback]:
    first, second = zip(*PAIRS, strict=True)
    pairs = PairSet("t", "", "test", first, second, np.arange(5.0), "made", "0")
    table = SentenceTable.build([Task("t", (pairs,))], model.tokenize)
    callback = WhiteningCallback(Whitening(), "task", **options)
    encoder = SentenceEncoder(model, LinearPooling(Uniform(), [1, -1]))
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    data = SentenceDataModule(table, batch_tokens=12)
    trainer.test(encoder, datamodule=data, verbose=False)
    return table, encoder, callback


@pytest.mark.parametrize("chunk", [1, 3, 2048])
def test_maps_equal_one_shot_over_repeated_sentences(chunk: int, plm: Callable[[str], Any]) -> None:
    table, encoder, callback = run(plm("bert"), chunk=chunk)
    rows = [row for row in table.scored[0].pairs.ravel() if table.ids[row]]
    assert len(rows) == 9  # one of ten sentences is blank
    repeated = torch.from_numpy(encoder.vectors[rows])
    wanted = Whitening().fit(Moments(repeated.shape[1]).update(repeated))
    found = callback.maps["t"]
    assert (found.count, found.rank) == (9, wanted.rank)
    assert torch.allclose(found.mean, wanted.mean, atol=1e-10)
    assert torch.allclose(found(repeated.double()), wanted(repeated.double()), atol=1e-6)


def test_blank_sentences_have_cosine_zero_before_and_after_whitening(
    plm: Callable[[str], Any],
) -> None:
    table, encoder, callback = run(plm("bert"))
    by_stage = cosines(table, encoder.vectors, callback.maps, EvalProtocol("x", "all", "task"))
    assert by_stage["raw"][0][3] == 0.0
    assert by_stage["post"][0][3] == 0.0
    assert by_stage["post"][0][1] == 1.0


def test_the_running_score_is_logged_over_the_complete_pairs(plm: Callable[[str], Any]) -> None:
    table, encoder, _ = run(plm("bert"))
    last = encoder.trainer.logged_metrics["running_spearman"]
    from scipy import stats

    protocol = EvalProtocol("x", "all", "task")
    raw = cosines(table, encoder.vectors, None, protocol)["raw"][0]
    assert float(last) == pytest.approx(100 * stats.spearmanr(raw, np.arange(5.0))[0], abs=1e-2)


def test_a_fit_set_without_text_is_named(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    first = PairSet("a", "", "test", ("the dog",), ("the cat",), np.ones(1), "made", "0")
    empty = PairSet("b", "", "test", (" ",), ("",), np.ones(1), "made", "0")
    table = SentenceTable.build([Task("a", (first,)), Task("b", (empty,))], model.tokenize)
    callback = WhiteningCallback(Whitening(), "task")
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, callbacks=[callback], enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    data = SentenceDataModule(table)
    encoder = SentenceEncoder(model, LinearPooling(Uniform(), [-1]))
    with pytest.raises(UserError, match="fit set b: no sentence of it has any text"):
        trainer.test(encoder, datamodule=data, verbose=False)
