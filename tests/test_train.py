"""train.py as a whole, in this process: what it prints, leaves, merges and refuses."""

from __future__ import annotations

import json
import random
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from whitepool.moments_file import load_moments
from whitepool.pooling.spec import Diagonal, Linear
from whitepool.recipe import Recipe
from whitepool.training import train

from tiny import WORDS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Callable[[str], Path]
) -> Callable[..., tuple[int, Path]]:
    """Runs a script with the tiny BERT; gives its exit status and its run folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    runs = 0

    def run(*overrides: str, script: str = "train.py", model: bool = True) -> tuple[int, Path]:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"run{runs}"
        given = [f"hydra.run.dir={folder}", "trainer.enable_progress_bar=false", "figures=false"]
        given += overrides
        if model:
            given += ["model=bert", f"model.path={checkpoint('bert')}"]
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", [script, *given])
        handler = signal.getsignal(signal.SIGINT)
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / script), run_name="__main__")
        signal.signal(signal.SIGINT, handler)
        assert isinstance(ended.value.code, int)
        return ended.value.code, folder

    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """200 lines of text as one file and as two halves, and 40 pairs."""
    draw = random.Random(0)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 7))) for _ in range(200)]
    pairs = [
        "sentence1\tsentence2\tscore",
        *(f"{lines[i]}\t{lines[-i]}\t{i % 5}" for i in range(40)),
    ]
    content = {"all": lines, "a": lines[:90], "b": lines[90:], "pairs.tsv": pairs}
    for name, some in content.items():
        (tmp_path / name).write_text("\n".join(some) + "\n", encoding="utf-8")
    return {name.partition(".")[0]: str(tmp_path / name) for name in content}


def text(path: str) -> list[str]:
    return ["corpus=text", f"corpus.path={path}"]


def test_a_fit_leaves_a_recipe_its_moments_and_numbers(
    command: Any, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "mine"
    code, folder = command(*text(files["all"]), "whitening.k=8", f"output={target}", "logger=csv")
    assert code == 0
    printed = capsys.readouterr().out
    assert "200 texts of corpus text" in printed
    for name in ("n", "d", "effective rank", "condition number", "50 %", "90 %", "99 %", "k"):
        assert name in printed
    assert f"Recipe: {target}" in printed
    recipe = Recipe.load(target)
    assert recipe.post is not None
    assert (recipe.post.count, recipe.post.directions, recipe.post.k) == (200, 8, 8)
    assert recipe.provenance["corpus_texts"] == 200
    moments, content = load_moments(folder / "moments.safetensors")
    assert (moments.count, moments.dim) == (200, 32)
    assert content["corpora"][0]["sources"] == [files["all"]]
    fit = json.loads((folder / "fit.json").read_text())["fit"]
    assert (fit["count"], fit["dim"], fit["kept"]) == (200, 32, 8)
    assert (folder / "config.yaml").exists()
    assert (folder / "csv" / "metrics.csv").exists()
    assert recipe.affine is not None
    assert torch.equal(recipe.affine.mean, moments.mean)


def test_words_are_counted_and_merged(command: Any, files: dict[str, str]) -> None:
    """Zipfian whitening of two halves is that of the whole, and equals the API's."""
    import whitepool

    options = ["pooling=static_words", "whitening=zipfian"]
    code, half = command(*text(files["a"]), *options)
    assert code == 0
    resumed = f"resume_from={half / 'moments.safetensors'}"
    code, whole = command(*text(files["b"]), *options, resumed)
    assert code == 0
    sentences = Path(files["all"]).read_text().splitlines()
    ours = whitepool.load(whole / "recipe")
    path = Recipe.load(whole / "recipe").model.path
    assert path is not None
    theirs = whitepool.load(path, pooling="static_words", whitening="zipfian").fit(sentences)
    a, b = ours.encode(sentences), theirs.encode(sentences)
    assert np.allclose(a @ a.T, b @ b.T, atol=1e-3)
    moments, content = load_moments(whole / "moments.safetensors")
    assert moments.count == sum(len(sentence.split()) for sentence in sentences)
    assert content["vectors"]["of"] == "words"
    code, _ = command(*text(files["b"]), "pooling=static_words", resumed)
    assert code == 1


