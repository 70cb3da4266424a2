"""The rows of WhiteningBERT's Table 1 (Huang et al. 2021) for any model, from one pass.

[CLS] of the last layer; the mean over tokens of layer 1, of the last, and of both together; the
last of these whitened. Where the paper has the model, its values stand beside the measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from whitepool.aggregates import Cell
from whitepool.analysis.base import Rows
from whitepool.analysis.grams import Mix
from whitepool.analysis.layers import width
from whitepool.analysis.mixes import Mixes
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import FirstToken, LinearPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.states import Needs, States
from whitepool.whitening import PostProcess, Whitening

ROWS: dict[Mix, str] = {(0,): "cls_last", (1,): "avg_last", (2,): "avg_1", (1, 2): "avg_1_last"}
WHITENED = "avg_1_last_whitened"
TASKS = {"stsb", "sickr", "sts12", "sts13", "sts14", "sts15", "sts16"}
Published = Mapping[str, Mapping[str, Mapping[str, float]]]


class Table1:
    """The five rows, with the table's own heads.

    Args:
        post: PCA whitening, for the last row; None leaves that row out.
        published: name of model -> row -> task (or ``avg``) -> Spearman x100 in the paper.

    Raises:
        UserError: the step is another than PCA whitening.
    """

    def __init__(self, post: PostProcess | None, published: Published) -> None:
        if post is not None and not isinstance(post, Whitening):
            raise UserError(
                f"analysis=table1 takes whitening=pca or whitening=off, not {type(post).__name__}: "
                "its last row is whitened."
            )
        self.post, self.all_published = post, published
        self.cls = LinearPooling(FirstToken(), [-1])
        self.avg = LinearPooling(Uniform(), [-1, 1])
        self.needs: Needs = self.cls.needs | self.avg.needs

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """Set up the five mixes, which take no time worth a word."""
        self.depth = plm.depth
        self.published = self.all_published.get(plm.name, {})
        self.mixes = Mixes(
            list(ROWS.values())[:3],
            width(plm),
            raw=list(ROWS),
            whitened=[(1, 2)],
            post=self.post,
            protocol=protocol,
            table=table,
        )

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes kept until `finish` for sentences of these lengths in tokens."""
        return self.mixes.memory(len(lengths))

    def start(self, table: SentenceTable) -> None:
        """Begin a chunk."""
        self.mixes.start(table)

    def update(self, rows: Tensor, states: States) -> None:
        """Keep the three vectors of some rows."""
        vectors = torch.cat([self.cls.by_layer(states), self.avg.by_layer(states)], dim=1)
        self.mixes.update(rows, vectors)

    def finish(self) -> None:
        """Turn the chunk's vectors into values per pair."""
        self.mixes.finish()

    def tables(self) -> dict[str, Rows]:
        """`table1`: the five rows, each with all tasks and aggregates."""
        result: Rows = []
        for stage, mixes, scores in self.mixes.scores():
            for i, mix in enumerate(mixes):
                recipe = {
                    "row": ROWS[mix] if stage == "raw" else WHITENED,
                    "pooling": "cls" if mix == (0,) else "avg",
                    "layers": "+".join(str(1 if slot == 2 else self.depth) for slot in mix[::-1]),
                }
                complete = {s.task for s in scores} >= TASKS
                for score in scores:
                    value = self._published(recipe["row"], score, complete=complete)
                    result.append({**recipe, **score.row(i, stage), "published": value})
        return {"table1": result}

    def _published(self, row: str, score: Cell, *, complete: bool) -> float | None:
        """The paper's value, which is the mean over sub-tasks; None beside any other number.

        Tasks without sub-tasks have one value for all aggregates, and the paper's mean over tasks
        is over all seven.
        """
        full = self.post is not None and self.post.k is None
        divided = any(
            s.scored.subset for s in self.mixes.sets.values() if s.scored.task == score.task
        )
        if (
            score.subset
            or (row == WHITENED and not full)
            or (score.task == "avg" and (not complete or score.aggregate != "mean"))
            or (divided and score.aggregate != "mean")
        ):
            return None
        return self.published.get(row, {}).get(score.task)
