"""The rows of WhiteningBERT's Table 1 (Huang et al. 2021) for any model, from one pass.

[CLS] of the last layer; the mean over tokens of layer 1, of the last, and of both together; the
last of these whitened. Where the paper has the model, its values stand beside the measured ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whitepool.analysis.base import Rows
from whitepool.analysis.grams import Mix
from whitepool.analysis.layers import width
from whitepool.analysis.mixes import Mixes
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import FirstToken, LinearPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.published.match import find, ran
from whitepool.states import Needs, States
from whitepool.whitening import PostProcess, Whitening

ROWS: dict[Mix, str] = {(0,): "cls_last", (1,): "avg_last", (2,): "avg_1", (1, 2): "avg_1_last"}
WHITENED = "avg_1_last_whitened"


class Table1:
    """The five rows, with the table's own heads.

    Args:
        post: what the last row is whitened with; None leaves that row out.

    Raises:
        UserError: the step is another than PCA whitening.
    """

    def __init__(self, post: PostProcess | None) -> None:
        if post is not None and not isinstance(post, Whitening):
            raise UserError(
                f"analysis=table1 takes whitening=pca or whitening=off, not {type(post).__name__}: "
                "its last row is whitened."
            )
        self.post = post
        self.cls = LinearPooling(FirstToken(), [-1])
        self.avg = LinearPooling(Uniform(), [-1, 1])
        self.needs: Needs = self.cls.needs | self.avg.needs

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """Set up the five mixes, which take no time worth a word."""
        self.depth = plm.depth
        self.published = self._published(plm, protocol, table)
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
                for score in scores:
                    cell = (recipe["row"], score.task, score.aggregate)
                    value = None if score.subset else self.published.get(cell)
                    result.append({**recipe, **score.row(i, stage), "published": value})
        return {"table1": result}

    def _published(
        self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable
    ) -> dict[tuple[str, str, str], float]:
        """The paper's values, by row, task and aggregate."""
        cut = plm.max_length if protocol.max_length is None else protocol.max_length
        lengths = {task.name: None if cut >= plm.limit else cut for task in table.tasks}
        found = {}
        for mix, row in ROWS.items():
            averaged = [self.avg.layers[slot - 1] for slot in mix]
            head = self.cls if mix == (0,) else LinearPooling(Uniform(), averaged)
            run = ran(plm.name, plm.depth, head, self.post, protocol, table, lengths=lengths)
            for match in find(run, only=["whiteningbert_table1"]):
                name = row if match.stage == "raw" else WHITENED
                found[name, match.task, match.aggregate] = match.published
        return found
