"""What a configuration chooses, loaded: protocol, model, and the table of unique sentences."""

from __future__ import annotations

import logging
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from whitepool.cli import is_multirun
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.precision import model_dtype
from whitepool.protocol import EvalProtocol
from whitepool.whitening import PostProcess

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything a run works on.

    Attributes:
        protocol: with the fit set that the command line asks for.
        pooling: the head.
        head: the arguments it was made with, classes included.
        post: what is fitted after pooling, None for nothing.
        plm: the frozen model.
        max_length: tokens per text.
        table: unique sentences and scored pairs.
    """

    protocol: EvalProtocol
    pooling: Pooling
    head: dict[str, Any]
    post: PostProcess | None
    plm: FrozenPLM
    max_length: int
    table: SentenceTable


def prepare(config: DictConfig) -> Inputs:
    """Load what ``config`` (composed from `conf/evaluate.yaml`) chooses, and check that it fits.

    Raises:
        UserError: something cannot be loaded, or the parts do not go together.
    """
    protocol: EvalProtocol = instantiate(config.protocol)
    if config.whitening.fit_on is not None:
        protocol = replace(protocol, fit_on=config.whitening.fit_on)
    head = options(config.pooling, "pooling")
    pooling = instantiate(head, _convert_="all")
    step = options(config.whitening, "whitening")
    post = instantiate(step, _convert_="all") if "_target_" in step else None
    tasks = instantiate(config.data, _convert_="all")
    plm = load_model(config)
    plm.check(pooling.needs)
    length = max_length(config, protocol, plm)
    table = SentenceTable.build(
        tasks, lambda texts: plm.tokenize(texts, length), other_splits=protocol.all_splits
    )
    protocol.check(table)
    announce(table, protocol, length, fits=post is not None)
    return Inputs(protocol, pooling, head, post, plm, length, table)


def options(config: DictConfig, group: str) -> dict[str, Any]:
    """A group's configuration as keyword arguments, without what the choice does not take.

    Raises:
        UserError: an option is set that this choice does not take. In a multirun, where one
            option may serve only some of the choices, that is a word in the log instead.
    """
    content: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    takes, name = content.pop("options"), content.pop("name")
    for key in ("layers", "block", "head", "normalize", "activation", "k", "fit_on"):
        if key in takes or key not in content:
            continue
        if (value := content.pop(key)) is not None:
            message = f"{group}={name} takes no {group}.{key}" + (
                f" (it takes {', '.join(takes)})" if takes else ""
            )
            if not is_multirun():
                raise UserError(f"{message}: leave {group}.{key}={value} out.")
            log.warning("%s: ignored.", message)
    if group == "whitening":
        content.pop("fit_on", None)
    elif "tokens" in content:  # block, head and normalize went into the token weights
        content = {key: content[key] for key in ("_target_", "tokens", "layers")}
    return content


def load_model(config: DictConfig) -> FrozenPLM:
    """The model that ``model=`` chose, in the precision that ``trainer.precision=`` asks for."""
    arguments = {str(key): value for key, value in config.model.items() if key != "ditto"}
    dtype = model_dtype(config.trainer.precision, config.trainer.accelerator)
    return FrozenPLM.from_pretrained(dtype=dtype, **arguments)


def max_length(config: DictConfig, protocol: EvalProtocol, plm: FrozenPLM) -> int:
    """Tokens per text: the user's word, else the protocol's, else the model's limit."""
    if config.model.max_length is None and protocol.max_length is not None:
        return min(protocol.max_length, plm.limit)
    return plm.max_length


def announce(table: SentenceTable, protocol: EvalProtocol, length: int, *, fits: bool) -> None:
    """Say what is about to be done, and what is odd about the input."""
    log.info(
        "%s sentences, %s unique, in %s pairs of %s; protocol %s%s",
        f"{table.sentences:,}",
        f"{len(table):,}",
        f"{sum(len(s.pairs) for s in table.scored):,}",
        ", ".join(task.name for task in table.tasks),
        protocol.name,
        f"; whitening fitted on {protocol.describe_fit()}" if fits else "",
    )
    if table.truncated:
        log.warning("%d texts are cut to %d tokens.", table.truncated, length)
    if table.blank:
        log.warning(
            "%d sentences are blank: their vector is zero, and its cosine with any other is 0.",
            table.blank,
        )


def quiet_libraries() -> None:
    """Leave to the log what a user of this program can use."""
    import transformers

    transformers.logging.set_verbosity_error()
    for name in ("pytorch_lightning", "lightning_fabric", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message="Metric `SpearmanCorrcoef` will save all targets")
    warnings.filterwarnings("ignore", message=".*GPU available but not used.*")
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