def test_the_recipe_equals_the_python_api(command: Any, files: dict[str, str]) -> None:
    """The API fits without Lightning and without corpora."""
    import whitepool

    code, folder = command(*text(files["all"]), "pooling=first_last", "batch_tokens=30", "window=7")
    assert code == 0
    sentences = Path(files["all"]).read_text().splitlines()
    ours = whitepool.load(folder / "recipe")
    path = Recipe.load(folder / "recipe").model.path
    theirs = whitepool.load(path, pooling="first_last", whitening="pca").fit(sentences)
    a, b = ours.encode(sentences), theirs.encode(sentences)
    assert np.abs(a @ a.T - b @ b.T).max() < 1e-2  # whitened float32 states: noise is amplified
    assert np.abs(ours.similarity(a[:20], b[:20]).diagonal()).min() > 1 - 1e-4


def test_two_halves_merged_are_the_whole(command: Any, files: dict[str, str]) -> None:
    _, whole = command(*text(files["all"]))
    _, first = command(*text(files["a"]))
    code, second = command(*text(files["b"]), f"resume_from={first}/moments.safetensors")
    assert code == 0
    _, other = command(*text(files["b"]))
    halves = f"resume_from=[{first}/moments.safetensors,{other}/moments.safetensors]"
    code, merged = command(halves)
    assert code == 0
    wanted, _ = load_moments(whole / "moments.safetensors")
    scale = wanted.scatter.abs().max()
    for folder in (second, merged):
        found, content = load_moments(folder / "moments.safetensors")
        assert found.count == wanted.count
        assert (found.mean - wanted.mean).abs().max() < 1e-6  # states in other batches
        assert (found.scatter - wanted.scatter).abs().max() < 1e-5 * scale
        assert [corpus["texts"] for corpus in content["corpora"]] == [90, 110]
        assert Recipe.load(folder / "recipe").provenance["corpus_2_texts"] == 110
    a, _ = load_moments(second / "moments.safetensors")
    b, _ = load_moments(merged / "moments.safetensors")
    assert (a.scatter - b.scatter).abs().max() < 1e-10 * scale


