"""The published tables: tables.csv, systems.csv and values.csv of this folder.

A *system* is a row of a published table. One whose recipe runs here says all of it: model (by the
names of `conf/model`), head, layers counted from the embedding output, post-processing, k, what it
was fitted on, the form of the texts, and the experiment that runs it. One that does not says why,
in `note`, and is only quoted. Each *value* of a system names its task, the pairs it is over, those
that whitening was fitted on, the length that texts were cut at, and the aggregate.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
        table: its key here.
        name: as results call it.
        source: where it was published.
        read_in: ``primary``, or ``secondary copy`` where it was read in a paper that quotes it.
    """

    table: str
    name: str
    source: str
    read_in: str


@dataclass(frozen=True)
class System:
    """A row of a published table.

    Attributes:
        system: its key here.
        table: key of its table.
        row: what the table calls it.
        model: name in `conf/model`; empty where the system is only quoted.
        head: ``first``, ``uniform``, ``pooler_tanh``, ``pooler_none`` or ``diagonal``.
        layers: layers of the head joined by ``+``, ``last`` for the last.
        post: ``pca``, or empty for raw vectors.
        k: directions kept; None for all.
        fit: ``task`` (all pairs that `Value.fit_pairs` counts) or ``nli``; empty for raw vectors.
        form: form of the texts, see `PairSet.form`.
        protocol: name in `conf/protocol` under which the experiment runs.
        data: name in `conf/data`.
        experiment: its name; one experiment may serve several systems.
        note: why it is only quoted, or what to know of the values.
    """

    system: str
    table: str
    row: str
    model: str
    head: str
    layers: str
    post: str
    k: int | None
    fit: str
    form: str
    protocol: str
    data: str
    experiment: str
    note: str


@dataclass(frozen=True)
class Value:
    """A number of a published table.

    Attributes:
        system: key of its system.
        task: ``stsb`` …, ``avg`` for the mean over the system's tasks.
        split: the split that is scored, ``all`` for every split as a sub-task.
        pairs: number of pairs.
        fit_pairs: pairs whose sentences whitening was fitted on; None for raw vectors, for a
            corpus, and for ``avg``.
        max_length: tokens that texts were cut to; None for the model's own limit.
        aggregate: ``all``, ``mean`` or ``wmean``.
        metric: ``spearman`` or ``accuracy_0.5``.
        value: x100.
    """

    system: str
    task: str
    split: str
    pairs: int
    fit_pairs: int | None
    max_length: int | None
    aggregate: str
    metric: str
    value: float


@cache
def tables() -> dict[str, Table]:
    """The tables by key."""
    return {row["table"]: Table(**row) for row in _read("tables.csv")}


@cache
def systems() -> dict[str, System]:
    """The systems by key, in the order of their tables."""
    return {
        row["system"]: System(**{**row, "k": _whole(row["k"])})  # type: ignore[arg-type]
        for row in _read("systems.csv")
    }


@cache
def values() -> tuple[Value, ...]:
    """All values, by system."""
    whole = ("pairs", "fit_pairs", "max_length")
    return tuple(
        Value(**{**row, **{n: _whole(row[n]) for n in whole}, "value": float(row["value"])})  # type: ignore[arg-type]
        for row in _read("values.csv")
    )


def _whole(cell: str) -> int | None:
    return int(cell) if cell else None


def _read(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
