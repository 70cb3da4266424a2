"""STS-B in other languages, machine-translated: stsb-multi-mt and files in its form.

A folder holds ``stsb-de-train.csv``, ``stsb-de-dev.csv``, ``stsb-de-test.csv`` for each language:
comma-separated with quotes, no header, sentence, sentence, score. On the hub it is MTEB's copy at
the revision that MTEB pins. Source: github.com/PhilipMay/stsb-multi-mt.
"""

from __future__ import annotations

import re
from pathlib import Path

from whitepool.data import pairs_file, split_sets
from whitepool.data.counts import COUNTS
from whitepool.data.pairs import Task
from whitepool.data.split_sets import HubFiles, SplitSet
from whitepool.errors import UserError

HUB_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "zh")
REPO = ("mteb/stsb_multi_mt", "29afa2569dcedaaa2fe6a3dcfebab33d28b82e8c")


def load_stsb_multi(
    language: str,
    split: str = "test",
    root: str | Path | None = None,
    allow_missing: bool = False,
) -> tuple[Task, ...]:
    """Read STS-B in one language; the task is called ``stsb_de``, after the language.

    Args:
        language: two letters, as de; of the hub one of those it has.
        split: see `split_sets.load`, as for the others.
        root: a folder of the files; None for the hub.
        allow_missing: go on without splits that are absent.

    Raises:
        UserError: no language code, or one that the hub lacks, and as `split_sets.load`.
    """
    if not re.fullmatch(r"[a-z]{2,3}", language):
        raise UserError(f"data.language is {language!r}; give two letters, as de.")
    if root is None and language not in HUB_LANGUAGES:
        raise UserError(
            f"data.language={language} is not on the hub, which has {', '.join(HUB_LANGUAGES)}; "
            "give a folder that has it with data.root=."
        )
    one = SplitSet(
        f"stsb_{language}",
        files={split: (f"stsb-{language}-{split}.csv",) for _, split in COUNTS["stsb"]},
        parse=lambda raw, path: pairs_file.read_rows(raw, path, (0, 1, 2)),
        counts={split: n for (_, split), n in COUNTS["stsb"].items()},
        hub=HubFiles(
            *REPO, ("sentence1", "sentence2", "similarity_score"), lambda split: (language, split)
        ),
    )
    return split_sets.load([one], split, root, allow_missing)