def test_moments_of_other_vectors_are_refused(
    command: Any, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = command(*text(files["a"]))
    resume = f"resume_from={first}/moments.safetensors"
    capsys.readouterr()
    for override, key in (
        ("pooling=cls", "pooling"),
        ("model.max_length=20", "max_length"),
        ("trainer.precision=bf16-true", "dtype"),
    ):
        code, folder = command(resume, override)
        assert code == 1
        assert f"has moments of other vectors: {key} is " in capsys.readouterr().err
        assert not (folder / "recipe").exists()
    code, _ = command(resume, "pooling=layers", "pooling.layers=[3]")  # the last of three layers
    assert code == 0
    code, _ = command(*text(files["a"]), resume)
    assert code == 0
    assert "The same texts of corpus text were taken in 2 times." in capsys.readouterr().err


def test_few_texts_are_said(
    command: Any, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command(*text(files["a"]))
    assert "90 texts are few for 32 dimensions" in capsys.readouterr().err
    command(*text(files["b"]))
    assert "texts are few" not in capsys.readouterr().err


def test_ctrl_c_leaves_nothing_half_written(
    command: Any,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from whitepool.plm import FrozenPLM

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FrozenPLM, "states", interrupted)
    target = tmp_path / "mine"
    code, folder = command(*text(files["all"]), f"output={target}")
    assert code == 130
    assert "Interrupted." in capsys.readouterr().err
    left = {path.name for path in (*tmp_path.iterdir(), *folder.iterdir())}
    assert not left & {"mine", "recipe", "moments.safetensors", "fit.json"}
    assert not any("mine" in name or "moments" in name for name in left)


def test_pairs_and_a_protocol(command: Any, files: dict[str, str]) -> None:
    code, folder = command(
        "corpus=pairs", "data=pairs", f"data.path={files['pairs']}", "corpus.limit=50",
        "experiment=bert_whitening", "whitening.k=4", "protocol.max_length=9",
    )  # fmt: skip
    assert code == 0
    recipe = Recipe.load(folder / "recipe")
    assert recipe.max_length == 9
    assert recipe.post is not None
    assert recipe.post.count == 50


def test_a_step_that_cannot_be_fitted_does_not_cost_the_pass(
    command: Any, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, failed = command(*text(files["all"]), "whitening.k=40")
    assert code == 1
    kept = failed / "moments.safetensors"
    printed = " ".join(capsys.readouterr().err.split())
    assert "whitening.k=40 is over the 32 dimensions of the vectors: give k up to" in printed
    assert f"; resume_from={kept} in place of corpus= spares reading the texts again." in printed
    code, again = command(f"resume_from={kept}", "whitening.k=8")
    assert code == 0
    code, whole = command(*text(files["all"]), "whitening.k=8")
    assert code == 0
    found, wanted = (Recipe.load(folder / "recipe").arrays for folder in (again, whole))
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_an_export_beside_the_recipe(
    command: Any, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tmp_path / "exported"
    wanted = [*text(files["all"]), "whitening.k=8", f"export={folder}"]
    code, run = command(*wanted)
    assert code == 0
    printed = capsys.readouterr().err
    assert "SentenceTransformer(FOLDER) loads it" in printed
    assert "sentence_transformers." not in printed
    import whitepool

    sentences = Path(files["b"]).read_text().splitlines()
    ours = whitepool.load(run / "recipe", device="cpu").encode(sentences)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(sentences)
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(ours).max()
    card = (folder / "README.md").read_text()
    assert (
        "    python train.py trainer.enable_progress_bar=false figures=false corpus=text " in card
    )
    assert f" export={folder} " in card
    code, run = command(*wanted)  # refused before any work
    assert code == 1
    assert f"{folder} is an export: replace it with overwrite=true" in capsys.readouterr().err
    assert not (run / "recipe").exists()
    code, _ = command(*wanted, "overwrite=true")
    assert code == 0
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dog 1 0 2\ncat 0 1 3\nruns 1 1 0\n", encoding="utf-8")
    words = ["model=words", f"model.path={vectors}", f"export={tmp_path / 'no'}"]
    code, run = command(*text(files["all"]), *words, model=False)
    assert code == 1
    assert "model words is a file of word vectors" in capsys.readouterr().err
    assert not (run / "moments.safetensors").exists()


@pytest.mark.parametrize("name", ["idf", "sif"])
def test_token_weights_are_kept_in_the_recipe(
    command: Any, files: dict[str, str], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, folder = command(*text(files["all"]), f"pooling={name}", "whitening=off")
    assert code == 0
    recipe = Recipe.load(folder / "recipe")
    assert recipe.provenance["corpus_texts"] == 200
    assert recipe.arrays["token_weights"].min() == 0
    data = ["data=pairs", f"data.path={files['pairs']}", "bootstrap=0"]
    code, ours = command(*text(files["all"]), f"pooling={name}", *data, script="evaluate.py")
    assert code == 0
    code, theirs = command(f"recipe={folder}/recipe", *data, script="evaluate.py", model=False)
    assert code == 0
    a, b = (json.loads((f / "results.json").read_text()) for f in (ours, theirs))
    raw = [[row["value"] for row in r["scores"] if row["stage"] == "raw"] for r in (a, b)]
    assert raw[0] == raw[1]
    assert a["token_weights"]["texts"] == 200
    capsys.readouterr()
    code, _ = command(f"pooling={name}", "resume_from=x.safetensors")
    assert code == 1
    assert "its moments do not add up" in capsys.readouterr().err


def test_fit_and_score_in_one_go(
    command: Any, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """evaluate.py on a corpus gives what train.py and evaluate.py recipe= give."""
    data = ["data=pairs", f"data.path={files['pairs']}", "bootstrap=0"]
    code, one = command(*text(files["all"]), "whitening.fit_on=corpus", *data, script="evaluate.py")
    assert code == 0
    assert "fitted on 200 texts of corpus text" in capsys.readouterr().out
    _, fitted = command(*text(files["all"]))
    code, two = command(f"recipe={fitted}/recipe", *data, script="evaluate.py", model=False)
    assert code == 0
    a, b = (json.loads((f / "results.json").read_text()) for f in (one, two))
    assert [row["value"] for row in a["scores"]] == [row["value"] for row in b["scores"]]
    assert a["fit"]["sets"]["corpus"]["vectors"] == 200
    assert a["fit"]["on"] == b["fit"]["on"] == "200 texts of corpus text"
    assert a["fit"]["corpora"][0]["sources"] == [files["all"]]
    kept = dict(Recipe.load(one / "recipe").provenance)
    other = dict(Recipe.load(fitted / "recipe").provenance)
    assert kept.pop("command").startswith("python evaluate.py ")
    assert other.pop("command").startswith("python train.py ")
    assert kept.pop("protocol") == "simcse (all)"
    assert kept.pop("spearman_pairs") == pytest.approx(a["headline"]["value"], abs=1e-4)
    assert kept == other
    scored = Recipe.load(two / "recipe").provenance
    assert scored["command"] == Recipe.load(fitted / "recipe").provenance["command"]
    assert str(scored["scored_with"]).startswith("python evaluate.py ")
    assert scored["spearman_pairs"] == pytest.approx(b["headline"]["value"], abs=1e-4)


@pytest.mark.parametrize(
    ("overrides", "value"),
    [
        (["corpus=text", "corpus.path={all}"], 200),
        (["corpus=text", "corpus.path={all}", "corpus.limit=150"], 150),
        (["corpus=text", "corpus.path={b}", "pooling=idf", "whitening=off"], 110),
        (["pooling=cls", "whitening=off"], 0),
    ],
)
def test_what_is_returned_is_how_many_texts_were_fitted_on(
    files: dict[str, str],
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    overrides: list[str],
    value: float,
) -> None:
    given = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu"]
    given += ["trainer.enable_progress_bar=false", f"output_dir={tmp_path}/run"]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("train", [*given, *(override.format(**files) for override in overrides)])
    assert train(config) == value
    printed = capsys.readouterr().out
    assert ("No map was fitted (whitening=off)." in printed) == ("whitening=off" in overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "whitening=pca has nothing to be fitted on: choose a corpus"),
        (["corpus=text"], "corpus.path has no value"),
        (["corpus=text", "corpus.path=no.txt"], "corpus.path=no.txt does not exist"),
        (["corpus=text", "corpus.path={all}", "corpus.limit=0"], "corpus.limit is 0: give at"),
        (["corpus=text", "corpus.path={all}", "whitening=off"], "corpus=text is of no use with"),
        (
            ["corpus=text", "corpus.path={all}", "whitening.fit_on=task"],
            "takes no whitening.fit_on",
        ),
        (["corpus=csv", "corpus.path={pairs}"], "no column text (columns found: sentence1, "),
        (["corpus=text", "corpus.path={all}", "output=."], "holds other things than a recipe"),
        (["resume_from=no.safetensors"], "there is no moments file no.safetensors"),
        (["pooling=idf", "whitening=off"], "this pooling weighs tokens by how often a corpus"),
        (["pooling=avg", "pooling.head=auto"], "pooling.head=auto is for pooling=ditto, not avg"),
        (["corpus=nope"], "there is no corpus=nope: choose one of csv, hub, jsonl, nli, none"),
    ],
)
def test_errors_are_one_sentence(
    command: Any,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    overrides: list[str],
    message: str,
) -> None:
    code, folder = command(*(override.format(**files) for override in overrides))
    printed = capsys.readouterr().err
    assert code == 1
    assert message in printed
    assert "Traceback" not in printed
    assert not (folder / "recipe").exists()


@pytest.mark.slow  # STS-B's 1,500 dev pairs, all heads
def test_a_head_chosen_on_a_dev_split(command: Any) -> None:
    code, folder = command("pooling=ditto", "pooling.head=auto", "whitening=off")
    assert code == 0
    recipe = Recipe.load(folder / "recipe")
    assert recipe.provenance["head_chosen_on"] == "stsb dev"
    spec = recipe.pooling
    assert isinstance(spec, Linear)
    assert isinstance(spec.tokens, Diagonal)
    data = ["data=stsb", "data.split=dev", "bootstrap=0"]
    code, scored = command(f"recipe={folder}/recipe", *data, script="evaluate.py", model=False)
    assert code == 0
    value = json.loads((scored / "results.json").read_text())["headline"]["value"]
    assert recipe.provenance["head_dev"] == pytest.approx(value, abs=1e-3)


def test_help_lists_corpora_and_examples(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = command("--help", model=False)
    assert code == 0
    printed = capsys.readouterr().out
    assert "corpus: csv, hub, jsonl, nli, none, pairs, parquet, text" in printed
    assert "python train.py corpus=text corpus.path=sentences.txt" in printed
