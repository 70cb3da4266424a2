"""What is read back of a job's state, and who may work in its folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from whitepool.errors import UserError
from whitepool.sweeps.marker import FILE, Marker, at_work, read


def test_a_marker_is_read_as_it_was_written(tmp_path: Path) -> None:
    marker = Marker("s", {"data": "1", "model": None}, {"torch": "2"}, finished=True)
    marker.write(tmp_path)
    assert read(tmp_path) == marker
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"schema": 2}', '{"schema": 1, "other": 3}', '{"settings": "a"}'],
)
def test_what_is_no_marker_of_this_schema_is_none(tmp_path: Path, content: str) -> None:
    assert read(tmp_path) is None
    (tmp_path / FILE).write_text(content)
    assert read(tmp_path) is None


def test_the_schema_is_in_the_file(tmp_path: Path) -> None:
    Marker("s").write(tmp_path)
    assert json.loads((tmp_path / FILE).read_text())["schema"] == 1


def test_a_folder_is_one_process_s_own_until_that_is_gone(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from whitepool.sweeps.marker import at_work\n"
        "with at_work(Path(sys.argv[1]), 'a job'):\n    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="job 3 is still at work in"):  # noqa: SIM117
            with at_work(tmp_path, "job 3"):
                pass
        other.kill()
        other.wait()
        with at_work(tmp_path, "job 3"):
            pass
