"""What the groups of a configuration ask for: arguments, a frame, a model, tokens per text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from omegaconf import DictConfig, OmegaConf

from whitepool.cli import ignore, is_multirun
from whitepool.errors import UserError
from whitepool.framing import Frame, check_frame
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.precision import model_dtype
from whitepool.protocol import EvalProtocol
from whitepool.tokenizing import Tokenized

OPTIONS = (
    *("layers", "block", "head", "normalize", "activation", "smoothing"),
    *("frequent", "cap", "start", "window"),
    *("k", "gamma", "eps", "remove", "fit_on"),
    *("depth", "hidden", "epochs", "patience", "learning_rate", "seed"),
)


def options(config: DictConfig, group: str) -> dict[str, Any]:
    """A group's configuration as keyword arguments, without what the choice does not take.

    Raises:
        UserError: an option is set that this choice does not take. In a multirun, where one
            option may serve only some of the choices, that is a word in the log instead.
    """
    content: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    takes, name = content.pop("options"), content.pop("name")
    for key in OPTIONS:
        if key in takes or key not in content:
            continue
        if (value := content.pop(key)) is not None:
            message = f"{group}={name} takes no {group}.{key}" + (
                f" (it takes {', '.join(takes)})" if takes else ""
            )
            if not is_multirun():
                raise UserError(f"{message}: leave {group}.{key}={value} out.")
            ignore(f"{group}.{key}", message)
    if group == "whitening":
        content.pop("fit_on", None)
        return content
    for key in ("template", "full_stop"):  # which go around texts, see `frame_of`
        content.pop(key, None)
    if "tokens" in content:  # block, head and normalize went into the token weights
        content = {key: content[key] for key in ("_target_", "tokens", "layers")}
    return content


def frame_of(config: DictConfig, pooling: Pooling) -> Frame:
    """What ``pooling=`` puts around texts.

    Raises:
        UserError: values that are none, or a template that does not go with the head.
    """
    template, full_stop = config.pooling.template, config.pooling.full_stop
    if not isinstance(template, str) or not isinstance(full_stop, bool):
        raise UserError(
            f"pooling.template is {template!r} and pooling.full_stop {full_stop!r}: give a text "
            "with {text} in it, and true or false."
        )
    frame = Frame(template, full_stop)
    check_frame(pooling, frame)
    return frame


def load_model(config: DictConfig, dtype: str | None = None) -> FrozenPLM:
    """The model that ``model=`` chose, in the precision that ``trainer.precision=`` asks for.

    ``dtype`` has the last word where it is given.
    """
    arguments = {str(key): value for key, value in config.model.items() if key != "ditto"}
    dtype = dtype or model_dtype(config.trainer.precision, config.trainer.accelerator)
    return FrozenPLM.from_pretrained(dtype=dtype, **arguments)


def max_length(config: DictConfig, protocol: EvalProtocol, plm: FrozenPLM) -> int:
    """Tokens per text: the user's word, else the protocol's, else the model's limit."""
    if config.model.max_length is None and protocol.max_length is not None:
        return min(protocol.max_length, plm.limit)
    return plm.max_length


def by_task(
    config: DictConfig, protocol: EvalProtocol, plm: FrozenPLM
) -> dict[str, Callable[[Sequence[str]], Tokenized]]:
    """Tokenizers of the tasks that the protocol cuts elsewhere, unless the user gave a length."""
    if config.model.max_length is not None:
        return {}
    return {
        task: partial(plm.tokenize, max_length=min(length, plm.limit))
        for task, length in protocol.max_lengths.items()
    }
