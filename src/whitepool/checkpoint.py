"""Loading a pretrained model and its tokenizer from a hub, a folder or an embedded asset.

Nothing is unpickled but an old `.bin` checkpoint, and that through torch's weights-only reader;
no code of a model folder ever runs.
"""

from __future__ import annotations

import logging
import pickle  # for the name of an error; nothing is unpickled
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from whitepool import attention
from whitepool.checksum import sha256_of
from whitepool.converted import converted
from whitepool.errors import UserError
from whitepool.model_folder import (
    has_safetensors,
    length_limit,
    need_tokenizer,
    transformer_folder,
    weights_sha256,
)
from whitepool.online import hub_answers

log = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAPTER = "adapter_config.json"
SAFE_PICKLE = (2, 10)  # the first torch whose weights-only reader has no known way round it


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model.

    Attributes:
        model: the encoder alone, in evaluation mode.
        tokenizer: its tokenizer.
        missing: names of weights that the checkpoint lacks (of the pooler only).
        length_limit: the length its makers say to use (sentence-transformers' max_seq_length).
        provenance: where it came from: id, revision, sha256 of local weights, format.
    """

    model: Any
    tokenizer: Any
    missing: tuple[str, ...]
    length_limit: int | None
    provenance: dict[str, str | None]


def load(source: str | Path, *, revision: str | None = None, dtype: str = "float32") -> Checkpoint:
    """Load a hub id (at ``revision``), a local folder, or a file of word vectors.

    Raises:
        UserError: nothing there, a checkpoint that needs a pickle this torch reads unsafely,
            weights other than a pooler's missing, an unknown dtype, code needed to load.
    """
    if dtype not in DTYPES:
        raise UserError(f"dtype is {dtype!r}: choose one of {', '.join(DTYPES)}.")
    if Path(source).is_file():
        return _load_words(Path(source), dtype)
    folder = _local_folder(Path(source))
    options: dict[str, Any] = {"trust_remote_code": False}
    origin, is_gguf = folder, False
    if folder is None:
        _check_hub_id(str(source))
        options |= {"revision": revision, "local_files_only": not hub_answers()}
    try:
        sha256 = None if folder is None else weights_sha256(folder)
        if folder is not None and (gguf := _gguf_of(folder)) is not None:
            is_gguf = True
            folder = converted(gguf, str(sha256), partial(_read_gguf, gguf, options)) or folder
            if folder is origin:
                options["gguf_file"] = gguf.name
        name = str(folder or source)
        model, missing, weights_format = _load_model(name, folder, options, DTYPES[dtype])
        if folder is not None:
            need_tokenizer(folder)
        tokenizer = _load_tokenizer(name, options)
    except pickle.UnpicklingError as error:
        raise UserError(
            f"model {source} has an old checkpoint that holds more than tensors, which is not "
            "read: convert its weights to safetensors."
        ) from error
    except UserError:
        raise
    except Exception as error:  # numbers in config.json lead to errors of any kind
        if origin:
            remedy = "check that the folder is complete, with config.json, weights and tokenizer"
        elif options["local_files_only"]:
            remedy = "the hub does not answer, so go online or give model.path=FOLDER with a copy"
        else:
            remedy = "check the name, or give model.path=FOLDER with a copy of the model"
        raise UserError(
            f"model {source} cannot be loaded ({_first_line(error)}): {remedy}."
        ) from error
    return Checkpoint(
        model=model.eval().requires_grad_(False),
        tokenizer=tokenizer,
        missing=missing,
        length_limit=length_limit(name, origin, options),
        provenance={
            "id": str(source) if origin is None else origin.name,
            "revision": None if origin else getattr(model.config, "_commit_hash", None) or revision,
            "sha256": sha256,
            "format": "gguf" if is_gguf else weights_format,
            "dtype": dtype,
        },
    )


def _local_folder(source: Path) -> Path | None:
    """The folder of the transformer, if ``source`` is a folder."""
    if not source.is_dir():
        return None
    folder = transformer_folder(source)
    if (folder / ADAPTER).exists():  # transformers would load the model that it names
        raise UserError(
            f"model folder {folder} holds an adapter of another model ({ADAPTER}), which is not "
            "read: merge the two, or take the file away."
        )
    return folder


def _gguf_of(folder: Path) -> Path | None:
    """The GGUF file that a folder's model is in, if it is in one."""
    files = () if (folder / "config.json").exists() else sorted(folder.glob("*.gguf"))
    if not files:
        return None
    _need_gguf()
    return files[0]


def _read_gguf(gguf: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    """Model and tokenizer of a GGUF file, for `converted`."""
    folder, options = gguf.parent, {**options, "gguf_file": gguf.name}
    model, _, _ = _load_model(str(folder), folder, options, torch.float32)
    model.hf_quantizer.remove_quantization_config(model)  # its weights are plain tensors already
    return model, _load_tokenizer(str(folder), options)


def _load_words(path: Path, dtype: str) -> Checkpoint:
    from whitepool.words.model import load as load_words

    if dtype != "float32":
        raise UserError(f"word vectors stay in float32: trainer.precision=32-true, not {dtype}.")
    model, tokenizer, form = load_words(path)
    sha256 = sha256_of(path)
    found = {"id": path.name, "revision": None, "sha256": sha256, "format": form, "dtype": dtype}
    return Checkpoint(model.eval(), tokenizer, (), None, found)


def _load_model(
    name: str, folder: Path | None, options: dict[str, Any], dtype: torch.dtype
) -> tuple[Any, tuple[str, ...], str]:
    from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding

    from whitepool import nezha

    nezha.register()
    config = AutoConfig.from_pretrained(name, **options)
    text_encoders = AutoModelForTextEncoding._model_mapping
    encoder = text_encoders.get(type(config), None)
    # An encoder that was saved without its decoder is no encoder-decoder by its configuration.
    saved_alone = encoder is not None and config.architectures == [encoder.__name__]
    loader: Any = (
        AutoModelForTextEncoding
        if encoder is not None and (config.is_encoder_decoder or saved_alone)
        else AutoModel
    )
    weights_format = "gguf" if "gguf_file" in options else "safetensors"
    if weights_format == "safetensors" and not has_safetensors(name, folder, options):
        _allow_pickle(name)
        weights_format = "bin, weights-only reader"
    model, info = loader.from_pretrained(
        name,
        config=config,  # which a GGUF file takes many seconds to be read for
        dtype=dtype,
        output_loading_info=True,
        use_safetensors=None if weights_format == "gguf" else weights_format == "safetensors",
        **options,
    )
    missing = tuple(sorted(info["missing_keys"]))
    fatal = [key for key in missing if "pooler" not in key]
    if fatal:
        raise UserError(
            f"{name} lacks {len(fatal)} weights of a {type(model).__name__} (first: {fatal[0]}), "
            "which would be random: use a checkpoint of this architecture."
        )
    if config.is_encoder_decoder and loader is AutoModel:
        model = model.get_encoder()
    model.config.use_cache = False
    if model.config._attn_implementation == "sdpa":
        attention.register()
        model.set_attn_implementation(attention.NAME)
    return model, missing, weights_format


def _load_tokenizer(name: str, options: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name, **options)


def _allow_pickle(name: str) -> None:
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < SAFE_PICKLE:
        raise UserError(
            f"{name} has no safetensors weights, and torch {torch.__version__} does not read old "
            ".bin files safely: install torch 2.10 or later, or convert the weights to safetensors."
        )
    log.warning("%s has no safetensors weights: read with torch's weights-only reader.", name)


def _check_hub_id(source: str) -> None:
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise UserError(f"model folder {source} does not exist: check model.path=.")


def _need_gguf() -> None:
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError as error:
        raise UserError(
            f'a GGUF model needs {error.name}: install it with pip install "whitepool[gguf]".'
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
