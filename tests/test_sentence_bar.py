"""The bar of a pass: what it counts, where it stands, and that it is gone before others speak."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from whitepool import sentence_bar
from whitepool.evaluation import evaluate
from whitepool.training import train

import tiny_suite
from tiny import WORDS


class Counted:
    """In place of a bar."""

    def __init__(self, total: int | None) -> None:
        self.total, self.done, self.closed = total, 0, False

    def advance(self, sentences: int) -> None:
        assert not self.closed
        self.done += sentences


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    """Every bar that is begun."""
    begun: list[Counted] = []

    @contextmanager
    def counted(wanted: bool | None, total: int | None) -> Iterator[Counted]:
        assert wanted is None  # a terminal decides
        begun.append(Counted(total))
        yield begun[-1]
        begun[-1].closed = True

    monkeypatch.setattr(sentence_bar, "progress_bar", counted)
    return begun


@pytest.mark.parametrize("analysis", ["none", "dims"])
def test_every_sentence_is_counted(
    bars: list[Counted], checkpoint: Callable[[str], Path], tmp_path: Path, analysis: str
) -> None:
    words = ("trainer.enable_progress_bar=true", f"analysis={analysis}", "cache=off")
    evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, *words))
    texts = {t for task in tiny_suite.load() for s in task.scored for t in (*s.first, *s.second)}
    (bar,) = bars
    assert bar.total == bar.done
    assert 0 < bar.done <= len(texts)
    assert bar.closed


def test_a_corpus_has_no_total(
    bars: list[Counted], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    texts = tmp_path / "x.txt"
    texts.write_text("".join(f"{a} {b}\n" for a in WORDS for b in WORDS))
    with initialize_config_dir(str(tiny_suite.CONF), version_base="1.3"):
        config = compose("train", [
            "model=bert", f"model.path={checkpoint('bert')}", "logger=none", "trainer=cpu",
            "corpus=text", f"corpus.path={texts}", "figures=false",
            f"output_dir={tmp_path / 'run'}",
        ])  # fmt: skip
    train(config)
    (bar,) = bars
    assert (bar.total, bar.done, bar.closed) == (None, len(WORDS) ** 2, True)


def test_none_where_none_is_wanted(
    bars: list[Counted], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    words = ("trainer.enable_progress_bar=false", "cache=off")
    evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, *words))
    assert not bars
