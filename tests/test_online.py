"""A hub that answers, one that refuses, and one that says nothing; each on this machine."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from whitepool import checkpoint
from whitepool.data import hub
from whitepool.errors import UserError
from whitepool.online import hub_answers

constants = pytest.importorskip("huggingface_hub.constants")


class NotFound(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port on which nothing listens yet; the hub is there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = int(free.getsockname()[1])
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{number}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 1)
    return number


def test_any_answer_counts(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server = HTTPServer(("127.0.0.1", port), NotFound)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert hub_answers()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert not hub_answers()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_silence_is_waited_for_once(port: int) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", port))
        silent.listen()
        started = time.perf_counter()
        assert not hub_answers()
        assert 0.5 < time.perf_counter() - started < 5


def test_a_hub_that_is_not_there_is_told_of_at_once(port: int) -> None:
    """Where huggingface_hub alone sleeps for 23 seconds between the tries for one file."""
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding  # noqa: F401

    started = time.perf_counter()
    with pytest.raises(UserError, match="the hub does not answer, so go online or give model"):
        checkpoint.load("some/model", revision="0" * 40)
    with pytest.raises(UserError, match=r"Face hub \(Connect\w+\) and is not in its cache; go on"):
        hub.download("some/data", "0" * 40, "test")
    assert time.perf_counter() - started < 20
