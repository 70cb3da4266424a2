"""A W&B server that begins a run and is never heard of again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from whitepool import tracking

ROOT = Path(__file__).resolve().parents[1]
BUCKET = {
    "id": "QnVja2V0", "name": "run1", "displayName": "run1", "historyLineCount": 0,
    "project": {"id": "UA==", "name": "whitepool", "entity": {"id": "RQ==", "name": "me"}},
}  # fmt: skip
USER = {"id": "VQ==", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}}
ANSWERS = {
    b"mutation UpsertBucket": {"upsertBucket": {"bucket": BUCKET, "inserted": True}},
    b"query Viewer": {"viewer": USER},  # asked for before the first artifact, up to a minute long
}


class Server(ThreadingHTTPServer):
    """Says that a run has begun and whose it is; other requests wait until it is closed."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lost: list[str] = []
        self.answered: list[bytes] = []
        self.closed = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        query = self.rfile.read(int(self.headers["Content-Length"]))
        known = [kind for kind in ANSWERS if kind in query and kind not in self.server.answered]
        if not known:
            self.server.lost.append(self.path)
            self.server.closed.wait()
            return
        self.server.answered += known
        answer = json.dumps({"data": ANSWERS[known[0]]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as at:
        threading.Thread(target=at.serve_forever, daemon=True).start()
        yield at
        at.closed.set()
        at.shutdown()


@pytest.mark.slow
def test_a_run_ends_with_its_results(
    server: Server, checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path
) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WANDB")}
    url = f"http://127.0.0.1:{server.server_address[1]}"
    clean |= {"WANDB_BASE_URL": url, "WANDB_API_KEY": "a" * 40, "WANDB_FINISH_TIMEOUT": "3"}
    clean |= {"HOME": str(tmp_path), "WHITEPOOL_CACHE": str(tmp_path / "cache")}
    run = subprocess.run(
        [
            sys.executable, str(ROOT / "evaluate.py"), "model=local",
            f"model.path={checkpoint('bert')}",
            "data=pairs", f"data.path={pairs}", "logger=wandb", "trainer=cpu",
            f"hydra.run.dir={tmp_path / 'run'}",
        ],
        env=clean, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert set(server.answered) == set(ANSWERS)
    assert server.lost, "nothing was lost"
    assert run.stderr.count("W&B gets no more of this run") == 1
    assert json.loads((tmp_path / "run" / "results.json").read_text())["scores"]
    assert (tmp_path / "run" / "report.html").exists()
    assert list(tmp_path.glob("run/wandb/run-*/run-*.wandb")), "nothing left to sync"


@pytest.mark.parametrize(("given", "limit"), [(None, tracking.FINISHED_IN), ("7", None)])
def test_the_end_of_a_run_has_a_limit(
    given: str | None, limit: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_FINISH_TIMEOUT", raising=False)
    if given:
        monkeypatch.setenv("WANDB_FINISH_TIMEOUT", given)
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        config = compose("evaluate", ["logger=wandb"])
    settings = tracking._where(config, None, tmp_path)["settings"]
    assert settings["finish_timeout_raises"]
    assert settings.get("finish_timeout") == limit
