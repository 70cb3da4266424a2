"""The command beside a row of an analysis gives the row's number."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

from test_evaluate import SCRIPT
from whitepool.jobs import read_job
from whitepool.page import tables


def test_commands_give_their_rows(
    tmp_path: Path,
    pairs: Path,
    checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = ["figures=false", "bootstrap=0", "trainer.enable_progress_bar=false", "logger=none"]

    def run(*arguments: str, folder: str) -> Path:
        GlobalHydra.instance().clear()
        given = [str(SCRIPT), *arguments, f"hydra.run.dir={folder}"]
        monkeypatch.setattr(sys, "argv", given)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        assert ended.value.code == 0
        return tmp_path / folder

    model = ["model=bert", f"model.path={checkpoint('bert')}", "data=pairs", f"data.path={pairs}"]
    for number, name in enumerate(("layers", "dims", "table1")):
        job = read_job(run(*model, *quick, f"analysis={name}", folder=f"{name}"))
        table = tables.analysis(job, 0, name)
        stages = [line.cells[table.columns.index("stage")].text for line in table.lines]
        line = table.lines[stages.index("whitened")]
        program, script, *overrides = shlex.split(line.command)
        assert (program, script) == ("python", "evaluate.py")
        content = json.loads((run(*overrides, folder=str(number)) / "results.json").read_text())
        assert content["headline"]["stage"] == "post"
        assert content["headline"]["value"] == pytest.approx(line.cells[-1].value, abs=1e-9)
