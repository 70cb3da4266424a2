"""Every command of the README composes; the section that practitioners paste runs as it stands."""

from __future__ import annotations

import fnmatch
import re
import shlex
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
