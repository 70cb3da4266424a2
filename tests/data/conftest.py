from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.data.counts import COUNTS


@pytest.fixture(scope="session")
def shared() -> Path:
    """Read-only STS files that stand next to the checkout."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    folder = Path(os.environ.get("WHITEPOOL_SHARED", beside)) / "sts"
    if not folder.is_dir():
        pytest.skip(f"no STS files at {folder}; set WHITEPOOL_SHARED")
    return folder


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str, int], None]:
    """Make a tiny file the expected size of a set."""

    def expect(task: str, subset: str, split: str, pairs: int) -> None:
        monkeypatch.setitem(COUNTS[task], (subset, split), pairs)

    return expect


@pytest.fixture
def stsb_folder(tmp_path: Path) -> Path:
    """The STS benchmark at full size, every tenth row with the two columns that some rows have."""
    folder = tmp_path / "stsb"
    folder.mkdir()
    for (_, split), pairs in COUNTS["stsb"].items():
        rows = (
            f'main\tMSRvid\t2012\t{i:04}\t{i % 6}.000\t{split} {i}.\tAn "odd one, {i}.'
            + "\turl\turl" * (i % 10 == 0)
            for i in range(pairs)
        )
        (folder / f"sts-{split}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder
