"""W&B's own agent on our sweeps; what its server would say is the one thing that is not real."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import wandb_file

ROOT = Path(__file__).resolve().parents[1]


class Server:
    """Gives each run of a sweep once, when the one before it has ended, and then an end."""

    def __init__(self, sweep: dict[str, Any], runs: list[dict[str, Any]]) -> None:
        self.sweep, self.left, self.given = sweep, dict(enumerate(runs)), 0

    def describe(self, *_: Any) -> dict[str, Any]:
        return {"config": yaml.safe_dump(self.sweep)}

    def register(self, *_: Any, **__: Any) -> dict[str, str]:
        return {"id": "agent"}

    def heartbeat(self, api: Any, agent: str, metrics: Any, states: dict[str, bool]) -> Any:
        if any(states.values()):
            return []
        if self.given not in self.left:
            return [{"type": "exit"}]
        arguments = {key: {"value": value} for key, value in self.left[self.given].items()}
        self.given += 1
        program = {"program": self.sweep["program"], "args": arguments}
        return [{"type": "run", "run_id": f"run{self.given}", **program}]


@pytest.mark.slow
def test_the_agent_runs_evaluate(
    checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of a sweep has the sweep's words and all of the settings in its configuration."""
    import wandb
    from wandb.apis.public import sweeps
    from wandb.wandb_agent import Agent

    sweep = yaml.safe_load((ROOT / "conf" / "sweep" / "k.yaml").read_text())
    given = {
        key: parameter.get("value", parameter.get("values", [None])[-1])
        for key, parameter in sweep["parameters"].items()
    }
    given |= {
        "whitening.k": 3, "model": "distilbert", "model.path": str(checkpoint("distilbert")),
        "data": "pairs", "data.path": str(pairs), "bootstrap": 10, "cache": "off", "trainer": "cpu",
    }  # fmt: skip
    server = Server(sweep, [given])
    monkeypatch.setattr(sweeps, "_sweep_with_runs", server.describe)
    monkeypatch.setattr(sweeps, "_register_agent", server.register)
    monkeypatch.setattr(sweeps, "_agent_heartbeat", server.heartbeat)
    monkeypatch.setattr(wandb, "Api", lambda: None)  # it would ask the server who we are
    monkeypatch.setattr(Agent, "POLL_INTERVAL", 0.2)
    before = dict(os.environ)
    try:
        monkeypatch.chdir(tmp_path)
        for name in ("evaluate.py", "conf"):
            (tmp_path / name).symlink_to(ROOT / name)
        os.environ |= {
            "WANDB_MODE": "offline", "WANDB_SWEEP_ID": "mysweep", "WANDB_SILENT": "true",
            "PATH": f"{Path(sys.executable).parent}:{before['PATH']}", "WANDB_DIR": str(tmp_path),
        }  # fmt: skip
        Agent(None, queue.Queue(), sweep_id="mysweep").run()
    finally:
        os.environ.clear()
        os.environ |= before
    (file,) = tmp_path.glob("outputs/*/*/wandb/offline-run-*/run-*.wandb")
    records = wandb_file.records(file)
    assert wandb_file.exit_code(records) == 0
    assert "avg" in wandb_file.summary(records)
    config = wandb_file.config(records)
    assert given.items() <= config.items()
    assert config["settings"]["whitening"]["k"] == 3
    assert config["settings"]["pooling"]["name"] == given["pooling"]
    (run,) = (record.run for record in records if record.HasField("run"))
    assert (run.sweep_id, run.run_id) == ("mysweep", "run1")
