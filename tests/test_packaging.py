"""A wheel and a source distribution carry the configuration, and an installed wheel works."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONF = {p.relative_to(ROOT).as_posix() for p in (ROOT / "conf").rglob("*.yaml")}
PROJECT = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "constraints.txt")
pytestmark = pytest.mark.slow


def checked(*command: str, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that nothing is written into the checkout."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("src", "conf"):
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in (*PROJECT, "evaluate.py", "train.py", "encode.py"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(project: Path) -> Path:
    """Built with the setuptools that is installed here, so that no index is asked."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(project / "dist")]
    checked(sys.executable, "-m", "pip", "wheel", *options, str(project))
    (path,) = (project / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment, which sees the packages installed here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "outer.pth").write_text("\n".join(site.getsitepackages()))
    target = ["--target", str(packages), "--no-deps", "--no-index"]
    checked(sys.executable, "-m", "pip", "install", *target, str(wheel))
    programs = folder / "bin"
    for script in (packages / "bin").iterdir():
        text = re.sub(r"\A#!.*", f"#!{programs / 'python'}", script.read_text())
        (programs / script.name).write_text(text)
        (programs / script.name).chmod(0o755)
    return programs


def test_a_wheel_has_the_configuration_once_and_every_module(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = next(name for name in names if name.endswith("entry_points.txt"))
        assert "whitepool = whitepool.commands.console:main" in archive.read(metadata).decode()
        for name in CONF:
            assert archive.read(f"whitepool/{name}") == (ROOT / name).read_bytes()
    assert {name for name in names if name.endswith(".yaml")} == {f"whitepool/{n}" for n in CONF}
    modules = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")}
    assert modules <= names
    assert "whitepool/py.typed" in names
    assert not any(name.startswith(("conf/", "tests/", "benchmarks/")) for name in names)


def test_a_wheel_of_the_source_distribution_is_the_same(project: Path, wheel: Path) -> None:
    code = "import setuptools.build_meta as b, sys; print(b.build_sdist(sys.argv[1]))"
    dist = project / "from_source"
    checked(sys.executable, "-c", code, str(dist), cwd=project)
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(dist, filter="data")
    (folder,) = (p for p in dist.iterdir() if p.is_dir())
    assert (folder / "constraints.txt").exists()
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(dist)]
    checked(sys.executable, "-m", "pip", "wheel", *options, str(folder))
    (other,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as a, zipfile.ZipFile(other) as b:
        assert set(a.namelist()) == set(b.namelist())


def test_the_commands_of_an_installed_wheel(
    installed: Path, tmp_path: Path, checkpoint: Callable[[str], Path], pairs: Path
) -> None:
    program = str(installed / "whitepool")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HYDRA", "WANDB"))}
    clean |= {"WHITEPOOL_CACHE": str(tmp_path / "cache"), "COLUMNS": "100"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def whitepool(*arguments: str) -> str:
        return checked(program, *arguments, cwd=elsewhere, env=clean)

    where = [str(installed / "python"), "-c", "import whitepool; print(whitepool.__file__)"]
    assert checked(*where, cwd=elsewhere, env=clean).startswith(str(installed.parent))
    assert whitepool("--version") == f"whitepool {version('whitepool')}\n"
    model = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu"]
    printed = whitepool("evaluate", *model, "data=pairs", f"data.path={pairs}")
    assert "difference" in printed
    (results,) = elsewhere.glob("outputs/*/*/results.json")
    content = json.loads(results.read_text(encoding="utf-8"))
    assert content["recipe"]["model"]["name"] == "bert"
    assert (results.parent / "evaluate.log").exists()
    assert "vectors  of model" in whitepool("cache", "list")
    assert "Removed: vectors of model" in whitepool("cache", "clear", "vectors")
    assert whitepool("cache", "list") == f"{tmp_path / 'cache'} holds nothing.\n"


def test_an_editable_install_reads_the_folder_of_the_checkout(
    project: Path, tmp_path: Path
) -> None:
    """The wheel that makes an install editable points at the sources and copies nothing."""
    code = "import setuptools.build_meta as b, sys; print(b.build_editable(sys.argv[1]))"
    checked(sys.executable, "-c", code, str(tmp_path), cwd=project)
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (pth,) = (name for name in names if name.endswith(".pth"))
        assert archive.read(pth).decode().strip() == str(project / "src")
        assert not any(name.endswith((".yaml", ".py")) for name in names)
    assert not list((project / "src").rglob("*.yaml"))
    where = "from whitepool.config_help import conf_folder; print(conf_folder())"
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    found = checked(sys.executable, "-c", where, cwd=tmp_path, env=environment)
    assert found.strip() == str(project / "conf")
