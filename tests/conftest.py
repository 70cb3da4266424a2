"""Fixtures of all tests: tiny checkpoints, and the folder of shared data."""

from __future__ import annotations

import logging
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["HYDRA_FULL_ERROR"] = "0"  # .ci/run asks for tracebacks; tests are about what users see
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several, each of which would take all cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tiny import WORDS, make_checkpoint, shared_folder

LONGEST = ("test_reference.py", "test_results.py")  # minutes for a test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, then the longest, so that no process waits for them at the end."""

    def place(item: pytest.Item) -> int:
        slow = item.get_closest_marker("slow") is not None
        return (1 if item.path.name in LONGEST else 2) if slow else 0

    items.sort(key=place)


@pytest.fixture(autouse=True)
def logging_stays_as_it_was() -> Iterator[None]:
    """Commands set up logging, which is only right in a process of their own."""
    logger, root = logging.getLogger("whitepool"), logging.getLogger()
    level, root_level, handlers = logger.level, root.level, list(root.handlers)
    yield
    logger.setLevel(level)
    root.setLevel(root_level)
    for handler in set(root.handlers).difference(handlers):
        handler.close()
    root.handlers[:] = handlers


@pytest.fixture(autouse=True)
def hydra_has_no_job() -> Iterator[None]:
    """A command leaves its job behind, and what is run next would count as one of a multirun."""
    yield
    if (core := sys.modules.get("hydra.core.hydra_config")) is not None:
        core.HydraConfig.instance().cfg = None


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of the tiny checkpoint of a family, made once a session."""
    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            made[family] = make_checkpoint(family, tmp_path_factory.mktemp(family))
        return made[family]

    return get


@pytest.fixture(scope="session")
def plm(checkpoint: Callable[[str], Path]) -> Callable[[str], Any]:
    """The tiny model of a family, loaded once a session."""
    from whitepool.plm import FrozenPLM

    loaded: dict[str, FrozenPLM] = {}

    def get(family: str) -> FrozenPLM:
        if family not in loaded:
            loaded[family] = FrozenPLM.from_pretrained(path=checkpoint(family), name=family)
        return loaded[family]

    return get


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 60 pairs whose score is their share of common words."""
    draw = random.Random(0)
    path = tmp_path_factory.mktemp("pairs") / "mine.tsv"
    lines = ["sentence1\tsentence2\tscore"]
    for _ in range(60):
        a = draw.sample(WORDS, 5)
        b = draw.sample(a, draw.randint(0, 5)) + draw.sample(WORDS, 2)
        lines.append(f"{' '.join(a)}\t{' '.join(b)}\t{len(set(a) & set(b))}")
    path.write_text("\n".join([*lines, "\ta dog\t1", ""]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared folder; tests that need it skip where it is absent, and say so."""
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"no data sets and reference values at {folder} (set WHITEPOOL_SHARED)")
    return folder


@pytest.fixture
def hydra_store() -> Iterator[None]:
    """Hydra without published experiments behind the test: it copies its store at every look-up."""
    yield
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().repo.pop("experiment", None)


@pytest.fixture(scope="session")
def masked(
    checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Folder of the tiny checkpoint of a family whose mask token is a comma."""
    from transformers import AutoTokenizer

    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            folder = tmp_path_factory.mktemp(f"masked_{family}") / family
            shutil.copytree(checkpoint(family), folder)
            tokenizer: Any = AutoTokenizer.from_pretrained(folder)
            tokenizer.mask_token = ","  # in none of the texts
            tokenizer.save_pretrained(folder)
            made[family] = folder
        return made[family]

    return get
