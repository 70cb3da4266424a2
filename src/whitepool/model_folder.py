"""What the files of a pretrained model say, in a folder or on the hub."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from whitepool.errors import UserError

TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model", "*.gguf", "bpe.codes", "*.tiktoken")


def transformer_folder(folder: Path) -> Path:
    """The folder of the transformer itself; old sentence-transformers folders nest it."""
    if not (folder / "config.json").exists() and (folder / "modules.json").exists():
        modules = read_json(folder / "modules.json")
        for module in modules if isinstance(modules, list) else ():
            if isinstance(module, dict) and str(module.get("type")).endswith("Transformer"):
                name = Path(str(module.get("path"))).name
                return folder if name == ".." else folder / name
    return folder


def read_json(path: Path) -> Any:
    """The content of a JSON file of a model folder.

    Raises:
        UserError: it is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON file: fetch the model again.") from error


def length_limit(name: str, folder: Path | None, options: dict[str, Any]) -> int | None:
    """The length that a model's makers say to use (sentence-transformers' max_seq_length).

    Raises:
        UserError: it is no whole number from 1.
    """
    file = "sentence_bert_config.json"
    if folder is not None:
        path = folder / file
    else:
        from transformers.utils import cached_file

        found = cached_file(
            name,
            file,
            revision=options["revision"],
            local_files_only=options["local_files_only"],
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        path = Path(found) if found else Path(file)
    content = read_json(path) if path.exists() else {}
    longest = content.get("max_seq_length") if isinstance(content, dict) else None
    if longest is not None and (type(longest) is not int or longest < 1):
        raise UserError(f"{path} has max_seq_length {longest!r}: give a whole number from 1.")
    return longest


def weights_sha256(folder: Path) -> str:
    """sha256 of the sha256 of each weights file, in the order of their names."""
    digest = hashlib.sha256()
    for pattern in ("*.safetensors", "*.gguf", "*.bin"):
        for file in sorted(folder.glob(pattern)):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def need_tokenizer(folder: Path) -> None:
    """transformers makes an empty tokenizer where it finds none, and every text looks alike."""
    if not any(file for pattern in TOKENIZERS for file in folder.glob(pattern)):
        raise UserError(
            f"model folder {folder} has no tokenizer ({', '.join(TOKENIZERS)}): copy the files of "
            "the tokenizer that the model came with into it."
        )


def has_safetensors(name: str, folder: Path | None, options: dict[str, Any]) -> bool:
    """Whether a model has weights that are read without a pickle."""
    files = ("model.safetensors", "model.safetensors.index.json")
    if folder is not None:
        return any((folder / file).exists() for file in files)
    from transformers.utils import has_file

    where = {key: options[key] for key in ("revision", "local_files_only")}
    return any(has_file(name, file, **where) for file in files)
