"""The model card: front matter that the hub reads, the loading line, scores, commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import yaml

from whitepool.export.card import card
from whitepool.pooling import AttentionDiagonal, LinearPooling, MaxPooling, ModelPooler, Uniform
from whitepool.pooling.spec import describe
from whitepool.recipe import ModelSpec, PostSpec, Prompts, Recipe

ARRAYS = {
    "mean": torch.zeros(4, dtype=torch.float64),
    "basis": torch.eye(4, 2, dtype=torch.float64),
}


def recipe(**changes: Any) -> Recipe:
    parts: dict[str, Any] = {
        "model": ModelSpec("tiny", id="org/tiny", revision="abc"),
        "pooling": describe(LinearPooling(Uniform(), [1, -1]))[0],
        "max_length": 64,
        "post": PostSpec("pca", "30 texts of corpus text", 30.0, 3, 2, k=2),
        "prompts": Prompts("query: "),
        "versions": {"torch": "2.13"},
        "arrays": ARRAYS,
    }
    return Recipe(**(parts | changes))


def front_matter(text: str) -> Any:
    start, content, _ = text.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(content)


def test_front_matter() -> None:
    from huggingface_hub import ModelCard

    text = card(recipe(), 2, None, "mine")
    content = front_matter(text)
    assert content["library_name"] == "sentence-transformers"
    assert content["pipeline_tag"] == "sentence-similarity"
    assert content["base_model"] == "org/tiny"
    assert "license" not in content
    assert ModelCard(text).data.base_model == "org/tiny"
    asset = recipe(model=ModelSpec("all_minilm", asset="all_minilm"))
    found = front_matter(card(asset, 2, None, "mine"))
    assert found["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    local = recipe(model=ModelSpec("mine", path="/models/mine"))
    assert "base_model" not in front_matter(card(local, 2, None, "mine"))
    assert "/models" not in card(local, 2, None, "mine")


def test_the_loading_line() -> None:
    plain = card(recipe(), 2, None, "mine")
    assert 'model = SentenceTransformer("mine")' in plain
    assert "whitepool.sentence_transformer" not in plain
    assert "A blank text gets the vector of the special tokens" in plain
    own = card(recipe(), 2, "they have no templates", "mine")
    assert 'model = whitepool.sentence_transformer("mine")' in own
    assert "cannot express this recipe: they have no templates." in own
    assert "A blank text has the vector zero" in own


def test_what_the_recipe_is() -> None:
    text = card(replace(recipe(), template="not {text} .", long_text="error"), 2, "x", "mine")
    for part in (
        "org/tiny at revision abc",
        "the mean over tokens, special ones included, of layers [1, -1]",
        "Step after pooling: whitening, 2 directions, fitted on 30 texts of corpus text (30",
        "at most 64 tokens, special ones included; long_text=error",
        "`not {text} .`",
        "`encode_query` puts `query: ` before a text",
        "torch 2.13.",
    ):
        assert part in text
    assert "encode_document" not in text
    raw = {"post": None, "arrays": {}}
    for head, words in (
        (LinearPooling(AttentionDiagonal(2, 3), [0, -1]), "in block 2, head 3 (Ditto), of layers"),
        (MaxPooling([-1]), "the maximum over tokens, of layers [-1]"),
        (ModelPooler("none"), "the model's own pooler, activation none"),
    ):
        text = card(recipe(pooling=describe(head)[0], **raw), 4, None, "mine")
        assert words in text
        assert "Whitening onto" not in text


def test_scores_and_commands_where_there_are_some() -> None:
    bare = card(recipe(), 2, None, "mine")
    assert "## Scores" not in bare
    assert "    python" not in bare
    values: dict[str, Any] = {
        "command": "python train.py corpus=text",
        "scored_with": "python evaluate.py recipe=mine",
        "protocol": "simcse (all)",
        "spearman_stsb": 78.0749,
        "spearman_sickr": 61.5,
        "corpus_texts": 30,
    }
    text = card(recipe(provenance=values), 2, None, "mine")
    assert "    python train.py corpus=text\n    python evaluate.py recipe=mine\n" in text
    assert "Under the protocol simcse (all)." in text
    assert "| stsb | 78.07 |\n| sickr | 61.50 |" in text
