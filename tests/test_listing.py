"""Lists of choices: every group of every command, and that all files say what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from whitepool import listing
from whitepool.errors import UserError

CONF = Path(__file__).resolve().parents[1] / "conf"


@pytest.mark.parametrize("command", ["evaluate", "train", "encode"])
def test_every_choice_says_what_it_is(command: str) -> None:
    groups = listing.groups_of(CONF / f"{command}.yaml")
    assert {"model", "pooling", "trainer"} <= set(groups)
    for group in groups:
        files = {path.stem for path in (CONF / group).glob("*.yaml")}
        found = listing.choices(CONF / group)
        assert files <= set(found)
        assert all(found[name] for name in files), [n for n in files if not found[n]]


def test_the_first_sentence_ends_at_a_stop_that_ends_one(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for text, said in (
        (
            "# One (Li et al. 2020) by\n# J. Doe. Two.\nname: x\n# three\n",
            "One (Li et al. 2020) by J. Doe",
        ),
        ("# One.\n", "One"),
        ("name: x\n# One.\n", ""),
    ):
        path.write_text(text)
        assert listing.first_sentence(path) == said


@pytest.mark.parametrize(
    ("word", "choice"),
    [("models", "all_minilm"), ("model", "bert"), ("heads", "ditto"), ("maps", "pca"),
     ("data", "stsb"), ("datasets", "sts"), ("experiments", "whiteningbert_table2_bert")],
)  # fmt: skip
def test_groups_go_by_several_names(
    word: str, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listing.show(CONF, "evaluate", word)
    printed = capsys.readouterr().out
    assert any(line.split()[0] == choice for line in printed.splitlines()[1:] if line.strip())
    assert max(map(len, printed.splitlines())) <= 80


def test_an_unknown_group_is_told_of() -> None:
    with pytest.raises(UserError, match=r"--list modles: did you mean model.*give one of model, "):
        listing.show(CONF, "evaluate", "modles")
    with pytest.raises(UserError, match="give one of model, pooling"):
        listing.show(CONF, "train", "")


def test_what_is_asked_for() -> None:
    assert listing.asked(["model=bert"]) is None
    assert listing.asked(["--list"]) == ""
    assert listing.asked(["--list", "models"]) == "models"
    assert listing.asked(["--list=models"]) == "models"
