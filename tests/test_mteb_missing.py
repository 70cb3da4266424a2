"""Without mteb the package works, and what needs it says so."""

from __future__ import annotations

import importlib
import sys

import pytest

from whitepool.errors import UserError


def test_mteb_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mteb", "mteb.models", "whitepool.mteb"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "whitepool.mteb")
    with pytest.raises(UserError, match=r'needs mteb.*: install it with pip install "whitepool\['):
        importlib.import_module("whitepool.mteb")
