"""Every call to W&B that a run makes, failing in turn: its own results are never lost to it."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from whitepool.evaluation import evaluate
from whitepool.training import train

import tiny_suite
from tiny import WORDS


class Wandb:
    """W&B, of whose calls one fails.

    Args:
        bad: which, counted from 0; None for none.

    Attributes:
        calls: names of the calls so far.
    """

    def __init__(self, bad: int | None) -> None:
        self.bad = bad
        self.calls: list[str] = []

    def call(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) - 1 == self.bad:
            raise ConnectionError("W&B does not answer")

    def made(self, name: str) -> Callable[..., Part]:
        def make(*arguments: object, **settings: object) -> Part:
            self.call(name)
            return Part(self, name)

        return make


class Part:
    """A run, a table, an artifact: whatever is asked of it is one more call."""

    def __init__(self, wandb: Wandb, name: str) -> None:
        self._wandb, self._name = wandb, name

    def __getattr__(self, name: str) -> Any:
        if name == "id":
            self._wandb.call("id")
            return "x"
        return self._wandb.made(name)


def evaluated(folder: Path, checkpoint: Path, *overrides: str) -> Any:
    config = tiny_suite.composed(checkpoint, folder, "cache=off", "logger=wandb", *overrides)
    score = evaluate(config)
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert content["headline"]["value"] == score
    return content["scores"], content.get("best")


def trained(folder: Path, checkpoint: Path, *overrides: str) -> Any:
    folder.mkdir(exist_ok=True)
    (folder / "x.txt").write_text("".join(f"{a} {b}\n" for a in WORDS for b in WORDS))
    with initialize_config_dir(str(tiny_suite.CONF), version_base="1.3"):
        config = compose("train", overrides=[
            "corpus=text", f"corpus.path={folder / 'x.txt'}", f"output_dir={folder}", "model=bert",
            f"model.path={checkpoint}", "logger=wandb", "trainer=cpu",
            "trainer.enable_progress_bar=false", *overrides,
        ])  # fmt: skip
    train(config)
    return (folder / "recipe" / "weights.safetensors").read_bytes()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("run", "overrides"),
    [
        (evaluated, ["figures=false"]),
        (evaluated, ["figures=true"]),
        (evaluated, ["figures=false", "analysis=dims"]),
        (trained, ["figures=true"]),
    ],
)
def test_every_call_in_turn(
    run: Callable[..., Any],
    overrides: list[str],
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted = calls = None
    for bad in itertools.chain([None], itertools.count()):
        wandb = Wandb(bad)
        for name in ("init", "Table", "Image", "Artifact"):
            monkeypatch.setattr(f"wandb.{name}", wandb.made(name))
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            found = run(tmp_path / str(bad), checkpoint("bert"), *overrides)
        told = [message for message in caplog.messages if "W&B" in message]
        if wanted is None:
            wanted, calls = found, wandb.calls
            assert not told
            continue
        assert bad is not None
        assert calls is not None
        if bad == len(calls):
            break
        assert found == wanted, calls[bad]
        assert told == [
            "W&B gets no more of this run, which goes on without it: ConnectionError: W&B does not "
            "answer"
        ], calls[bad]
        begun = wandb.calls[0] == "init" and bad > 0
        assert (wandb.calls[-1] == "finish") == begun, wandb.calls
    assert calls is not None
    assert {"init", "log", "finish"} <= set(calls)
    print(f"{run.__name__} {overrides}: {len(calls)} calls")
