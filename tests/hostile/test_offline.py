"""With HF_HUB_OFFLINE=1 and cached assets no socket is opened."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whitepool.assets import ASSETS
from whitepool.fetching import cache_root, damage

from whole import Command


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that were asked for, none of which is reached."""
    asked: list[Any] = []

    def refuse(*arguments: Any, **options: Any) -> None:
        asked.append(arguments)
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return asked


def need(*names: str) -> None:
    for name in names:
        if damage(ASSETS[name], cache_root() / "assets" / name):
            pytest.skip(f"the asset {name} is not in the cache")


def test_the_block_works(opened: list[Any]) -> None:
    with pytest.raises(OSError, match="no network"):
        socket.create_connection(("127.0.0.1", 9))
    with pytest.raises(OSError, match="no network"):
        socket.socket().connect(("127.0.0.1", 9))
    assert len(opened) == 2


@pytest.mark.parametrize("logger", ["csv", "none"])
def test_pairs_of_the_benchmark(
    command: Command, checkpoint: Callable[[str], Path], opened: list[Any], logger: str
) -> None:
    need("stsb")
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", f"logger={logger}"]
    run = command("evaluate", *model, "bootstrap=0", "cache=off", f"figures={logger == 'csv'!s}")
    assert run.status == 0, run.err
    assert (run.folder / "results.json").is_file()
    assert opened == []


def test_an_embedded_model(command: Command, pairs: Path, opened: list[Any]) -> None:
    need("all_minilm")
    words = ["data=pairs", f"data.path={pairs}", "trainer=cpu", "cache=off", "figures=false"]
    run = command("evaluate", *words, "bootstrap=0", "logger=none")
    assert run.status == 0, run.err
    assert opened == []


def test_what_would_need_the_hub_is_told_of(command: Command, opened: list[Any]) -> None:
    for words in (["model=hub", "model.id=some/model"], ["data=sts12"]):
        run = command("evaluate", *words, "trainer=cpu", "figures=false")
        assert run.status == 1
        assert run.err.splitlines()[-1].startswith("Error: ")
        assert "foreseen" not in run.err
    assert opened == []
