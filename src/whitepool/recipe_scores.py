"""What a recipe keeps, in its provenance, of how it was made and of what it scored.

Plain values that change no vector; a model card shows them.
"""

from __future__ import annotations

from dataclasses import replace

from whitepool.protocol import EvalProtocol
from whitepool.recipe import Recipe, Scalar
from whitepool.scores import Scores, is_defined

MADE = "command"  # that made the recipe
SCORED = "scored_with"  # the command that scored it, where that is another
PROTOCOL = "protocol"
SCORE = "spearman_"  # followed by a task: x100, under the protocol's aggregate


def score_values(scores: Scores, protocol: EvalProtocol, stage: str) -> dict[str, Scalar]:
    """Protocol and scores as values to keep.

    Args:
        scores: of a run.
        protocol: its protocol.
        stage: ``raw`` or ``post``, whichever the recipe's vectors are.
    """
    aggregate = protocol.aggregate
    found = {
        f"{SCORE}{row.task}": round(row.value, 4)
        for row in scores.rows
        if (row.aggregate, row.stage, row.metric) == (aggregate, stage, "spearman")
        and is_defined(row)
    }
    return {PROTOCOL: f"{protocol.name} ({aggregate})", **found}


def with_scores(recipe: Recipe, values: dict[str, Scalar], command: str | None) -> Recipe:
    """The recipe with these scores in place of those it had.

    Args:
        recipe: that was scored.
        values: see `score_values`.
        command: what scored it, if that is known.
    """
    kept = {
        key: value
        for key, value in recipe.provenance.items()
        if key not in (PROTOCOL, SCORED) and not key.startswith(SCORE)
    }
    scored: dict[str, Scalar] = {SCORED: command} if command else {}
    return replace(recipe, provenance={**kept, **scored, **values})
