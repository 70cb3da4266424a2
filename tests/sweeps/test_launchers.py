"""Multiruns in other processes: the same is left, whichever launcher runs the jobs."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from whitepool.sweeps.folders import standing

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, str, str]]
Table = list[dict[str, str]]
SCRIPT = [str(ROOT / "evaluate.py")]
CONSOLE = ["-m", "whitepool.commands.console", "evaluate"]
LAUNCHERS = {
    "joblib": ("hydra_plugins.hydra_joblib_launcher", SCRIPT, ["hydra.launcher.n_jobs=2"]),
    "submitit_local": (
        "hydra_plugins.hydra_submitit_launcher",
        CONSOLE,
        ["hydra.launcher.timeout_min=9"],
    ),
    "ray": (
        "hydra_plugins.hydra_ray_launcher",
        SCRIPT,
        [
            "+hydra.launcher.ray.init.num_cpus=2",
            "+hydra.launcher.ray.init.include_dashboard=false",
            "+hydra.launcher.ray.init._temp_dir=TEMP",
        ],
    ),
}


def table(folder: Path) -> Table:
    """summary.csv without the times."""
    with (folder / "summary.csv").open(newline="", encoding="utf-8") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


@pytest.fixture
def sweep(checkpoint: Callable[[str], Path], pairs: Path) -> list[str]:
    """Jobs of which those that ask for a pooler fail; the others share their vectors."""
    return [
        "-m", "pooling=pooler,avg", "model=local", "data=pairs",
        f"model.path={checkpoint('distilbert')}", f"data.path={pairs}", "trainer=cpu",
        "trainer.enable_progress_bar=false", "figures=false", "logger=none", "bootstrap=10",
    ]  # fmt: skip


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path: Ray puts sockets into it, which take 107 bytes at most."""
    folder = tempfile.mkdtemp(prefix="wp")
    yield Path(folder)
    shutil.rmtree(folder, ignore_errors=True)


def launched(
    name: str, folder: Path, short: Path, words: list[str]
) -> subprocess.CompletedProcess[str]:
    """A whole command whose jobs a launcher runs, with a home of its own."""
    _, program, settings = LAUNCHERS[name]
    own = [word.replace("TEMP", str(short / "ray")) for word in settings]
    paths = [str(ROOT / "src"), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("HYDRA", "WANDB", "RAY"))},
        "HOME": str(short),
        "OMP_NUM_THREADS": "1",  # the number of threads decides how sums are rounded
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "RAY_USAGE_STATS_ENABLED": "0",
        "WHITEPOOL_CACHE": str(folder / f"{name}_cache"),
    }
    return subprocess.run(
        [sys.executable, *program, *words, f"hydra/launcher={name}", *own],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launcher_leaves_what_the_basic_one_leaves(
    command: Command, tmp_path: Path, short: Path, sweep: list[str], name: str
) -> None:
    plugin, *_ = LAUNCHERS[name]
    pytest.importorskip(plugin, reason=f"hydra/launcher={name} is not installed")
    words = [*sweep, "whitening=off,pca"]
    status, _, error = command("evaluate", *words, "hydra.sweep.dir=basic")
    assert status == 1, error
    basic, other = tmp_path / "basic", tmp_path / name
    wanted = table(basic)
    assert [row["status"] for row in wanted] == ["failed"] * 2 + ["done"] * 2
    run = launched(name, tmp_path, short, [*words, f"hydra.sweep.dir={name}"])
    assert run.returncode == 1, run.stdout + run.stderr
    assert table(other) == wanted
    for row in wanted:
        job = row["job"]
        if row["status"] == "failed":
            texts = [(folder / job / "error.txt").read_text() for folder in (basic, other)]
            assert len({text.split("\n")[0] for text in texts}) == 1
            assert "Traceback" in texts[1]
        else:
            one, two = ((folder / job / "scores.csv").read_bytes() for folder in (basic, other))
            assert one == two
    kept = [path.name for path in (tmp_path / f"{name}_cache" / "vectors").iterdir()]
    assert len(kept) == 2  # vectors and moments, which both jobs wrote or read
    assert not any(".partial" in path for path in kept)

    # The basic launcher goes on with it, and finds nothing to do but what failed.
    status, printed, _ = command("evaluate", *words, f"hydra.sweep.dir={name}", "resume=true")
    assert status == 1
    assert "2 of 4 jobs are finished and not run again (2, 3)." in printed
    assert table(other) == wanted


@pytest.mark.nightly
def test_a_process_that_dies_leaves_a_multirun_to_go_on_with(
    command: Command, tmp_path: Path, short: Path, sweep: list[str]
) -> None:
    plugin, *_ = LAUNCHERS["joblib"]
    pytest.importorskip(plugin, reason="hydra/launcher=joblib is not installed")
    words = [*sweep, "whitening=off,pca", "hydra.sweep.dir=all", "resume=true"]
    death = ["+hydra.callbacks.death._target_=deaths.Death", "+hydra.callbacks.death.folder='3'"]
    run = launched("joblib", tmp_path, short, [*words, *death, "+hydra.callbacks.death.file=died"])
    assert (tmp_path / "died").exists()
    assert run.returncode == 1, run.stdout + run.stderr
    assert "A job's process died (TerminatedWorkerError" in run.stdout
    assert "resume=true." in run.stdout
    assert len(standing(tmp_path / "all")) == 4
    status, _, _ = command("evaluate", *words)
    assert status == 1
    assert [row["status"] for row in table(tmp_path / "all")] == ["failed"] * 2 + ["done"] * 2


@pytest.mark.parametrize(
    ("name", "plugin", "extra"),
    [
        ("joblib", "hydra_joblib_launcher", "joblib"),
        ("submitit_slurm", "hydra_submitit_launcher", "slurm"),
    ],
)
def test_a_launcher_that_is_not_installed_is_told_of_with_its_remedy(
    command: Command, sweep: list[str], name: str, plugin: str, extra: str
) -> None:
    if find_spec(f"hydra_plugins.{plugin}"):
        pytest.skip(f"hydra/launcher={name} is installed")
    status, _, error = command("evaluate", *sweep, f"hydra/launcher={name}")
    assert (status, error) == (
        1,
        f'Error: hydra/launcher={name} is not installed: pip install "whitepool[{extra}]".\n',
    )


def test_a_launcher_that_there_is_none_of(command: Command, sweep: list[str]) -> None:
    status, _, error = command("evaluate", *sweep, "hydra/launcher=nope")
    assert status == 1
    assert error.startswith("Error: there is no hydra/launcher=nope: choose one of basic, joblib,")
