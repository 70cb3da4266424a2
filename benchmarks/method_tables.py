"""`python -m benchmarks methods`: its tables, on the terminal and as a file in Markdown."""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import kept_cosines, machine, models, sentences, show
from benchmarks.claims import shown, verdicts
from benchmarks.methods import (
    MAPS,
    RAW,
    Head,
    Predictions,
    groups_of,
    heads_of,
    names_of,
    predictions,
    scorer,
)
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.plm import FrozenPLM
from whitepool.pooling.binding import bind
from whitepool.pooling.named import named

IMPACT = ("impact", "first_last_0", "avg")
HEAD = """# Every head by every map

Made by `{command}`. Spearman x100 on the test split of the STS
benchmark ({pairs:,} pairs), with the 95 % interval of {samples:,} bootstrap resamples of the pairs.
{facts}

Maps are fitted on the very sentences that are scored, without labels. idf, sif, usif and
static_remove_biases count tokens on the train split's sentences, Ditto's head is chosen on the dev
split's labels. The last layer is behind the model's final norm. `raw` is no map; `zca` has `pca`'s
cosines; `remove_common` is SIF's second step and with 5 components uSIF's; `zipfian` is for word
vectors alone. Templates are those of `conf/pooling`.

"Holds" compares two recipes on the same resampled pairs: **no** where the interval of the
difference lies below 0, undecided where it holds 0. The papers measured other models and more
tasks: a "no" says that the method does not do this on this model and task, and no more.
"""


def run(args: Arguments, work: Path) -> dict[str, Any]:
    """Measure the models one after the other."""
    task = sentences.load(None, quick=args.quick, names=["stsb"])[0]
    task = Task(task.name, task.scored, task.other_splits or _train(quick=args.quick))
    names = args.models or (["tiny"] if args.quick else ["all_minilm", "all_mpnet", "gemma"])
    samples = 50 if args.quick else args.bootstrap
    facts = machine.describe()
    show.machine(facts)
    found: dict[str, Any] = {}
    pairs = sum(map(len, task.scored))
    page = [
        HEAD.format(
            command="python -m benchmarks methods" + (" --quick" if args.quick else ""),
            pairs=pairs,
            samples=samples,
            facts=f"{facts['date']}, float32 on {facts['processor']}.",
        )
    ]
    for name in names:
        folder = models.folder(name, work, sentences.unique([task], None))
        plm = FrozenPLM.from_pretrained(path=folder, name=name)
        tables = of_model(plm, task, args, samples)
        found[name] = tables
        shown_tables = [f"{_markdown(rows)}\n" for rows in tables.values() if rows]
        page += [f"## {name}\n", *shown_tables]
        for text in shown_tables:
            show.say(text)
        if args.output:  # also after each model, since the next may take long
            args.output.write_text("\n".join(page), encoding="utf-8")
    return found


def of_model(plm: FrozenPLM, task: Task, args: Arguments, samples: int) -> dict[str, Any]:
    """Scores of all heads and maps, the claims, and impact on a few pairs.

    Raises:
        UserError: ``--heads`` names one that does not suit the model.
    """
    table = SentenceTable.build([task], plm.tokenize)
    names = names_of(plm)
    if args.quick:
        names.remove("ditto")
    if unknown := set(args.heads or ()) - set(names):
        raise UserError(
            f"--heads has {', '.join(sorted(unknown))}, which {plm.name} has not: choose of "
            f"{', '.join(names)}."
        )
    folder = args.keep / Path(plm.name).name if args.keep else None
    pairs = [len(s.gold) for s in table.scored]
    cosines: Predictions = kept_cosines.load(folder, names, pairs) if folder else {}
    wanted = [n for n in names if (n, RAW) not in cosines and n in (args.heads or names)]
    cosines |= _measure(plm, heads_of(plm, task, wanted), task, args, folder)
    score = scorer(task, table, samples)
    rows = []
    for head in names:
        if (head, RAW) in cosines:
            values = {step: cosines.get((head, step)) for step in (RAW, *MAPS)}
            cells = {step: shown(score(x)) if x else "" for step, x in values.items()}
            rows.append({"head": head, **cells})
    result = {"scores": rows, "claims": verdicts(cosines, score), "impact": []}
    if args.impact_pairs and models.reads_masks(plm):
        result["impact"] = _impact(plm, task, args, folder)
    return result


def _measure(
    plm: FrozenPLM, heads: Mapping[str, Head], task: Task, args: Arguments, folder: Path | None
) -> Predictions:
    """Cosines of heads, kept in ``folder`` after each pass."""
    result: Predictions = {}
    for group in groups_of(heads):
        found = predictions(plm, group, [task], args.batch_tokens)
        if folder:
            for head in group:
                kept_cosines.save(folder, head, found)
        result |= found
    return result


def _impact(
    plm: FrozenPLM, task: Task, args: Arguments, folder: Path | None
) -> list[dict[str, str]]:
    """Raw scores of `pooling=impact` on some pairs, beside means on the same."""
    some = sentences.some_pairs([task], args.impact_pairs)
    table = SentenceTable.build([some], plm.tokenize)
    folder = folder / f"impact-{args.impact_pairs}" if folder else None
    pairs = [len(s.gold) for s in table.scored]
    cosines: Predictions = kept_cosines.load(folder, IMPACT, pairs) if folder else {}
    wanted = [name for name in IMPACT if (name, RAW) not in cosines]
    heads = {name: Head(bind(named(name), plm, Frame()), Frame()) for name in wanted}
    cosines |= _measure(plm, heads, some, args, folder)
    score = scorer(some, table, 1000)
    return [
        {"head": f"{name}, {args.impact_pairs} pairs", RAW: shown(score(cosines[name, RAW]))}
        for name in IMPACT
    ]


def _train(*, quick: bool) -> tuple[Any, ...]:
    """The train split, which a task read for its test split alone has not."""
    if quick:
        return ()
    from whitepool.data.stsb import read_embedded

    return (read_embedded("stsb", "", "train"),)


def _markdown(rows: Sequence[Mapping[str, str]]) -> str:
    columns = list(rows[0])
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row.values())} |" for row in rows)])
