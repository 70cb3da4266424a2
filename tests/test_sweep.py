"""What a multirun says of settings that were of no use."""

from __future__ import annotations

from pathlib import Path

from whitepool.cli import IGNORED_FILE
from whitepool.sweep import ignored_by_all


def test_only_what_no_job_could_use_is_told_of(tmp_path: Path) -> None:
    assert ignored_by_all([]) == []
    lines = {"0": "pooling.head\ncorpus\n", "1": "pooling.head\n", "2": "corpus\npooling.head\n"}
    for job, content in lines.items():
        (tmp_path / job).mkdir()
        (tmp_path / job / IGNORED_FILE).write_text(content)
    assert ignored_by_all(tmp_path / job for job in "02") == ["corpus", "pooling.head"]
    assert ignored_by_all(tmp_path / job for job in "012") == ["pooling.head"]
    (tmp_path / "3").mkdir()
    assert ignored_by_all(tmp_path / job for job in "0123") == []
