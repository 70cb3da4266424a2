"""The interface of an analysis: a whole grid of recipes from one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.plm import FrozenPLM
from whitepool.protocol import EvalProtocol
from whitepool.states import Needs, States

Rows = list[dict[str, Any]]


class Analysis(Protocol):
    """What one pass over the sentences of a table must give, and what is made of it.

    The life of an analysis: `plan` once; then for each chunk of pairs (one chunk, unless memory
    forbids) `start`, `update` for every group of sentences, `finish`; at the end `tables` once.

    A chunk has whole fit sets unless one alone is too much: then its scored sets may be parts of
    sets, in order, and an analysis that fits on them must wait for the rest
    (`whitepool.analysis.mixes` does). `finish` and `tables` are called outside of the pass.
    """

    @property
    def needs(self) -> Needs:
        """What the pass must keep of the model; read after `plan`."""
        ...

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """See that the grid can be computed, and say how long what follows the pass will take.

        Raises:
            UserError: the model has not what the grid needs.
        """
        ...

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes kept until `finish` for sentences of these lengths in tokens."""
        ...

    def start(self, table: SentenceTable) -> None:
        """Begin a chunk: a table of the sentences of some of the pairs."""
        ...

    def update(self, rows: Tensor, states: States) -> None:
        """Take in the states of some rows, (sentence,), of the chunk's table."""
        ...

    def finish(self) -> None:
        """Turn what was kept into values per pair, and let it go."""
        ...

    def tables(self) -> dict[str, Rows]:
        """Tidy rows by the name of their file, `layers` for `layers.csv`.

        Every row has the columns of scores.csv but for the intervals. The best row of the first
        table is what the analysis is judged by.
        """
        ...


@runtime_checkable
class Selects(Protocol):
    """An analysis that chooses between recipes on pairs it does not report on."""

    def select(self, tasks: Sequence[Task]) -> Sequence[PairSet]:
        """The sets that the table must have in `SentenceTable.select`."""
        ...


@runtime_checkable
class Confirms(Protocol):
    """An analysis whose winners are taken again in float32 where it ran in a shorter type."""

    def confirmation(self) -> Analysis:
        """The few recipes worth another pass, as an analysis of its own."""
        ...

    def confirm(self, exact: Any) -> None:
        """Let the choice follow ``exact``, the finished `confirmation`."""
        ...
