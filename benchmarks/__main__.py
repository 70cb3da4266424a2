"""The command line: python -m benchmarks COMMAND, see --help."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace as Arguments
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import (
    analyses,
    encode,
    exports,
    finding_tables,
    grids,
    growth,
    machine,
    memory,
    method_tables,
    models,
    peers,
    profile,
    scale,
    search,
    sentences,
    show,
    suite,
)
from benchmarks.arguments import parser
from whitepool.data.pairs import Task
from whitepool.errors import UserError
from whitepool.precision import DTYPES, fast_bfloat16_cpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0, or 1 after a mistake of the user's."""
    args = parser().parse_args(arguments)
    show.quiet()
    if args.threads:
        torch.set_num_threads(args.threads)
    try:
        with tempfile.TemporaryDirectory() as work:
            results = COMMANDS[args.command](args, Path(work))
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if args.json:
        show.save(args.json, {"machine": machine.describe(), "command": _typed(args), **results})
    return 0


def run_encode(args: Arguments, work: Path) -> dict[str, Any]:
    """Distinct sentences through whitepool and its peers."""
    tasks, folder, found = _prepare(args, work)
    count = args.sentences or (None if args.quick else 1500)
    texts = sentences.unique(tasks, count)
    precisions = _precisions(args)
    show.say(f"{len(texts):,} distinct sentences, {args.rounds} rounds in turn")
    speeds = encode.compare(
        folder,
        texts,
        found,
        precisions=precisions,
        batch_tokens=args.batch_tokens,
        batch_sizes=_numbers("--batch-sizes", args.batch_sizes, least=1),
        rounds=args.rounds,
        peak_repeats=1 if args.quick else 8,
    )
    show.table(encode.rows(speeds, len(texts)))
    changes = []
    if "bf16-true" in precisions:
        scored = tasks if args.quick else sentences.load(args.root, quick=False, names=["stsb"])
        changes = encode.score_changes(folder, scored, precisions, args.batch_tokens)
        for change in changes:
            show.say(
                f"{change['task']}, {change['precision']}: Spearman {change['spearman']:.3f} "
                f"changes by {change['change']:+.4f}, a cosine by at most "
                f"{change['largest cosine change']:.1e} ({change['pairs']:,} pairs)"
            )
    return {
        "sentences": len(texts),
        "speeds": [asdict(speed) for speed in speeds],
        "score changes": changes,
    }


def run_suite(args: Arguments, work: Path) -> dict[str, Any]:
    """Tasks from texts to scores."""
    tasks, folder, found = _prepare(args, work, args.tasks)
    times, scored = suite.compare(
        folder,
        tasks,
        [(peer, args.batch_size) for peer in found],
        precisions=_precisions(args),
        batch_tokens=args.batch_tokens,
        rounds=args.rounds,
    )
    sets = [s for task in tasks for s in task.scored]
    texts = [text for s in sets for text in s.first + s.second]
    show.say(
        f"{', '.join(task.name for task in tasks)}: {len(texts):,} sentences, "
        f"{len(set(texts)):,} distinct; peers in batches of {args.batch_size}"
    )
    show.table(suite.rows(times, scored))
    return {"sentences": len(texts), "seconds": times, "scores": scored}


def run_analyses(args: Arguments, work: Path) -> dict[str, Any]:
    """Grids beside single recipes."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    parts = args.parts or list(analyses.PARTS)
    if unknown := set(parts) - set(analyses.PARTS):
        choices = ", ".join(analyses.PARTS)
        raise UserError(f"--parts has {', '.join(sorted(unknown))}: choose from {choices}.")
    if args.pairs:
        tasks = (sentences.some_pairs(tasks, args.pairs),)
    subject = grids.Subject.load(folder, tasks, args.batch_tokens)
    pairs = sum(len(s.pairs) for s in subject.table.scored)
    show.say(f"{pairs:,} pairs of {len(subject.table):,} distinct sentences")
    results = analyses.measure(parts, subject, args.rounds)
    show.table(results)
    return {"results": results}


def run_profile(args: Arguments, work: Path) -> dict[str, Any]:
    """Seconds by kind of work."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    texts = sentences.unique(tasks, args.sentences or (None if args.quick else 1500))
    found = profile.measure(folder, texts, args.precision, args.batch_tokens)
    show.say(f"{len(texts):,} distinct sentences, whitepool {args.precision}")
    show.table(profile.rows(found))
    return {"sentences": len(texts), "seconds": found}


