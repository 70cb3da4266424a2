"""Whole commands on 2 and 3 processes beside the same on one, and processes that fail."""

from __future__ import annotations

import json
import multiprocessing
import random
import re
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra
from safetensors import safe_open

from whitepool.moments_file import load_moments
from whitepool.recipe import Recipe
from whitepool.whitening import Affine

from tiny import WORDS

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = pytest.mark.nightly
SENTENCES = 31  # different ones, a prime number
Ended = tuple[int, Path, str]


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of pairs and of texts, and what the commands leave."""
    folder = tmp_path_factory.mktemp("commands")
    draw = random.Random(0)
    texts = sorted({" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(60)})
    texts = draw.sample(texts, SENTENCES)
    pairs = [
        f"{a}\t{b}\t{len(set(a.split()) & set(b.split()))}"
        for a, b in zip(texts, [*texts[7:], *texts[:7]], strict=True)
    ]
    header = "sentence1\tsentence2\tscore"
    (folder / "mine.tsv").write_text("\n".join([header, *pairs, ""]), encoding="utf-8")
    few = "a dog\ta cat\t1\na dog\tthe man eats\t0\na cat\tthe man eats\t2"
    (folder / "few.tsv").write_text(f"{header}\n{few}\n", encoding="utf-8")
    lines = [*texts, "", *texts[:9]]
    (folder / "texts.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder


@pytest.fixture
def command(
    place: Path, patched: pytest.MonkeyPatch, checkpoint: Callable[[str], Path], capfd: Any
) -> Callable[..., Ended]:
    """Runs a script in this process: its exit status, its run folder, and all that was said."""

    def run(script: str, name: str, *overrides: str) -> Ended:
        folder = place / name
        given = [f"hydra.run.dir={folder}", "trainer.enable_progress_bar=false"]
        given += ["model=bert", f"model.path={checkpoint('bert')}", *overrides]
        patched.chdir(place)
        patched.setenv("WHITEPOOL_CACHE", str(place / f"cache-{name}"))
        patched.setattr(sys, "argv", [script, *given])
        GlobalHydra.instance().clear()
        handler = signal.getsignal(signal.SIGINT)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / f"{script}.py"), run_name="__main__")
        signal.signal(signal.SIGINT, handler)
        assert not multiprocessing.active_children()
        assert not list(folder.glob(".pass-*"))
        assert isinstance(ended.value.code, int)
        out, err = capfd.readouterr()
        return ended.value.code, folder, out + err

    return run


def on(processes: int) -> list[str]:
    if processes == 1:
        return ["trainer=cpu"]
    return ["trainer=ddp_cpu", f"trainer.devices={processes}"]


def scores(folder: Path) -> Any:
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return [(row["stage"], row["metric"], row["value"]) for row in content["scores"]]


def kept(cache: Path, name: str) -> Any:
    """Arrays that the one file of a cache with this array in it holds, by name."""
    for path in (cache / "vectors").iterdir():
        with safe_open(path, framework="np") as file:
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if name in arrays:
            return arrays
    raise AssertionError(f"no {name} in {cache}")


def test_vectors_scores_and_maps_are_those_of_one_process(command: Any, place: Path) -> None:
    given = ["data=pairs", "data.path=mine.tsv", "batch_tokens=16", "figures=false"]
    code, one, said = command("evaluate", "on1", *given, *on(1))
    assert code == 0, said
    wanted = kept(place / "cache-on1", "vectors")["vectors"]
    for processes in (2, 3):
        name = f"on{processes}"
        code, folder, again = command("evaluate", name, *given, *on(processes))
        assert code == 0, again
        assert again.count("Spearman x100") == 1  # one table, and nothing said twice
        new = Counter(again.splitlines()) - Counter(said.splitlines())
        assert [line for line in new if name not in line] == []
        for (*row, value), (*other, expected) in zip(scores(folder), scores(one), strict=True):
            assert row == other
            assert abs(value - expected) <= 1e-3
        vectors = kept(place / f"cache-{name}", "vectors")["vectors"]
        assert vectors.shape == (SENTENCES, 32)
        assert np.abs(vectors - wanted).max() <= 1e-5 * np.abs(wanted).max()
        moments = kept(place / f"cache-{name}", "mine/mean")
        x = vectors.astype(np.float64)
        deviation = x - x.mean(0)
        scatter = 2 * deviation.T @ deviation  # each sentence stands in two pairs
        assert np.abs(moments["mine/mean"] - x.mean(0)).max() <= 1e-9
        assert np.abs(moments["mine/scatter"] - scatter).max() <= 1e-9 * scatter.max()
        assert moments["mine/count"] == 2 * SENTENCES
    content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert content["device"] == "cpu, 3 processes"
    code, folder, again = command("evaluate", "on3", *given, *on(3))
    assert code == 0
    assert "reused" in again
    assert scores(folder) == scores(one)


def test_fewer_sentences_than_processes(command: Any) -> None:
    given = ["data=pairs", "data.path=few.tsv", "whitening=off", "bootstrap=0", "figures=false"]
    found = []
    for processes in (1, 3):  # of which one has all three sentences, in one batch
        code, folder, said = command("evaluate", f"few{processes}", *given, *on(processes))
        assert code == 0, said
        found.append(scores(folder))
    assert found[0] == found[1]


def test_a_corpus_gives_the_moments_of_one_process(command: Any) -> None:
    given = ["corpus=text", "corpus.path=texts.txt", "window=17", "batch_tokens=16"]
    given += ["figures=false", "model.max_length=8"]
    one = command("train", "train1", *given, *on(1))
    several = command("train", "train3", *given, *on(3))
    assert (one[0], several[0]) == (0, 0), several[2]
    (moments, content), (wanted, expected) = (
        load_moments(folder / "moments.safetensors") for _, folder, _ in (several, one)
    )
    assert content["corpora"] == expected["corpora"]
    assert content["corpora"][0]["truncated"] > 0
    assert moments.count == wanted.count == SENTENCES + 9
    assert (moments.mean - wanted.mean).abs().max() <= 1e-6
    assert (moments.scatter - wanted.scatter).abs().max() <= 1e-5 * wanted.scatter.max()
    maps = [Recipe.load(folder / "recipe").fitted for _, folder, _ in (several, one)]
    assert all(isinstance(fitted, Affine) for fitted in maps)
    assert several[2].count("effective rank") == one[2].count("effective rank")


def test_a_folder_of_vectors_is_that_of_one_process_to_the_last_byte(
    command: Any, place: Path
) -> None:
    given = ["input=texts.txt", "on_bad=zero", "shard_rows=6", "format=npy"]
    for processes in (1, 3):
        code, _, said = command(
            "encode", f"encode{processes}", f"output=vectors{processes}", *given, *on(processes)
        )
        assert code == 0, said
    whole, dealt = (
        {path.name: path.read_bytes() for path in (place / f"vectors{n}").iterdir()} for n in (1, 3)
    )
    assert len(whole) == 2 * 7 + 3
    assert dealt == whole
    for number in (1, 5):  # and goes on from what is there
        (place / "vectors3" / f"vectors-0000{number}.npy").unlink()
    code, _, said = command("encode", "again", "output=vectors3", *given, *on(2))
    assert code == 0, said
    assert "going on after 29 vectors" in said
    assert {path.name: path.read_bytes() for path in (place / "vectors3").iterdir()} == whole


@pytest.mark.parametrize(
    ("head", "options", "sentence"),
    [
        ("Killed", [], r"process 2 of 2 was ended by SIGKILL"),
        (
            "Stuck",
            ["trainer.strategy.timeout.seconds=8"],
            r"process 1 of 2 waited 8 s for another",
        ),
        pytest.param(
            "NotFinite", [], r"the vector of '.*' is not finite: use trainer", marks=NIGHTLY
        ),
        pytest.param("Broken", [], r"DeadProcess: process . of 2: IndexError: such", marks=NIGHTLY),
    ],
)
def test_a_process_that_fails_ends_the_run(
    command: Any, head: str, options: list[str], sentence: str
) -> None:
    """Whatever the others wait for, and none of them is left."""
    given = ["data=pairs", "data.path=mine.tsv", "batch_tokens=16", "figures=false", "cache=off"]
    given += ["pooling=max", f"pooling._target_=failing.{head}", *options]
    code, folder, said = command("evaluate", f"fails{head}", *given, *on(2))
    assert code == 1
    assert re.search(f"Error: {sentence}", said), said
    assert len(re.findall("^Error: ", said, re.MULTILINE)) == 1
    assert "Traceback" not in said
    assert "Traceback" in (folder / "error.txt").read_text(encoding="utf-8")
    assert not (folder / "results.json").exists()


def test_two_processes_in_each_job_of_a_multirun(command: Any, place: Path) -> None:
    given = ["-m", "data=pairs", "data.path=mine.tsv", "batch_tokens=16", "figures=false"]
    given += ["pooling=avg,cls", "whitening=off", "hydra.sweep.dir=many"]
    code, _, said = command("evaluate", "none", *given, *on(2))
    assert code == 0, said
    assert sorted(path.name for path in (place / "many").iterdir() if path.name != ".lock") == [
        "0", "1", "multirun.yaml", "summary.csv",
    ]  # fmt: skip
    assert scores(place / "many" / "0") != scores(place / "many" / "1")
