"""A package index on this machine that answers, stalls or trickles, and counts what it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


class Index(ThreadingHTTPServer):
    """Serves the wheels of a folder.

    Args:
        folder: with the wheels.
        fault: ``""``, ``stalls`` (never answers), ``halts`` (in the middle of a wheel) or
            ``trickles`` (a byte at a time).

    Attributes:
        wheels: how many were asked for.
    """

    daemon_threads = True

    def __init__(self, folder: Path, fault: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder, self.fault, self.wheels = folder, fault, 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class Answer(BaseHTTPRequestHandler):
    """An answer to pip."""

    server: Index

    def do_GET(self) -> None:
        if self.server.fault == "stalls":
            self.server.ended.wait(60)
            return
        if self.path.startswith("/simple/"):
            project = self.path.split("/")[2].replace("-", "_")
            found = sorted(self.server.folder.glob(f"{project}-*.whl"))
            links = "".join(f'<a href="/files/{path.name}">{path.name}</a>' for path in found)
            self._send(f"<html><body>{links}</body></html>".encode(), "text/html")
            return
        self.server.wheels += 1
        content = (self.server.folder / self.path.split("/")[-1]).read_bytes()
        time.sleep(0.3)  # so that two who ask at once do
        self._send(content, "application/octet-stream")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if kind == "text/html" or not self.server.fault:
            self.wfile.write(content)
            return
        for byte in content if self.server.fault == "trickles" else content[:10]:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.ended.wait(0.1):
                return
        self.server.ended.wait(60)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@contextmanager
def serving(folder: Path, patch: pytest.MonkeyPatch, fault: str = "") -> Iterator[Index]:
    """An index that pip is told of, and of no other."""
    server = Index(folder, fault)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    settings = {"NO_INDEX": "0", "FIND_LINKS": "", "INDEX_URL": server.url, "EXTRA_INDEX_URL": ""}
    for name, value in {**settings, "NO_CACHE_DIR": "1"}.items():
        patch.setenv(f"PIP_{name}", value)
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
