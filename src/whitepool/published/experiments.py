"""One experiment for each recipe of the published tables, made from systems.csv.

They are put into Hydra's configuration store, so that `experiment=NAME`, lists and patterns
(`experiment=glob(whiteningbert_*)`) find them beside the files of `conf/experiment`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from typing import Any

from whitepool.config_help import conf_folder
from whitepool.published.rows import System, systems

POOLING: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("first", "last"): ("cls", {}),
    ("uniform", "last"): ("avg", {}),
    ("uniform", "1"): ("layers", {"layers": [1]}),
    ("uniform", "1+last"): ("first_last", {}),
    ("uniform", "0+last"): ("first_last_0", {}),
    ("pooler_tanh", ""): ("pooler", {}),
    ("pooler_none", ""): ("pooler", {"activation": "none"}),
    ("diagonal", "0+last"): ("ditto", {}),
}


def by_experiment() -> dict[str, list[System]]:
    """The systems that each experiment serves."""
    found: dict[str, list[System]] = {}
    for system in systems().values():
        if system.experiment:
            found.setdefault(system.experiment, []).append(system)
    return found


def content(served: Sequence[System]) -> dict[str, Any]:
    """What an experiment's YAML file would hold.

    Args:
        served: systems with one recipe but for the whitening, which those on raw vectors have not.
    """
    whitened = [system for system in served if system.post]
    one = (whitened or list(served))[0]
    pooling, options = POOLING[one.head, one.layers]
    overrides = {
        "model": one.model,
        "pooling": pooling,
        "whitening": one.post or "off",
        "protocol": one.protocol,
        "data": one.data,
        **({"corpus": one.fit} if one.fit == "nli" else {}),
    }
    step: dict[str, Any] = {} if one.k is None else {"k": one.k}
    if one.fit == "nli":
        step["fit_on"] = "corpus"
    return {
        "defaults": [{f"override /{group}": name} for group, name in overrides.items()],
        **({"pooling": options} if options else {}),
        **({"whitening": step} if step else {}),
    }


def register(words: Sequence[str]) -> None:
    """Make the experiments that a command line names known to Hydra; safe to repeat.

    Hydra copies its whole store at every look-up, so that all of them would take seconds: those
    that no word names or fits stay out, unless there is none, when the error should list them.

    Args:
        words: of the command line; names and patterns are sought in those with ``experiment``.
    """
    from hydra.core.config_store import ConfigStore

    named = [x for word in words if "experiment" in word for x in re.findall(r"[\w*?]+", word)]
    known = by_experiment()
    files = {path.stem for path in (conf_folder() / "experiment").glob("*.yaml")}
    wanted = {name for x in named for name in fnmatch.filter(known, x)}
    for name in wanted if wanted or files.intersection(named) else known:
        ConfigStore.instance().store(
            name, content(known[name]), "experiment", "_global_", "whitepool"
        )
