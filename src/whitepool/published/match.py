"""Which published values a run may be compared with: equal recipe, equal data, nothing less.

Model, head, layers, post-processing, k, fit set, length of texts, the tasks' pairs and the form of
their texts must be those of the published row; the aggregate is that of each single score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from whitepool.aggregates import AVERAGE
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.maps.names import POST_PROCESSES
from whitepool.pooling import Pooling
from whitepool.pooling.spec import (
    Even,
    First,
    Linear,
    Max,
    Pooler,
    PoolingSpec,
    TokensSpec,
    describe,
)
from whitepool.protocol import AGGREGATES, EvalProtocol
from whitepool.published.rows import System, Value, systems, tables, values
from whitepool.states import resolve_layer
from whitepool.whitening import PostProcess

TOKENS: dict[str, TokensSpec] = {"first": First(), "uniform": Even()}


@dataclass(frozen=True)
class TaskData:
    """What a run scored of a task.

    Attributes:
        split: of the scored pairs, ``all`` where they are of several.
        pairs: how many were scored.
        fit_pairs: how many lent their sentences to the fit set.
        max_length: tokens that texts were cut to; None for the model's own limit.
        form: form of the texts, empty where there are several.
        whole: whether it is one set, so that all aggregates are one.
        complete: whether no sub-task was missing.
    """

    split: str
    pairs: int
    fit_pairs: int
    max_length: int | None
    form: str
    whole: bool
    complete: bool


@dataclass(frozen=True)
class Ran:
    """What a run did, as far as a published row tells.

    Attributes:
        model: name of the model.
        depth: its number of blocks.
        head: the head, layers counted from the embedding output; None where it has no name.
        post: name of the post-processing; empty for none, and ``?`` for one without a name.
        k: directions kept; None for all.
        fit: ``task``, name of a whole corpus, or ``?``.
        tasks: by name.
    """

    model: str
    depth: int
    head: PoolingSpec | None
    post: str
    k: int | None
    fit: str
    tasks: Mapping[str, TaskData]


@dataclass(frozen=True)
class Match:
    """A published value of a score of a run.

    Attributes:
        task: of the score, as for ``aggregate``, ``stage`` and ``metric``.
        published: x100.
        table: name of the table.
        row: what the table calls the system.
        source: where it was published.
        note: what to know of it.
    """

    task: str
    aggregate: str
    stage: str
    metric: str
    published: float
    table: str
    row: str
    source: str
    note: str


def ran(
    model: str,
    depth: int,
    pooling: Pooling,
    post: PostProcess | None,
    protocol: EvalProtocol,
    table: SentenceTable,
    *,
    lengths: Mapping[str, int | None],
    corpus: str = "",
) -> Ran:
    """What a run did.

    Args:
        model: name of the model.
        depth: its number of blocks.
        pooling: the head.
        post: what was fitted.
        protocol: says what on.
        table: what was scored.
        lengths: by task, where texts were cut; None for the model's own limit.
        corpus: name of the corpus that was fitted on, if it was one and read whole.
    """
    kind = next((n for n, made in POST_PROCESSES.items() if type(post) is made), "?")
    try:
        head: PoolingSpec | None = resolved(describe(pooling)[0], depth)
    except UserError:
        head = None
    return Ran(
        model=model,
        depth=depth,
        head=head,
        post="" if post is None else kind,
        k=getattr(post, "k", None),
        fit=corpus or ("task" if protocol.fit_on == "task" else "?"),
        tasks={
            task.name: _data(table, task.name, lengths[task.name])
            for task in table.tasks
            if task.scored
        },
    )


def _data(table: SentenceTable, name: str, max_length: int | None) -> TaskData:
    (task,) = (task for task in table.tasks if task.name == name)
    pairs = sum(map(len, task.scored))
    splits, forms = ({getattr(s, key) for s in task.scored} for key in ("split", "form"))
    return TaskData(
        split=splits.pop() if len(splits) == 1 else "all",
        pairs=pairs,
        fit_pairs=pairs + sum(map(len, table.other.get(name, ()))),
        max_length=max_length,
        form=forms.pop() if len(forms) == 1 else "",
        whole=len(task.scored) == 1 and not task.scored[0].flattened,
        complete=not task.missing,
    )


def resolved(spec: PoolingSpec, depth: int) -> PoolingSpec:
    """The head with its layers counted from the embedding output, in order."""
    if not isinstance(spec, Linear | Max):
        return spec
    layers = sorted((resolve_layer(layer, depth) for layer in spec.layers), key=str)
    return replace(spec, layers=tuple(layers))


def head_of(system: System, depth: int) -> PoolingSpec | None:
    """The head of a published system on a model of ``depth`` blocks; None for Ditto's."""
    if system.head.startswith("pooler"):
        return Pooler(activation="none" if system.head == "pooler_none" else "tanh")
    if system.head not in TOKENS:
        return None
    layers = [depth if x == "last" else int(x) for x in system.layers.split("+")]
    return resolved(Linear(tokens=TOKENS[system.head], layers=tuple(layers)), depth)


def same_recipe(run: Ran, system: System) -> bool:
    """Whether a system's recipe is that of a run, or its raw stage."""
    if not system.model or system.model != run.model or run.head is None:
        return False
    post = (run.post, run.k, run.fit) if system.post else ("", None, "")
    wanted = (system.post, system.k, system.fit)
    return post == wanted and run.head == head_of(system, run.depth)


def same_data(data: TaskData | None, value: Value, system: System) -> bool:
    """Whether a value is over the pairs that a run scored, with the fit set that it had."""
    return (
        data is not None
        and data.complete
        and (data.split, data.pairs, data.form) == (value.split, value.pairs, system.form)
        and data.max_length == value.max_length
        and value.fit_pairs in (None, data.fit_pairs)
    )


def find(run: Ran, only: Sequence[str] | None = None) -> list[Match]:
    """All published values of a run's scores, in the order of the tables.

    Args:
        run: what was done.
        only: keys of tables, for these alone.

    A task of one file has one score for all aggregates. The mean over tasks needs all tasks of the
    published row and no other.
    """
    matches = []
    for system in systems().values():
        if (only is not None and system.table not in only) or not same_recipe(run, system):
            continue
        own = [value for value in values() if value.system == system.system]
        fits = [v for v in own if same_data(run.tasks.get(v.task), v, system)]
        tasks = {value.task for value in own} - {AVERAGE}
        if {value.task for value in fits} == tasks == set(run.tasks):
            fits += [value for value in own if value.task == AVERAGE]
        for value in fits:
            table = tables()[system.table]
            whole = value.task != AVERAGE and run.tasks[value.task].whole
            for aggregate in AGGREGATES if whole else (value.aggregate,):
                matches.append(
                    Match(
                        value.task, aggregate, "post" if system.post else "raw", value.metric,
                        value.value, table.name, system.row, table.source, system.note,
                    )
                )  # fmt: skip
    return matches
