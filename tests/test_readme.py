"""The section of the README that a practitioner pastes, run as it stands."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

from whitepool.commands import console
from whitepool.data import load_sts
from whitepool.encoder import Encoder

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