def run_scale(args: Arguments, work: Path) -> dict[str, Any]:
    """Seconds and memory by size."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    sizes = _numbers("--sizes", args.sizes, least=4)
    layers = _numbers("--layers", args.layers, least=-1000)
    if args.quick:
        sizes, args.bootstrap = [120], 10
    found: list[scale.Size] = []
    for size in scale.measure(
        folder,
        sentences.unique(tasks, None),
        sizes,
        layers=layers,
        precision=args.precision,
        batch_tokens=args.batch_tokens,
        bootstrap=args.bootstrap,
        threads=torch.get_num_threads(),
    ):
        found.append(size)
        show.say(f"{size.sentences:,} sentences: {size.total:.1f} s, peak {size.peak:,.0f} MB")
    show.table(scale.rows(found))
    return {"sizes": [asdict(size) for size in found]}


def run_growth(args: Arguments, work: Path) -> dict[str, Any]:
    """Seconds of the parts after encoding, by size."""
    counts = [200, 400] if args.quick else _numbers("--counts", args.counts, least=4)
    dims = [8, 16] if args.quick else _numbers("--dims", args.dims, least=2)
    show.machine(machine.describe())
    found = list(growth.measure(counts, dims, args.rounds or 3))
    show.table(growth.rows(found))
    return {"costs": [asdict(cost) for cost in found]}


def run_memory(args: Arguments, work: Path) -> dict[str, Any]:
    """Peak memory by size of the input."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    sizes = _numbers("--sizes", args.sizes, least=1)
    layers = _numbers("--layers", args.layers, least=-1000)
    if args.quick:
        sizes = [120]
    if unknown := set(args.commands) - set(memory.COMMANDS):
        choices = ", ".join(memory.COMMANDS)
        raise UserError(f"--commands has {', '.join(sorted(unknown))}: choose from {choices}.")
    found = []
    for peak in memory.measure(
        folder,
        sentences.unique(tasks, None),
        sizes,
        work,
        commands=args.commands,
        layers=layers,
        threads=args.threads,
    ):
        found.append(peak)
        show.say(f"{peak.command}, {peak.sentences:,} sentences: {peak.peak:,.0f} MB")
    show.table(memory.rows(found))
    return {"peaks": [asdict(peak) for peak in found]}


def run_search(args: Arguments, work: Path) -> dict[str, Any]:
    """A search index by number of dimensions."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    documents, queries = (300, 20) if args.quick else (args.documents, args.queries)
    # Gold scores of made-up pairs are up to 1.
    least = 0 if args.quick else search.SIMILAR
    collection = search.collect(tasks, documents, queries, least)
    show.say(f"{documents:,} documents, {queries:,} queries")
    found = search.measure(
        folder,
        collection,
        [8] if args.quick else _numbers("--k", args.k, least=1),
        (args.keep or work).absolute(),
        layers=_numbers("--layers", args.layers, least=-1000),
        threads=torch.get_num_threads(),
        rounds=args.rounds,
    )
    show.table(search.rows(found))
    return {"documents": documents, "queries": queries, "results": [asdict(r) for r in found]}


def run_exports(args: Arguments, work: Path) -> dict[str, Any]:
    """Exports beside their base."""
    tasks, folder, _ = _prepare(args, work, peers_too=False)
    texts = sentences.unique(tasks, args.sentences or (None if args.quick else 1000))
    times = exports.measure(folder, texts, work, times=args.rounds, batch_size=args.batch_size)
    show.say(f"{len(texts):,} distinct sentences, batches of {args.batch_size}")
    show.table(exports.rows(times))
    return {"sentences": len(texts), "seconds": times}


def _prepare(
    args: Arguments, work: Path, names: Sequence[str] | None = None, *, peers_too: bool = True
) -> tuple[tuple[Task, ...], Path, list[peers.Peer]]:
    """Tasks, the model's folder and the peers; says what the machine is and what is missing."""
    args.model = args.model or ("tiny" if args.quick else "all_minilm")
    args.rounds = args.rounds or (1 if args.quick else 3)
    tasks = sentences.load(args.root, quick=args.quick, names=names or sentences.SEVEN)
    folder = models.folder(args.model, work, sentences.unique(tasks, None))
    show.machine(machine.describe())
    show.say(f"model {args.model}")
    if not peers_too:
        return tasks, folder, []
    chosen = [] if args.peers == ["none"] else args.peers
    found, left_out = peers.load(chosen, folder, work)
    for line in left_out:
        show.say(line)
    return tasks, folder, found


def _precisions(args: Arguments) -> list[str]:
    fast = fast_bfloat16_cpu()
    chosen = args.precision or ["32-true", *(["bf16-true"] if fast else [])]
    for precision in chosen:
        if precision not in DTYPES:
            raise UserError(f"--precision has {precision!r}: choose from {', '.join(DTYPES)}.")
    if "bf16-true" in chosen and not fast:
        show.say(
            "no amx_bf16 on this machine: bfloat16 is emulated, and its times say nothing of a "
            "machine that has it"
        )
    return list(chosen)


def _numbers(option: str, values: Sequence[str], *, least: int) -> list[int]:
    for value in values:
        if not value.lstrip("-").isdigit() or int(value) < least:
            raise UserError(f"{option} has {value!r}: give whole numbers from {least}.")
    return [int(value) for value in values]


def _typed(args: Arguments) -> dict[str, Any]:
    return {key: str(value) for key, value in vars(args).items() if value is not None}


COMMANDS = {
    "encode": run_encode,
    "suite": run_suite,
    "analyses": run_analyses,
    "scale": run_scale,
    "growth": run_growth,
    "profile": run_profile,
    "memory": run_memory,
    "search": run_search,
    "methods": method_tables.run,
    "findings": finding_tables.run,
    "exports": run_exports,
}


if __name__ == "__main__":
    sys.exit(main())
