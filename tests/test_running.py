"""`whitepool.evaluate`: a run without a command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import whitepool

QUIET = ("trainer=cpu", "trainer.enable_progress_bar=false", "figures=false", "bootstrap=0")


def test_a_run_and_an_analysis(
    checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path
) -> None:
    given = ["model=bert", f"model.path={checkpoint('bert')}", "data=pairs", f"data.path={pairs}"]
    one = whitepool.evaluate(tmp_path / "one", *given, "whitening=off", *QUIET)
    assert one.results is not None
    assert one.results["headline"]["n"] == 61
    assert (tmp_path / "one" / "scores.csv").is_file()
    layers = whitepool.evaluate(
        tmp_path / "layers", *given, "analysis=layers", "whitening=off", *QUIET
    )
    (row,) = layers.table("layers", layers="3", aggregate="all", stage="raw")
    assert row["value"] == pytest.approx(one.results["headline"]["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pooling.lyers=[0]", "did you mean pooling.layers"),
        ("pooling=nothing", "there is no pooling=nothing: choose one of"),
        ("data.path=missing.tsv", "missing.tsv"),
    ],
)
def test_mistakes_are_one_sentence(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(whitepool.UserError, match=message):
        whitepool.evaluate(tmp_path, "data=pairs", "data.path=x.tsv", override, *QUIET)
