"""A word-vector file as a model: tokens, the mean of its vectors, whole runs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
import word_files as wf

from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.plm import FrozenPLM
from whitepool.pooling import AttentionDiagonal, FirstToken, LinearPooling, ModelPooler, Uniform
from whitepool.states import Batch, Needs, pad

import tiny_suite
from tiny import WORDS


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = [*WORDS[:-3], "Dog", "n't", "."]
    path = tmp_path_factory.mktemp("words") / "glove.txt"
    return wf.text(path, words, wf.vectors(words, 16), header=False)


@pytest.fixture(scope="module")
def plm(file: Path) -> FrozenPLM:
    return FrozenPLM.from_pretrained(path=file, name="words")


def words_of(plm: FrozenPLM, text: str) -> str:
    (ids,) = plm.tokenize([text]).ids
    found: str = plm.tokenizer.decode(ids)
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the dog runs", "the dog runs"),
        ("The Dog RUNS.", "the Dog runs ."),
        ("do n't the-cat", "n't the cat"),  # "do" and "-" have no vector
        ("(dog)", "dog"),
        ("eats...", "eats . . ."),
        ("dog_cat", "dog cat"),
    ],
)
def test_words_as_they_stand_then_lower_case_then_in_parts(
    plm: FrozenPLM, text: str, words: str
) -> None:
    assert words_of(plm, text) == words


def test_unknown_words_are_left_out_and_counted(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plm = FrozenPLM.from_pretrained(path=file)
    with caplog.at_level(logging.WARNING):
        found = plm.tokenize(["dog xyz xyz", "qq", "  ", "a dog"])
    assert found.ids[1] == found.ids[2] == ()
    assert len(found.ids[0]) == 1
    assert (
        "3 of 6 words have no vector and are left out, 2 of them distinct: xyz, qq." in caplog.text
    )


def test_texts_are_cut_to_words(plm: FrozenPLM) -> None:
    found = plm.tokenize(["a dog runs in the park", "a dog"], max_length=3)
    assert [len(ids) for ids in found.ids] == [3, 2]
    assert found.truncated == [True, False]
    assert found.ids[0] == plm.tokenize(["a dog runs"]).ids[0]


def test_vectors_are_means_of_the_file(plm: FrozenPLM) -> None:
    texts = ["a dog runs", "the cat is not on the food .", "dog"]
    ids = sorted(plm.tokenize(texts).ids, key=len, reverse=True)
    table = plm.model.get_input_embeddings().weight
    wanted = torch.stack([table[list(i)].double().mean(0) for i in ids]).float()
    for layers in ([-1], [0], ["static"]):
        head = LinearPooling(Uniform(), layers)
        padded = head(plm(pad(ids, 0), head.needs))
        batch = Batch(
            torch.arange(3), torch.tensor([t for i in ids for t in i]), tuple(map(len, ids))
        )
        alone = torch.cat([head(s) for _, s in plm.states(batch, head.needs)])
        assert torch.allclose(padded, wanted, atol=1e-6)
        assert torch.allclose(alone, wanted, atol=1e-6)
    assert not plm.packs
    first = LinearPooling(FirstToken(), [-1])
    assert torch.equal(first(plm(pad(ids, 0), first.needs)), table[[i[0] for i in ids]])


def test_what_word_vectors_have_not(plm: FrozenPLM) -> None:
    with pytest.raises(UserError, match="this model has 0 blocks"):
        plm.check(Needs((1,)))
    with pytest.raises(UserError, match="words has 0 blocks and 0 heads"):
        plm.check(LinearPooling(AttentionDiagonal(0, 0), [-1]).needs)
    with pytest.raises(UserError, match="has no pooler"):
        plm.check(ModelPooler().needs)


def test_faults(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UserError, match="float32"):
        FrozenPLM.from_pretrained(path=file, dtype="bfloat16")
    with pytest.raises(UserError, match=r"does not exist: check model\.path"):
        FrozenPLM.from_pretrained(path=tmp_path / "none.txt")


def test_a_run_and_its_recipe(file: Path, tmp_path: Path) -> None:
    chosen = ["model=words", f"model.path={file}", "pooling=avg", "cache=off"]
    score = evaluate(tiny_suite.composed(file, tmp_path / "run", *chosen))
    assert np.isfinite(score)
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    model = results["recipe"]["model"]
    assert (model["name"], model["format"], model["revision"]) == ("words", "words", None)
    assert len(model["sha256"]) == 64
    # All means lie between the vectors of 16 words.
    assert results["fit"]["sets"]["mine"]["rank"] == 15
