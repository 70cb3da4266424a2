"""Figures of whole runs: which there are, that they are files, and that they never fail a run."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from whitepool import figures
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.figures import files, of_jobs, of_run
from whitepool.jobs import Job, names_of, read_jobs
from whitepool.moments import Moments
from whitepool.pooling import AttentionDiagonal, LinearPooling, MaxPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.scores import cosines
from whitepool.token_weights import weigh
from whitepool.whitening import Whitening

import tiny_suite


class Logger:
    """Takes images, as the W&B logger does."""

    def __init__(self) -> None:
        self.images: dict[str, list[str]] = {}

    def log_image(self, key: str, images: list[str]) -> None:
        self.images[key] = images


def test_a_run_leaves_png_and_svg(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    config = tiny_suite.composed(
        checkpoint("bert"), tmp_path, "figures=true", "pooling=ditto", "pooling.block=1",
        "pooling.head=2",
    )  # fmt: skip
    evaluate(config)
    names = {"scores", "cosines", "spectrum", "token_weights"}
    found = {path.name for path in (tmp_path / "figures").iterdir()}
    assert found == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    for name in names:
        with Image.open(tmp_path / "figures" / f"{name}.png") as image:
            assert image.width in (1005, 2070)  # one column or two at 300 dots an inch
        assert "<svg" in (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")


def test_every_analysis_leaves_its_figures(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    overrides = ["figures=true", "analysis=all", "protocol=whiteningbert"]
    evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, *overrides))
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == {
        "layer_pairs_raw", "layer_pairs_post", "layers_best", "heads", "dims", "table1", "weights",
    }  # fmt: skip


def test_figures_are_the_same_bytes_again_and_go_to_the_logger(tmp_path: Path) -> None:
    def draw() -> Figure:
        figure = Figure(figsize=(2, 1))
        figure.add_subplot().plot([0, 1], [0, 1])
        return figure

    logger = Logger()
    first = files.save(lambda: {"line": draw}, tmp_path / "a", logger)
    second = files.save(lambda: {"line": draw}, tmp_path / "b", None)
    assert logger.images == {"figures/line": [str(first[0])]}
    for kind in (".png", ".svg"):
        pair = [path.with_suffix(kind).read_bytes() for path in (*first, *second)]
        assert pair[0] == pair[1]


def test_a_figure_that_fails_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def bad() -> Figure:
        raise ValueError("no data")

    written = files.save(lambda: {"bad": bad, "good": Figure}, tmp_path, None)
    assert [path.name for path in written] == ["good.png"]
    assert "Figure bad failed: ValueError: no data" in caplog.text


@pytest.mark.parametrize(
    ("analysis", "of_the_map"),
    [("none", {"scores", "cosines"}), ("layers", {"layer_pairs_post", "layers_best"})],
)
def test_a_map_that_does_not_whiten_is_not_called_so(
    analysis: str, of_the_map: set[str], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    overrides = ["figures=true", "whitening=remove_top", f"analysis={analysis}"]
    evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, *overrides))
    drawn = {p.stem: p.read_text(encoding="utf-8") for p in (tmp_path / "figures").glob("*.svg")}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {name for name, text in drawn.items() if "remove_top" in text} == of_the_map
    assert not any("whitened" in text for text in (*drawn.values(), page))
    assert re.search(r'"(name|label)":"(pairs, )?remove_top"', page)


def test_without_matplotlib_a_run_says_so_and_goes_on(
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delitem(sys.modules, "whitepool.figures.of_run")
    monkeypatch.delattr(figures, "of_run")
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level(logging.WARNING):
        evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, "figures=true"))
    assert "No figures: matplotlib is not installed (pip install matplotlib)." in caplog.text
    assert json.loads((tmp_path / "results.json").read_text())["scores"]


def test_another_word_than_true_or_false_is_refused(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="figures is 'off': choose one of true, false"):
        evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, "figures=off"))


def test_random_pairs_are_of_the_same_sentences(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    table = SentenceTable.build(tiny_suite.load(), model.tokenize)
    vectors = np.random.default_rng(0).standard_normal((len(table), 8)).astype(np.float32)
    protocol = EvalProtocol("simcse", "all", "task")
    found = of_run.beside_random(table, vectors, None, protocol)
    assert list(found) == ["raw"]
    every = np.concatenate(cosines(table, vectors, None, protocol)["raw"])
    np.testing.assert_array_equal(np.sort(found["raw"].scored), np.sort(every))
    assert len(found["raw"].unrelated) == len(every)
    assert abs(np.corrcoef(found["raw"].unrelated, found["raw"].scored)[0, 1]) < 0.3


def test_spectra_are_of_what_whitening_is_fitted_on(plm: Callable[[str], Any]) -> None:
    table = SentenceTable.build(tiny_suite.load(), plm("bert").tokenize)
    vectors = np.random.default_rng(0).standard_normal((len(table), 8)).astype(np.float32)
    found = of_run.spectra(table, vectors, EvalProtocol("simcse", "all", "task"))
    assert list(found) == ["sts12", "mine"]
    rows = np.concatenate([s.pairs.ravel() for s in table.scored if s.task == "sts12"])
    rows = rows[~table.is_blank[rows]]
    wanted = np.linalg.eigvalsh(np.cov(vectors[rows].astype(float), rowvar=False))[::-1]
    np.testing.assert_allclose(found["sts12"].values, wanted, rtol=1e-10)
    assert found["sts12"].rank == 8
    one = Moments(8).update(Moments(8).mean[None] + 1).update(Moments(8).mean[None])
    assert of_run.of_moments(one).rank == 1 == Whitening().fit(one, "x").basis.shape[1]


def test_token_weights_are_the_heads(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    sentences = ["a dog runs", " ", "two cat eats food in the park"]
    ids = model.tokenize(sentences).ids
    weighed = weigh(model, LinearPooling(AttentionDiagonal(1, 2), [0, -1]), ids)
    assert weighed[0].tokens == ("[CLS]", "a", "dog", "runs", "[SEP]")
    assert weighed[1].tokens == weighed[1].weights == ()
    alone = weigh(model, LinearPooling(AttentionDiagonal(1, 2), [-1]), ids[2:])[0]
    assert weighed[2].weights == pytest.approx(alone.weights, abs=1e-6)
    assert len(weighed[2].weights) == len(weighed[2].tokens) == 9
    uniform = weigh(model, LinearPooling(Uniform(), [-1]), ids)[0]
    assert uniform.weights == pytest.approx([0.2] * 5)
    with pytest.raises(UserError, match="MaxPooling has no token weights"):
        weigh(model, MaxPooling([-1]), ids)


def job(folder: Path, number: int, overrides: str, value: float | None) -> None:
    (folder / str(number) / ".hydra").mkdir(parents=True)
    lines = "".join(f"- {o}\n" for o in overrides.split())
    (folder / str(number) / ".hydra" / "overrides.yaml").write_text(lines)
    if value is None:
        (folder / str(number) / "error.txt").write_text("no such head.\n\nTraceback")
        return
    row = {
        "task": "stsb", "subset": "", "aggregate": "all", "stage": "raw", "metric": "spearman",
        "value": value, "low": value - 1, "high": None, "n": 9,
    }  # fmt: skip
    content = {
        "headline": row, "scores": [row], "protocol": {"name": "simcse", "aggregate": "all"},
        "config": {"whitening": {"name": "off"}},
    }  # fmt: skip
    (folder / str(number) / "results.json").write_text(json.dumps(content))


def test_jobs_of_a_multirun_are_drawn_best_first(tmp_path: Path) -> None:
    for number, (overrides, value) in enumerate(
        [("model=bert pooling=cls", 40.0), ("model=bert pooling=avg", 60.0)]
    ):
        job(tmp_path, number + 9, overrides, value)
    job(tmp_path, 11, "model=bert pooling=max", None)
    (tmp_path / "figures").mkdir()
    jobs = read_jobs(tmp_path)
    assert [j.folder.name for j in jobs] == ["9", "10", "11"]
    assert names_of(jobs) == ["pooling=cls", "pooling=avg", "pooling=max"]
    assert (jobs[2].results, jobs[2].error) == (None, "no such head.")
    (drawn,) = of_jobs.drawings(jobs).values()
    axes = drawn().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["pooling=avg", "pooling=cls"]
    assert names_of(jobs[:1]) == ["model=bert pooling=cls"]
    assert names_of([Job(tmp_path / "0", (), None)]) == ["0"]
