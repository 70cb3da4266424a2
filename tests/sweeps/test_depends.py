"""What makes two jobs the same, and what does not."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from whitepool.config_help import conf_folder
from whitepool.sweeps.depends import Checksums, settings

Compose = Callable[..., DictConfig]


@pytest.fixture(scope="module")
def composed() -> Compose:
    def get(*words: str, command: str = "evaluate") -> DictConfig:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return compose(command, ["output_dir=.", *words])

    return get


def test_settings_that_change_results_are_those_that_count(composed: Compose) -> None:
    base = composed()

    def updated(key: str, value: object) -> DictConfig:
        config: DictConfig = base.copy()
        OmegaConf.update(config, key, value)
        return config

    same = [
        updated(key, value)
        for key, value in {
            "output_dir": "elsewhere", "figures": False, "fail_fast": True, "resume": True,
            "trainer.enable_progress_bar": False, "cache.max_size": "1KB",
        }.items()
    ]  # fmt: skip
    same += [composed("logger=none", "cache=off"), composed("whitening=pca", "pooling=avg")]
    assert {settings(config) for config in same} == {settings(base)}
    other = [
        updated(key, value)
        for key, value in {
            "seed": 1, "pooling.layers": [0], "whitening.k": 3, "trainer.precision": "bf16-true",
            "data.split": "dev", "whitening.gamma": math.inf, "batch_tokens": 40,
        }.items()
    ]  # fmt: skip
    other += [composed("pooling=cls"), composed("analysis=dims"), base]
    assert len({settings(config) for config in other}) == len(other)


def test_what_cannot_be_resolved_counts_as_it_stands(composed: Compose) -> None:
    words = [f"data.name='${{oc.env:{name}}}'" for name in ("NO_SUCH", "NO_OTHER")]
    one, other = (settings(composed("data=pairs", "data.path=a", word)) for word in words)
    assert one != other


def test_the_content_of_files_counts_and_not_their_names(
    composed: Compose, checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path
) -> None:
    model, data = tmp_path / "model", tmp_path / "data.tsv"
    shutil.copytree(checkpoint("bert"), model)
    shutil.copy(pairs, data)
    words = ["model=local", f"model.path={model}", "data=pairs", f"data.path={data}"]
    config = composed(*words, "data.name=mine")
    first = Checksums().of(config)
    assert set(first) == {"data", "model"}
    assert Checksums().of(config) == first
    elsewhere = composed(*words[:1], f"model.path={checkpoint('bert')}", "data=pairs",
                         f"data.path={pairs}")  # fmt: skip
    assert Checksums().of(elsewhere) == first
    for file, name in ((data, "data"), (model / "model.safetensors", "model"),
                       (model / "config.json", "model")):  # fmt: skip
        before, state = file.read_bytes(), file.stat()
        changed = before[:-3] + bytes([before[-3] ^ 1]) + before[-2:]
        file.write_bytes(changed)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))  # a clock is not trusted
        now = Checksums().of(config)
        assert {key for key in first if now[key] != first[key]} == {name}, file
        file.write_bytes(before)
    assert Checksums().of(config) == first
    data.unlink()
    assert Checksums().of(config) == {**first, "data": None}


def test_corpora_recipes_and_moments_are_read_too(
    composed: Compose, pairs: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "a.txt"
    texts.write_text("a dog\na cat\n")
    words = ["corpus=text", f"corpus.path={texts}", "data=pairs", f"data.path={pairs}"]
    config = composed(*words, f"resume_from={texts}", command="train")
    first = Checksums().of(config)
    assert set(first) == {"corpus", "data", "model", "resume_from"}
    assert None not in first.values()
    texts.write_text("a dog\na car\n")
    now = Checksums().of(config)
    assert {key for key in first if now[key] != first[key]} == {"corpus", "resume_from"}
    missing = Checksums().of(composed(*words, "recipe=nowhere"))
    assert (missing["model"], missing["recipe"]) == (None, None)
    assert Checksums().of(composed("input=x", "output=y", command="encode")) == {}


def test_models_of_the_hub_count_by_their_commit(composed: Compose) -> None:
    pinned = composed("model=bert")
    assert Checksums().of(pinned)["model"] == pinned.model.revision
    assert Checksums().of(composed("model=hub", "model.id=nobody/nothing"))["model"] is None
