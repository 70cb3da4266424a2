"""The model card of an export: front matter, how to load it, what it does, scores, command."""

from __future__ import annotations

from typing import Any

import yaml

from whitepool.assets import HUB_IDS
from whitepool.maps.names import called
from whitepool.pooling.spec import (
    ByTokenId,
    Debiased,
    Diagonal,
    Even,
    First,
    Fused,
    Last,
    Linear,
    Max,
    PoolingSpec,
    Position,
)
from whitepool.recipe import SLOT, ModelSpec, Recipe
from whitepool.recipe_scores import MADE, PROTOCOL, SCORE, SCORED

TAGS = ["sentence-transformers", "sentence-similarity", "feature-extraction", "whitepool"]

PLAIN = """    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("{name}")
    vectors = model.encode(["a dog runs", "a cat eats"])  # (2, {dim})

All modules are sentence-transformers' own (version 6 or later)."""

OWN = """    import whitepool  # pip install "whitepool[sentence-transformers]"

    model = whitepool.sentence_transformer("{name}")
    vectors = model.encode(["a dog runs", "a cat eats"])  # (2, {dim})

The result is a SentenceTransformer with a module of whitepool, since sentence-transformers' own
modules cannot express this recipe: {reason}. Where whitepool is installed,
`SentenceTransformer("{name}", trust_remote_code=True)` gives the same."""


def card(recipe: Recipe, dim: int, reason: str | None, name: str) -> str:
    """The text of README.md.

    Args:
        recipe: what is exported.
        dim: dimensions of its vectors.
        reason: why it needs whitepool's module; None if it does not.
        name: of the folder.
    """
    form = PLAIN if reason is None else OWN
    parts = [
        f"# {name}",
        f"Sentence embeddings of {dim} dimensions from the frozen model {_base(recipe.model)}, "
        "made with whitepool: no labels, no fine-tuning. The weights are those of that model, "
        "whose licence applies.",
        "## Use",
        form.format(name=name, dim=dim, reason=reason),
        "## What it does",
        "\n".join(f"- {line}" for line in _lines(recipe, reason)),
        *_scores(recipe),
        *_command(recipe),
    ]
    return "\n\n".join([_front_matter(recipe), *parts]) + "\n"


def _front_matter(recipe: Recipe) -> str:
    content: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": TAGS,
    }
    if hub_id := _hub_id(recipe.model):
        content["base_model"] = hub_id
    return f"---\n{yaml.safe_dump(content, sort_keys=False, allow_unicode=True)}---"


def _hub_id(model: ModelSpec) -> str | None:
    return model.id or HUB_IDS.get(model.asset or "")


def _base(model: ModelSpec) -> str:
    text = _hub_id(model) or model.name
    return f"{text} at revision {model.revision}" if model.revision else text


def _lines(recipe: Recipe, reason: str | None) -> list[str]:
    lines = [f"Pooling: {_head(recipe.pooling)}."]
    if recipe.post is not None:
        post = recipe.post
        lines.append(
            f"Step after pooling: {called(post.kind, 'whitening')}, {post.directions} directions, "
            f"fitted on {post.fit} ({post.count:,.0f} vectors of effective rank {post.rank})."
        )
    lines.append(
        f"A text has at most {recipe.max_length} tokens, special ones included; long_text="
        f"{recipe.long_text}."
    )
    if recipe.template != SLOT:
        lines.append(f"Template around every prompt and text: `{recipe.template}`.")
    if recipe.full_stop:
        lines.append("A text without a full stop at its end gets one.")
    for kind in ("query", "document"):
        if prompt := getattr(recipe.prompts, kind):
            lines.append(f"`encode_{kind}` puts `{prompt}` before a text.")
    lines.append(f"Vectors are not of length 1; they are compared by {recipe.similarity}.")
    if reason is None:
        lines.append(
            "A blank text gets the vector of the special tokens (and the prompt) alone, as "
            "sentence-transformers does; with whitepool itself its vector is zero."
        )
    else:
        lines.append("A blank text has the vector zero, and cosine 0 with any other.")
    lines.append(f"Weights are {recipe.model.dtype}; first dimensions can be kept (truncate_dim).")
    return lines


def _head(head: PoolingSpec) -> str:
    if isinstance(head, Linear):
        tokens = head.tokens
        words = {
            First: "the first token",
            Last: "the last token",
            Even: "the mean over tokens, special ones included",
            ByTokenId: "the mean over tokens, weighted by their id",
            Position: "the mean over tokens, weighted by their position",
        }.get(type(tokens), tokens.kind)
        if isinstance(tokens, Diagonal):
            words = (
                f"the sum over tokens, weighted by the attention each pays itself in block "
                f"{tokens.block}, head {tokens.head} (Ditto)"
            )
        return f"{words}, of layers {list(head.layers)}"
    if isinstance(head, Max):
        return f"the maximum over tokens, of layers {list(head.layers)}"
    if isinstance(head, Debiased):
        layers = list(head.layers)
        return f"the mask token's vector less that of the template alone, of layers {layers}"
    if isinstance(head, Fused):
        return f"SBERT-WK, layers from {head.start} on, window {head.window}"
    return f"the model's own pooler, activation {head.activation}"


def _scores(recipe: Recipe) -> list[str]:
    found = {
        key.removeprefix(SCORE): value
        for key, value in recipe.provenance.items()
        if key.startswith(SCORE)
    }
    if not found:
        return []
    rows = [f"| {task} | {float(value):.2f} |" for task, value in found.items()]
    return [
        "## Scores",
        f"Under the protocol {recipe.provenance[PROTOCOL]}.",
        "\n".join(["| task | Spearman x100 |", "|---|---|", *rows]),
    ]


def _command(recipe: Recipe) -> list[str]:
    commands = [str(recipe.provenance[key]) for key in (MADE, SCORED) if key in recipe.provenance]
    made = ["\n".join(f"    {command}" for command in commands)] if commands else []
    versions = ", ".join(f"{name} {version}" for name, version in recipe.versions.items())
    return ["## Made with", *made, f"{versions}."]
