"""Every command of the README composes; the section that practitioners paste runs as it stands."""

from __future__ import annotations

import fnmatch
import gzip
import io
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ValueType
from omegaconf import OmegaConf

from whitepool.commands import console
from whitepool.data import load_sts
from whitepool.encoder import Encoder
from whitepool.published import experiments

from tiny import WORDS, make_checkpoint

README = Path(__file__).resolve().parents[1] / "README.md"
SECTION = "## From your sentences to a search index\n"


def blocks() -> list[list[str]]:
    """The indented blocks of the section, a list of lines each."""
    section = README.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    found: list[list[str]] = [[]]
    for line in section.splitlines():
        if line.startswith("    ") or (not line and found[-1]):
            found[-1].append(line.removeprefix("    "))
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


def test_the_section_has_commands_and_then_a_program() -> None:
    commands, program, *_ = blocks()
    assert [shlex.split(line)[:2] for line in commands if line][1:] == [
        ["whitepool", "train"],
        ["whitepool", "export"],
    ]
    compile("\n".join(program), "README.md", "exec")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(Encoder, "export"), reason="Encoder.export is not there yet")
def test_the_section_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("sentence_transformers", "usearch"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    (stsb,) = load_sts(["stsb"], split="dev")
    texts = list(dict.fromkeys([*stsb.scored[0].first, *stsb.scored[0].second]))[:500]
    Path("sentences.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    commands, program, *_ = blocks()
    for line in commands:
        if line.startswith("whitepool "):
            GlobalHydra.instance().clear()
            monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
            try:
                status = console.main()
            except SystemExit as ended:
                status = int(ended.code or 0)
            assert status == 0, line
    capsys.readouterr()
    exec(compile("\n".join(program), "README.md", "exec"), {})
    found = [line.split(" ", 1) for line in capsys.readouterr().out.splitlines()]
    assert len(found) == 10
    assert all(text in texts for _, text in found)
    cosines = [float(cosine) for cosine, _ in found]
    assert cosines == sorted(cosines, reverse=True)
    assert {"dog", "park"} & set(found[0][1].lower().strip(".").split())


SCRIPT = re.compile(
    r"^(?:.*\| )?(?:python (evaluate|train|encode)\.py|whitepool (evaluate|train|encode))\b(.*)$"
)
CONF = README.parent / "conf"


def scripts() -> list[tuple[str, str]]:
    """Every line of the README that starts a script: the script, and what is behind it."""
    lines = [x.strip() for x in README.read_text("utf-8").splitlines() if x.startswith("    ")]
    parts = [part for line in lines for part in line.split(" && ")]
    found = [match for part in parts if (match := SCRIPT.match(part))]
    return [(match[1] or match[2], match[3]) for match in found]


def singly(words: list[str]) -> list[str]:
    """Overrides of the first job of a multirun."""
    result = []
    for override in OverridesParser.create().parse_overrides(words):
        if override.value_type == ValueType.GLOB_CHOICE_SWEEP:
            (pattern,) = override.value().include
            name = fnmatch.filter(experiments.by_experiment(), pattern)[0]
            result.append(f"{override.get_key_element()}={name}")
        elif override.is_sweep_override():
            result.append(f"{override.get_key_element()}={next(override.sweep_string_iterator())}")
        else:
            result.append(str(override.input_line))
    return result


@pytest.mark.usefixtures("hydra_store")
def test_every_command_of_the_readme_composes() -> None:
    commands = sorted(scripts(), key=lambda command: "experiment=" in command[1])
    assert len(commands) > 25
    for script, rest in commands:
        words = [word for word in shlex.split(rest, comments=True) if word != "-m"]
        if words[:1] in (["--help"], ["--list"]):
            continue
        if any("experiment=" in word for word in words):
            experiments.register(words)
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose(script, overrides=singly(words))
        for word in singly(words):
            key, _, value = word.partition("=")
            if "." in key:
                assert OmegaConf.select(config, key) is not None, (rest, key, value)


NOT_AT_HAND = ("corpus=nli", "data=rte", "data=sts_zh")  # files that no test has
ROOTS = {"data=sts": "whiteningbert", "data=stsb_multi": "multilingual"}


def made_small(script: str, words: list[str], tiny: Path, shared: Path) -> list[str]:
    """The words of a command, with a tiny model, one task, and folders that are there."""
    result = []
    for word in words:
        match word.split("="):
            case ["data.root", _]:
                suites = [folder for name, folder in ROOTS.items() if name in words]
                result.append(f"data.root={shared / 'sts' / (suites or ['whiteningbert'])[0]}")
            case ["model.path", _]:
                pass
            case ["recipe", _]:
                result.append("recipe=mine")
            case ["resume_from", _]:
                result.append(f"resume_from={sorted(Path().glob('outputs/*/*/moments.*'))[0]}")
            case _:
                result.append(word)
    if not any(word.startswith("recipe=") for word in words):
        result.append(f"model.path={tiny}")
        if not any(word.startswith(("model=", "experiment=whiteningbert_")) for word in words):
            result.append("model=bert")
    if (
        any(word in words for word in ("data=sts", "data.root=FOLDER"))
        and "data=stsb_multi" not in words
    ):
        result.append("data.tasks=[stsb]")
    small = {"evaluate": ["bootstrap=5", "figures=false"], "train": [], "encode": []}
    return [*result, *small[script], "trainer.enable_progress_bar=false", "trainer=cpu"]


@pytest.mark.slow
def test_every_command_of_the_readme_runs_on_a_tiny_model(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared: Path,
    pairs: Path,
) -> None:
    """In their order, in one folder; those of files that are not at hand are left out."""
    monkeypatch.chdir(tmp_path)
    texts = [" ".join(WORDS[i % 7 : i % 7 + 1 + i % 5]) for i in range(90)]
    for name in ("sentences.txt", "more.txt"):
        Path(name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    Path("reviews.csv").write_text("body\n" + "\n".join(texts) + "\n", encoding="utf-8")
    Path("reviews").mkdir()
    lines = "".join(
        json.dumps({"id": f"r{i}", "body": text}) + "\n" for i, text in enumerate(texts)
    )
    Path("reviews/1.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    Path("my.tsv").write_bytes(pairs.read_bytes())
    tiny = make_checkpoint("bert", tmp_path / "tiny", hidden_size=288, num_attention_heads=12)
    commands = [(script, shlex.split(rest, comments=True)) for script, rest in scripts()]
    first = commands.index(("train", ["corpus=text", "corpus.path=sentences.txt", "output=mine"]))
    ran = 0
    for script, words in [commands[first], *commands[:first], *commands[first + 1 :]]:
        if words[:1] in (["--help"], ["--list"]) or set(words) & set(NOT_AT_HAND):
            continue
        several = any("glob(" in word for word in words)  # two dozen: the first will do
        given = singly([w for w in words if w != "-m"]) if several else words
        shutil.rmtree("vectors", ignore_errors=True)
        GlobalHydra.instance().clear()
        arguments = made_small(script, given, tiny, shared)
        monkeypatch.setattr(sys, "argv", ["whitepool", script, *arguments])
        if "input=-" in words:
            monkeypatch.setattr(
                sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(texts).encode()))
            )
        with pytest.raises(SystemExit) as ended:
            console.main()
        assert ended.value.code == 0, arguments
        ran += 1
    assert ran > 20
