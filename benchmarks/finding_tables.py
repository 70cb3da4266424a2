"""`python -m benchmarks findings`: its tables, on the terminal and as a file in Markdown."""

from __future__ import annotations

from argparse import Namespace as Arguments
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, models, sentences, show
from benchmarks.findings import DEV, TEST, Found, measure, pairs_of
from whitepool.analysis.selection import ranks
from whitepool.correlation import bootstrap, interval, spearman_many
from whitepool.geometry import Floats
from whitepool.plm import FrozenPLM
from whitepool.pseudo_gold import CRITERION
from whitepool.whitening_choice import LIMIT

MODELS, LANGUAGES = ["all_minilm", "all_mpnet", "gemma"], ["en", "de", "ja", "zh"]
RAW, WHITENED, REDUCED = 0, 1, 2  # stages of `Vectors.test`
LAST = "layer last"
MIXES = ("layers 1, last", "layers 0, last")


def run(args: Arguments, work: Path) -> dict[str, Any]:
    """Measure the models one after the other, in every language."""
    names = args.models or (["tiny"] if args.quick else MODELS)
    languages = args.languages or (["made up"] if args.quick else LANGUAGES)
    samples = 50 if args.quick else args.bootstrap
    show.machine(machine.describe())
    tables: dict[str, list[dict[str, str]]] = {"heads": [], "claims": [], "whitening": []}
    numbers: dict[str, Any] = {}
    for name in names:
        for language in languages:
            made_up = sentences.made_up().scored[0]
            dev, test = (
                (made_up, made_up) if args.quick else pairs_of(language, args.root, args.pairs)
            )
            folder = models.folder(name, work, [*dev.texts(), *test.texts()])
            plm = FrozenPLM.from_pretrained(path=folder, name=name)
            found = measure(plm, dev, test, args.batch_tokens)
            of = {"model": name, "language": language}
            numbers[f"{name} {language}"] = plain(found)
            for key, rows in (
                ("heads", [heads(found)]),
                ("claims", claims(found, samples)),
                ("whitening", [whitening(found)]),
            ):
                tables[key] += [of | row for row in rows]
            show.say(f"{name}, {language}: {len(dev):,} dev pairs, {len(test):,} test pairs")
    for rows in tables.values():
        show.table(rows)
    return {"tables": tables, "values": numbers}


def heads(found: Found) -> dict[str, str]:
    """Test score and rank of the head that each criterion chooses."""
    h = found.heads
    rank = ranks(h.test)
    cells = {
        "best": f"{np.nanmax(h.test):.1f}",
        "labels": _picked(h.dev, h.test, rank),
        **{name: _picked(values, h.test, rank) for name, values in h.criteria.items()},
        "median": f"{np.nanmedian(h.test):.1f}",
        "heads": str(len(rank)),
    }
    return cells


def _picked(judged: Floats, test: Floats, rank: Any) -> str:
    place = int(np.nanargmax(judged))
    return f"{test[place]:.1f} ({rank[place]})"


def claims(found: Found, samples: int) -> list[dict[str, str]]:
    """Differences of test scores, with 95 % intervals of the same resampled pairs."""
    vectors, h = found.vectors, found.heads
    single, last = next(iter(vectors)), _last(found)
    labels, without = (int(np.nanargmax(x)) for x in (h.dev, h.criteria[CRITERION]))
    one, zero = (vectors[name].test for name in MIXES)
    compared = {
        f"mean - {single}": (last[RAW], vectors[single].test[RAW]),
        "1+last - last": (one[RAW], last[RAW]),
        "1+last whitened": (one[WHITENED], one[RAW]),
        "last whitened": (last[WHITENED], last[RAW]),
        "d/3 - all": (last[REDUCED], last[WHITENED]),
        "ditto - mean": (h.cosines[labels], zero[RAW]),
        "without labels - mean": (h.cosines[without], zero[RAW]),
        "without labels - labels": (h.cosines[without], h.cosines[labels]),
        "ditto - mean whitened": (h.cosines[labels], zero[WHITENED]),
    }
    flat = [x for pair in compared.values() for x in pair]
    values = 100 * spearman_many(np.stack(flat), found.test.gold)
    drawn = 100 * bootstrap(flat, found.test.gold, samples=samples, seed=0)["spearman"]
    rows = []
    for i, name in enumerate(compared):
        low, high = interval(drawn[2 * i] - drawn[2 * i + 1])
        gap = values[2 * i] - values[2 * i + 1]
        rows.append(
            {
                "claim": name,
                "than": f"{values[2 * i + 1]:.1f}",
                "difference": f"{gap:+.1f} [{low:+.1f}, {high:+.1f}]",
            }
        )
    return rows


def _last(found: Found) -> Floats:
    return [v.test for name, v in found.vectors.items() if name.startswith("layer ")][-1]


def whitening(found: Found) -> dict[str, str]:
    """How often each way to choose between raw and whitened is right, and what its errors cost."""
    raw, whitened, chosen = gains(found)
    better = np.maximum(raw, whitened)
    cells = {"heads": str(len(raw)), "whitening helps": str(int((whitened > raw).sum()))}
    for name, whiten in chosen.items():
        lost = better - np.where(whiten, whitened, raw)
        cells[name] = f"{lost.mean():.1f} ({lost.max():.1f})"
    return cells


def gains(found: Found) -> tuple[Floats, Floats, dict[str, Any]]:
    """Raw and whitened test scores of every head, (head,), and where each way whitens."""
    vectors = found.vectors.values()
    scores = np.array([spearman_many(v.test, found.test.gold) for v in vectors]) * 100
    dev = np.array([spearman_many(v.dev, found.dev.gold) for v in vectors]) * 100
    raw, whitened = np.nan_to_num(scores[:, RAW]), np.nan_to_num(scores[:, WHITENED])
    ways = {
        "never": np.zeros(len(raw), bool),
        "always": np.ones(len(raw), bool),
        "labels": np.nan_to_num(dev[:, WHITENED]) > np.nan_to_num(dev[:, RAW]),
        "mean cosine": np.array([v.mean_cosine for v in vectors]) > LIMIT,
    }
    return raw, whitened, ways


def plain(found: Found) -> dict[str, Any]:
    """Everything as numbers, for --json."""
    raw, whitened, _ = gains(found)
    h = found.heads
    return {
        "heads": [list(name) for name in h.names],
        DEV: h.dev.tolist(),
        TEST: h.test.tolist(),
        "criteria": {name: values.tolist() for name, values in h.criteria.items()},
        "vectors": {
            name: {"mean cosine": v.mean_cosine, "raw": float(a), "whitened": float(b)}
            for (name, v), a, b in zip(found.vectors.items(), raw, whitened, strict=True)
        },
    }
