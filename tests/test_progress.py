"""When a progress bar is shown."""

from __future__ import annotations

import pytest

from whitepool import progress
from whitepool.progress import progress_bar


@pytest.mark.parametrize(("widgets", "wanted", "shown"), [
    (False, None, False), (True, None, True), (False, True, True), (True, False, False),
])  # fmt: skip
def test_a_notebook_needs_ipywidgets(
    widgets: bool, wanted: bool | None, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    with progress_bar(wanted, 10) as bar:
        assert bar.shown == shown


def test_no_terminal_no_bar() -> None:
    with progress_bar(None, 10) as bar:
        assert not bar.shown
        bar.advance(10)
