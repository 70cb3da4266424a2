"""SIGTERM and SIGINT in the middle of a multirun: what is done stays, the rest is marked."""

from __future__ import annotations

import csv
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from whitepool import evaluation, stopping
from whitepool.commands import console
from whitepool.module import SentenceEncoder
from whitepool.stopping import Terminated, stoppable, unmasked


@pytest.fixture
def no_multirun_behind() -> Iterator[None]:
    yield
    HydraConfig.instance().cfg = None  # else runs of other tests would count as jobs
    GlobalHydra.instance().clear()


@pytest.mark.parametrize(
    ("sent", "status", "said", "figures"),
    [
        (signal.SIGTERM, 143, "Terminated.", False),
        pytest.param(signal.SIGINT, 130, "Interrupted.", True, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.usefixtures("no_multirun_behind")
def test_a_multirun_that_is_stopped_sums_up_what_is_done(
    sent: signal.Signals,
    status: int,
    said: str,
    figures: bool,
    tmp_path: Path,
    pairs: Path,
    checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The signal comes in the second of three jobs, in Lightning's pass."""
    monkeypatch.chdir(tmp_path)
    step, passes = SentenceEncoder.test_step, iter(range(100))

    def stopped(self: SentenceEncoder, *arguments: Any) -> Any:
        if next(passes) == 1:
            os.kill(os.getpid(), sent)
        return step(self, *arguments)

    monkeypatch.setattr(SentenceEncoder, "test_step", stopped)
    words = ["evaluate", "-m", "pooling=avg,cls,first_last", "model=bert", "trainer=cpu",
             f"model.path={checkpoint('bert')}", "data=pairs", f"data.path={pairs}", "cache=off",
             "bootstrap=0", "logger=none", "hydra.sweep.dir=sweep",
             f"figures={str(figures).lower()}"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["whitepool", *words])
    with pytest.raises(SystemExit) as ended:
        console.main()
    assert ended.value.code == status
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == said
    assert "Traceback" not in printed.err
    folder = tmp_path / "sweep"
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["done", "interrupted", "not run"]
    assert [row["job"] for row in rows] == ["0", "1", "2"]
    assert [bool(row["score"]) for row in rows] == [True, False, False]
    assert "pooling=first_last" in rows[2]["overrides"]
    if figures:
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "1 done, 0 failed, 1 interrupted, 1 not run" in page
    assert sorted(path.name for path in folder.iterdir() if path.name.isdigit()) == ["0", "1"]
    assert (folder / "1" / "error.txt").read_text() == "interrupted\n"
    assert not (folder / "1" / "results.json").exists()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_what_lightning_makes_of_a_signal_is_undone(
    tmp_path: Path, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiny_suite

    def stopped(self: SentenceEncoder, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(SentenceEncoder, "test_step", stopped)
    with stoppable(), pytest.raises(Terminated):
        evaluation.evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, "cache=off"))
    assert stopping.exit_status(Terminated()) == 143


@pytest.mark.parametrize("error", [SystemExit(3), ValueError("odd")])
def test_other_errors_go_on(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, unmasked():
        raise error
    assert raised.value is error


@pytest.mark.parametrize("error", [SystemExit(1), AttributeError("cleaning up")])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_stop_that_became_another_error_is_a_stop(error: BaseException, wrapped: bool) -> None:
    """As in a library whose way out fails, once more within its own error."""
    stop = Terminated()

    def library() -> None:
        try:
            raise stop
        except KeyboardInterrupt:
            raise error  # noqa: B904

    def user() -> None:
        try:
            library()
        except Exception as inner:
            if not wrapped:
                raise
            raise RuntimeError("wrapped") from inner

    with pytest.raises(Terminated) as raised, unmasked():
        user()
    assert raised.value is stop
