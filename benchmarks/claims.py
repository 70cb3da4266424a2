"""What the papers say that their methods do, and whether they do it on the models measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.methods import RAW, Predictions
from whitepool.scores import Row


@dataclass(frozen=True)
class Claim:
    """A recipe is said to be better than another.

    Attributes:
        paper: whose word it is, and what they say.
        better: head, or ``head + map``.
        than: the same.
    """

    paper: str
    better: str
    than: str


CLAIMS = (
    Claim("Huang 2021: layers 1 and last beat the last", "first_last", "avg"),
    Claim("Huang 2021: whitening lifts", "first_last + pca", "first_last"),
    Claim("Su 2021: whitening lifts", "avg + pca", "avg"),
    Claim("Diera 2024: eps lifts whitening", "avg + soft 0.1", "avg + pca"),
    Claim("Chen 2023 (Ditto): diagonals lift", "ditto", "first_last_0"),
    Claim("Wang 2020 (SBERT-WK): fusion beats the mean", "sbert_wk", "avg"),
    Claim("Jiang 2022 (PromptBERT): the slot beats the mean", "prompt", "avg"),
    Claim("Jiang 2022: the template subtracted lifts", "prompt_debiased", "prompt"),
    Claim("Muennighoff 2022 (SGPT): positions beat the mean", "weighted_mean", "avg"),
    Claim("Muennighoff 2022: and the last token", "weighted_mean", "last_token"),
    Claim("Jiang 2023 (PromptEOL): one word beats the mean", "prompteol", "avg"),
    Claim("Zhang 2024: a pretended chain of thought lifts", "prompt_cot", "prompteol"),
    Claim("Zhang 2024: knowledge lifts", "prompt_ke", "prompteol"),
    Claim("Springer 2024: the second copy beats the mean", "echo", "avg"),
    Claim("Mu 2018: removal lifts word vectors", "static_words + remove_top", "static_words"),
    Claim("Yokoi 2024: Zipfian whitening lifts", "static_words + zipfian", "static_words"),
    Claim(
        "Yokoi 2024: and more than removal", "static_words + zipfian", "static_words + remove_top"
    ),
    Claim("Arora 2017 (SIF): weights lift", "sif static", "static_words"),
    Claim("Arora 2017: removal lifts further", "sif static + remove_common", "sif static"),
    Claim(
        "Ethayarajh 2018: uSIF beats SIF",
        "usif static + remove_common 5",
        "sif static + remove_common",
    ),
    Claim("Jiang 2022: biased tokens removed lift", "static_remove_biases", "static_words"),
)


def verdicts(found: Predictions, score: Callable[..., Row]) -> list[dict[str, str]]:
    """A row for each claim whose two recipes were measured."""
    result = []
    for claim in CLAIMS:
        better, than = _recipe(claim.better), _recipe(claim.than)
        if better in found and than in found:
            row = score(found[better], found[than])
            result.append(
                {
                    "claim": claim.paper,
                    "recipes": f"{claim.better} against {claim.than}",
                    "difference": shown(row, signed=True),
                    "holds": _verdict(row),
                }
            )
    return result


def _recipe(name: str) -> tuple[str, str]:
    head, _, step = name.partition(" + ")
    return head, step or RAW


def _verdict(row: Row) -> str:
    if math.isnan(row.value):
        return "undefined"
    if row.low > 0:
        return "yes"
    return "**no**" if row.high < 0 else "undecided"


def shown(row: Row, *, signed: bool = False) -> str:
    """A value with its 95 % interval."""
    if math.isnan(row.value):
        return "undefined"
    form = "+.1f" if signed else ".1f"
    return f"{row.value:{form}} [{row.low:{form}}, {row.high:{form}}]"
