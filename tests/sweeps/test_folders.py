"""Which jobs are in a folder, and which folder a sweep was begun in."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from whitepool.errors import UserError
from whitepool.sweeps.folders import begun_with, chosen, standing, without_resume
from whitepool.sweeps.marker import Marker
from whitepool.sweeps.plan import Asked

PATTERN = "runs/${now:%Y-%m-%d}/${now:%H-%M-%S}"


def test_jobs_are_listed_by_number_and_unknown_ones_have_no_state(tmp_path: Path) -> None:
    for name in ("10", "9", "by/name"):
        (tmp_path / name).mkdir(parents=True)
        Marker(name).write(tmp_path / name)
    for name in "23":
        (tmp_path / name / ".hydra").mkdir(parents=True)
        (tmp_path / name / ".hydra" / "overrides.yaml").write_text("[]")
        (tmp_path / name / "evaluate.log").touch()
    (tmp_path / "2" / "results.json").write_text("{}")  # of a release without markers
    (tmp_path / "figures").mkdir()
    found = standing(tmp_path)
    assert list(found) == ["2", "9", "10", "by/name"]
    assert found == {name: None if name == "2" else Marker(name) for name in found}
    assert standing(tmp_path / "nowhere") == {}


def test_resume_is_taken_out_of_the_words() -> None:
    assert without_resume(["a=1", "resume=true", "b=2,3"]) == (["a=1", "b=2,3"], True)
    assert without_resume(["resume=False", "resume_from=x"]) == (["resume_from=x"], False)
    with pytest.raises(UserError, match="resume is 'true,false': give true or false"):
        without_resume(["resume=true,false"])


def test_a_multirun_is_found_by_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def begin(time: str, command: str, *words: str) -> Path:
        folder = Path("runs") / "2026-01-31" / time
        folder.mkdir(parents=True)
        record = {"hydra": {"job": {"name": command}, "overrides": {"task": list(words)}}}
        OmegaConf.save(record, folder / "multirun.yaml")
        return folder

    first = begin("10-00-00", "evaluate", "k=1,2", "model=bert")
    begin("11-00-00", "evaluate", "k=1,2,3", "model=bert")
    begin("12-00-00", "train", "k=1,2", "model=bert")
    last = begin("13-00-00", "evaluate", "model=bert", "resume=true", "k=1,2")
    (begin("14-00-00", "evaluate") / "multirun.yaml").write_text("{")
    own = Path("runs/2026-02-01/09-00-00")
    words = ["resume=true", "k=1,2", "model=bert"]
    assert begun_with(words, "evaluate", pattern=PATTERN, folder=own) == [last, first]
    flat = begun_with(words, "evaluate", pattern="runs/2026-01-31/${now:%H}", folder=first)
    assert flat == [last, first]
    assert begun_with(["k=1"], "evaluate", pattern=PATTERN, folder=own) == []


def test_the_folder_of_a_multirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words, asked = ["k=1,2", "m=a"], [Asked("0", "s", {"data": "1"})]

    def choose(pattern: str, *, resume: bool = True) -> Path:
        hydra = {"sweep": {"dir": pattern}, "job": {"name": "evaluate"}}
        OmegaConf.register_new_resolver("now", lambda form: "2026-12-31", replace=True)
        config = OmegaConf.create({"hydra": hydra})
        return chosen(config, words, asked, resume=resume, goes_on=False)

    def begin(name: str, *, finished: bool) -> Path:
        folder = Path("runs") / name
        (folder / "0").mkdir(parents=True)
        Marker("s", {"data": "1"}, finished=finished).write(folder / "0")
        record = {"hydra": {"job": {"name": "evaluate"}, "overrides": {"task": words}}}
        OmegaConf.save(record, folder / "multirun.yaml")
        return folder

    pattern = "runs/${now:%Y}"
    assert choose(pattern, resume=False) == Path("runs/2026-12-31")
    assert choose("runs/new") == Path("runs/new")
    with pytest.raises(UserError, match="finds no multirun of evaluate that was begun with these"):
        choose(pattern)
    done = begin("a", finished=True)
    assert choose(pattern) == done
    assert choose("runs/a") == done
    with pytest.raises(UserError, match=r"^runs/a holds 1 jobs of an earlier multirun, 1 of them"):
        choose("runs/a", resume=False)
    other = begin("b", finished=True)
    with pytest.raises(UserError, match=r"2 multiruns .* hydra.sweep.dir=runs/b for the newest"):
        choose(pattern)
    Marker("s").write(other / "0")
    assert choose(pattern) == other
    begin("c", finished=False)
    with pytest.raises(UserError, match=r"2 multiruns .* hydra.sweep.dir=runs/c for the newest"):
        choose(pattern)
