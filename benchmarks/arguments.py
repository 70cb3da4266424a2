"""The options of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks import analyses, memory, models, peers
from whitepool.batches import BATCH_TOKENS
from whitepool.precision import DTYPES


def parser() -> argparse.ArgumentParser:
    """All commands and options."""
    whole = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    commands = whole.add_subparsers(required=True, dest="command", metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    names = ", ".join(models.NAMES)
    add("--model", help=f"{names}, or a folder (default all_minilm)")
    add("--root", type=Path, help="folder of the seven STS sets; without it the embedded STS-B")
    add("--rounds", type=_positive, help="how often everything is timed (default 3)")
    add("--batch-tokens", type=_positive, default=BATCH_TOKENS, help="whitepool's batches")
    add("--threads", type=_positive, help="of the processor; torch's own choice by default")
    add("--json", type=Path, metavar="FILE", help="write everything that was measured")
    add("--quick", action="store_true", help="a tiny model on made-up sentences, in seconds")

    timing = argparse.ArgumentParser(add_help=False)
    add = timing.add_argument
    add("--precision", type=_list, help="32-true,bf16-true; by default bf16 where it is fast")
    add("--peers", type=_list, help=f"of {', '.join(peers.PEERS)}, or none")

    command = commands.add_parser(
        "encode", parents=[common, timing], help="distinct sentences, whitepool and its peers"
    )
    command.add_argument("--sentences", type=_positive, help="how many (default 1500)")
    sizes = ",".join(map(str, peers.BATCH_SIZES))
    command.add_argument(
        "--batch-sizes", type=_list, default=_list(sizes), help=f"tried for peers (default {sizes})"
    )

    command = commands.add_parser(
        "suite", parents=[common, timing], help="STS tasks with all their repeated sentences"
    )
    command.add_argument("--tasks", type=_list, help="of the seven; all by default")
    command.add_argument("--batch-size", type=_positive, default=32, help="of the peers")

    command = commands.add_parser(
        "analyses", parents=[common], help="one-pass grids beside recipes run one by one"
    )
    command.add_argument("--parts", type=_list, help=f"of {', '.join(analyses.PARTS)}")
    command.add_argument("--pairs", type=_positive, help="only so many pairs, drawn at random")

    command = commands.add_parser(
        "scale", parents=[common], help="seconds and memory as sentences grow"
    )
    sizes = "1000,3000,10000,30000,100000,300000"
    command.add_argument("--sizes", type=_list, default=_list(sizes), help=f"default {sizes}")
    command.add_argument("--layers", type=_list, default=["-1"], help="of the mean (default -1)")
    command.add_argument("--bootstrap", type=int, default=1000, help="resamples (default 1000)")
    command.add_argument("--precision", default="32-true", choices=list(DTYPES))

    _add_growth(commands, common)

    command = commands.add_parser(
        "memory", parents=[common], help="peak memory of encode and train as their input grows"
    )
    sizes = "20000,200000"
    command.add_argument("--sizes", type=_list, default=_list(sizes), help=f"default {sizes}")
    command.add_argument("--layers", type=_list, default=["1"], help="of the mean (default 1)")
    names = ",".join(memory.COMMANDS)
    command.add_argument("--commands", type=_list, default=_list(names), help=f"default {names}")

    command = commands.add_parser(
        "search", parents=[common], help="a search index over whitened vectors, by dimensions"
    )
    command.add_argument("--documents", type=_positive, default=100_000, help="default 100,000")
    command.add_argument("--queries", type=_positive, default=1000, help="default 1,000")
    command.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep vectors there, and go on with them"
    )
    command.add_argument("--k", type=_list, default=["64"], help="beside all (default 64)")
    command.add_argument("--layers", type=_list, default=["-1"], help="of the mean (default -1)")

    command = commands.add_parser("profile", parents=[common], help="where the time goes")
    command.add_argument("--sentences", type=_positive, help="how many (default 1500)")
    command.add_argument("--precision", default="32-true", choices=list(DTYPES))

    _add_of_recipes(commands, common)
    return whole


def _add_growth(commands: Any, common: argparse.ArgumentParser) -> None:
    command = commands.add_parser(
        "growth", parents=[common], help="seconds of moments, eigenvectors and every k, by size"
    )
    counts, dims = "10000,100000,1000000", "384,768,1536"
    command.add_argument("--counts", type=_list, default=_list(counts), help=f"default {counts}")
    command.add_argument("--dims", type=_list, default=_list(dims), help=f"default {dims}")


def _add_of_recipes(commands: Any, common: argparse.ArgumentParser) -> None:
    command = commands.add_parser("exports", parents=[common], help="exports beside their base")
    command.add_argument("--sentences", type=_positive, help="how many (default 1000)")
    command.add_argument("--batch-size", type=_positive, default=32, help="sentence-transformers'")

    command = commands.add_parser(
        "methods", parents=[common], help="scores of every head by every map, and what papers claim"
    )
    command.add_argument("--models", type=_list, help="default all_minilm,all_mpnet,gemma")
    command.add_argument("--heads", type=_list, help="measured now; all by default")
    command.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep cosines there, and go on with them"
    )
    command.add_argument("--output", type=Path, metavar="FILE", help="write the tables in Markdown")
    command.add_argument(
        "--bootstrap", type=_positive, default=1000, help="resamples (default 1000)"
    )
    command.add_argument("--impact-pairs", type=int, default=100, help="0 for none (default 100)")

    command = commands.add_parser(
        "findings", parents=[common], help="what the papers claim, and what chooses without labels"
    )
    command.add_argument("--models", type=_list, help="default all_minilm,all_mpnet,gemma")
    command.add_argument("--languages", type=_list, help="default en,de,ja,zh")
    command.add_argument("--pairs", type=_positive, default=750, help="most of a set (default 750)")
    command.add_argument(
        "--bootstrap", type=_positive, default=1000, help="resamples (default 1000)"
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
