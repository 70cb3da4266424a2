"""The console command: words, help, mistakes; and the jobs behind it, run in this process."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

import whitepool
from whitepool.commands import console
from whitepool.commands.hydra_job import JOBS
from whitepool.config_help import conf_folder
from whitepool.errors import UserError

from tiny import WORDS

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run `whitepool …` in this process and in ``tmp_path``; its exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["/some/bin/whitepool", *arguments])
        try:
            status: object = console.main()
        except SystemExit as ended:
            status = ended.code
        assert isinstance(status, int)
        return status, *capsys.readouterr()

    return run


def test_version_and_commands(command: Command) -> None:
    for arguments in (["--version"], ["evaluate", "--version"], ["cache", "-V"]):
        assert command(*arguments) == (0, f"whitepool {version('whitepool')}\n", "")
    status, printed, _ = command("--help")
    assert (status, command()) == (0, (0, printed, ""))
    lines = printed.splitlines()
    for name in ("evaluate", "train", "encode", "export", "compare", "cache"):
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1
    assert max(map(len, lines)) < 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluat"], "there is no command 'evaluat': did you mean evaluate?"),
        (["train.py"], "there is no command 'train.py': did you mean train?"),
        (["model=bert"], "The commands are evaluate, train, encode, export, compare, cache."),
        (["evaluate", "modl=bert"], "there is no setting modl: did you mean model?"),
        (["encode", "input=x.txt"], "input=x.txt does not exist: check the path."),
        (["train", "cache=off"], "this command has no cache=: --help lists"),
        (["evaluate", "whitening.k=[1"], "a word cannot be read (no viable alternative at input"),
        (["--list", "modls"], "--list modls: did you mean model?"),
        (["train", "corpus=txt"], "there is no corpus=txt: choose one of csv, hub, jsonl"),
        (["compare", "a"], "whitepool compare takes two run folders: 1 were given."),
        (["compare", "a", "b"], "there is no run folder a: check the path."),
        (
            ["compare", "a", "b", "stge=raw"],
            "did you mean stage=? It takes stage=, bootst",
        ),
        (["evaluate", "--list", "modls"], "--list modls: did you mean model? give one of model,"),
        (["cache"], "whitepool cache has to be told what to do: choose list or clear."),
        (["cache", "show"], "whitepool cache has no 'show': choose list or clear."),
        (["cache", "clear"], "needs a kind: choose one of vectors, assets, all."),
        (["cache", "clear", "model"], "has no kind 'model': choose one of vectors, assets, all."),
        (["export"], "recipe has no value: give whitepool export recipe="),
        (["export", "recipe=a"], "output has no value"),
        (["export", "recip=a"], "takes no 'recip=a': did you mean recipe=? It takes recipe=, out"),
        (["export", "recipe=a", "output=b", "overwrite=yes"], "overwrite is 'yes': give true or"),
        (["export", "recipe=a", "output=b"], "recipe=a is no recipe folder: give one that"),
    ],
)
def test_mistakes_are_one_sentence(command: Command, arguments: list[str], message: str) -> None:
    status, printed, error = command(*arguments)
    assert (status, printed) == (1, "")
    assert error.startswith("Error: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", JOBS)
def test_help_is_that_of_the_script_with_the_words_typed(command: Command, name: str) -> None:
    status, printed, _ = command(name, "--help")
    assert status == 0
    assert f"\n  whitepool {name} " in printed
    assert f"{name}.py" not in printed
    assert "\nmodel: albert, " in printed
    assert "\nwhitening: auto, center, flow, off, pca" in printed
    groups = printed.partition("Settings and their defaults")[0]
    assert "schema" not in groups  # what other files are built on is no choice
    assert ("\ndata: atec, bq, lcqmc, " in groups) == (name != "encode")


@pytest.mark.parametrize("name", ["export", "compare", "cache"])
def test_help_of_the_other_commands(command: Command, name: str) -> None:
    status, printed, _ = command(name, "--help")
    assert status == 0
    assert printed.startswith(f"usage: whitepool {name} ")


def test_evaluate_train_and_encode_share_a_recipe(
    command: Command, checkpoint: Callable[[str], Path], pairs: Path, tmp_path: Path
) -> None:
    model = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu"]
    texts = tmp_path / "texts.txt"
    draw = random.Random(0)
    texts.write_text("".join(" ".join(draw.choices(WORDS, k=5)) + "\n" for _ in range(80)))
    run = ["hydra.run.dir=run", "trainer.enable_progress_bar=false"]
    fit = ["corpus=text", "corpus.path=texts.txt", "whitening.k=4", "output=mine", *run]
    status, _, error = command("train", *model, *fit)
    assert status == 0, error
    assert (tmp_path / "run" / "train.log").exists()
    settings = [f"data.path={pairs}", "recipe=mine", "trainer=cpu", "cache=off"]
    status, printed, error = command("evaluate", "data=pairs", "-m", *settings, "seed=0,1")
    assert status == 0, error
    assert "Jobs of this multirun" in printed
    jobs = sorted(log.parent for log in tmp_path.glob("multirun/*/*/*/evaluate.log"))
    status, printed, error = command("compare", *map(str, jobs), "bootstrap=99")
    assert (status, error) == (0, "")
    a, b, title, _, row = printed.rstrip().splitlines()
    assert (a, b) == (f"A: seed=0 ({jobs[0]}), post", f"B: seed=1 ({jobs[1]}), post")
    assert title.strip() == "Spearman x100, all"
    task, one, other, *gap, p, n = row.split()
    assert (task, one, p, n) == ("mine", other, "1.000", "61")
    assert gap == ["+0.00", "[+0.00,", "+0.00]"]
    encode = ["input=texts.txt", "output=v", "format=npy", "recipe=mine", "trainer=cpu", *run]
    status, _, error = command("encode", *encode)
    assert status == 0, error
    assert "80 vectors of 4 dimensions" in error


def test_the_configuration_of_a_wheel_comes_before_that_of_a_checkout(tmp_path: Path) -> None:
    package = tmp_path / "src" / "whitepool"
    package.mkdir(parents=True)
    with pytest.raises(UserError, match="has no folder conf: install whitepool with pip"):
        conf_folder(package)
    for folder in (tmp_path, package):
        (folder / "conf").mkdir()
        (folder / "conf" / "evaluate.yaml").touch()
        assert conf_folder(package) == folder / "conf"
    if (ROOT / "src") in Path(whitepool.__file__).parents:
        assert conf_folder() == ROOT / "conf"


def test_what_needs_no_model_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['whitepool', '--help'];"
        "from whitepool.commands.console import main; main();"
        "bad = {'hydra', 'torch', 'transformers', 'numpy', 'rich', 'omegaconf'};"
        "print('loaded', sorted(bad & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("loaded []\n")


@pytest.mark.parametrize(
    ("line", "wanted", "unwanted"),
    [
        ("whitepool ", {"evaluate", "train", "encode", "export", "compare", "cache"}, set()),
        ("whitepool ev", {"evaluate"}, set()),
        ("whitepool export ", {"recipe=", "output="}, {"model="}),
        ("whitepool cache ", {"list", "clear"}, {"model="}),
        ("whitepool evaluate ", {"model=", "protocol=", "bootstrap="}, {"input="}),
        ("whitepool evaluate model=", {"model=bert", "model=gemma"}, {"model=null"}),
        ("whitepool evaluate pooling=cls whitening.", {"whitening.k=", "whitening.fit_on="}, set()),
        ("whitepool encode ", {"input=", "output="}, {"bootstrap="}),
    ],
)
def test_completion(
    command: Command,
    line: str,
    wanted: set[str],
    unwanted: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    status, printed, error = command("-sc", "query=bash")
    assert status == 0, error
    words = set(printed.split())
    assert wanted <= words
    assert not unwanted & words


def test_completion_is_installed_for_the_console_command(command: Command) -> None:
    status, printed, _ = command("-sc", "install=bash")
    assert status == 0
    assert printed.rstrip().endswith("-F hydra_bash_completion whitepool")
