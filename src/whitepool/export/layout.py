"""The folder of an export, in the form of sentence-transformers 6.

    config.json, model.safetensors, tokenizer files     the frozen model, as transformers saves it
    modules.json, config_sentence_transformers.json     which modules; prompts and similarity
    sentence_bert_config.json, 1_NAME/, 2_NAME/ …       of sentence-transformers' own modules
    recipe/                                             the recipe, which whitepool itself reads
    README.md                                           the model card

It holds no code and no pickle. See docs/formats.md.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from whitepool import recipe_folder
from whitepool.errors import UserError
from whitepool.model_folder import read_json
from whitepool.plm import FrozenPLM
from whitepool.recipe import ModelSpec, Recipe
from whitepool.tokenizing import pad_id

RECIPE = "recipe"
MODULES = "modules.json"
OWN_TYPE = "whitepool.export.module.RecipeModule"
TRANSFORMER_TYPE = "sentence_transformers.base.modules.transformer.Transformer"
NEEDED = 'pip install "whitepool[sentence-transformers]"'


def is_export(folder: Path) -> bool:
    """Whether the folder looks like an export."""
    return (folder / MODULES).is_file() and recipe_folder.is_recipe(folder / RECIPE)


def is_own(folder: Path) -> bool:
    """Whether an export has whitepool's module, which `whitepool.sentence_transformer` loads."""
    modules = read_json(folder / MODULES)
    return isinstance(modules, list) and [
        module.get("type") for module in modules if isinstance(module, dict)
    ] == [OWN_TYPE]


def exported_recipe(folder: Path) -> Recipe:
    """The recipe of an export, with the model that lies beside it.

    Raises:
        UserError: see `Recipe.load`.
    """
    recipe = Recipe.load(folder / RECIPE)
    place = str(folder.expanduser().resolve())
    own = ModelSpec(recipe.model.name, dtype=recipe.model.dtype, path=place)
    return replace(recipe, model=own)


def need_sentence_transformers() -> None:
    """See that sentence-transformers is there.

    Raises:
        UserError: it is not.
    """
    try:
        import sentence_transformers  # noqa: F401
    except ImportError as error:
        raise UserError(f"an export needs {error.name}: install it with {NEEDED}.") from error


def check_target(folder: Path, *, overwrite: bool) -> None:
    """See that an export may go there, before any work is done.

    Raises:
        UserError: something is there that is no export, or that is not to be replaced.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is not a folder: give a new folder for the export.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not is_export(folder):
        raise UserError(f"{folder} holds other things than an export: give a new or empty folder.")
    if not overwrite:
        raise UserError(
            f"{folder} is an export: replace it with overwrite=true, or give a new folder."
        )


def check_model(plm: FrozenPLM) -> None:
    """See that a folder for sentence-transformers can hold a model.

    Raises:
        UserError: it cannot.
    """
    if plm.model.config.model_type == "words":
        fault = "is a file of word vectors and no transformer"
    elif plm.segmenter is not None:
        fault = f"has its texts cut into words by {plm.segmenter}, which no tokenizer file can say"
    else:
        return
    raise UserError(
        f"model {plm.name} {fault}, so that it has no export: use its recipe with whitepool.load, "
        "or whitepool.mteb.MtebModel."
    )


def write_model(plm: FrozenPLM, recipe: Recipe, folder: Path) -> None:
    """Write the model, its tokenizer, and the recipe.

    Args:
        plm: the model, in the recipe's number type.
        recipe: its maximum length becomes the tokenizer's.
        folder: one that is there.
    """
    plm.model.save_pretrained(folder)
    tokenizer = copy.deepcopy(plm.tokenizer)
    tokenizer.model_max_length = recipe.max_length
    if tokenizer.is_fast:  # the cutting and padding of its last call would be saved
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)
    (folder / RECIPE).mkdir(exist_ok=True)
    recipe_folder.write(recipe, folder / RECIPE)


def write_own(folder: Path, recipe: Recipe) -> None:
    """Have the folder loaded with `whitepool.export.module.RecipeModule`."""
    _write(folder / MODULES, [{"idx": 0, "name": "0", "path": "", "type": OWN_TYPE}])
    _write_settings(folder, recipe, requirements={"whitepool": f">={version('whitepool')}"})


def write_chain(
    folder: Path, recipe: Recipe, plm: FrozenPLM, others: Sequence[Any], *, all_layers: bool
) -> None:
    """Have the folder loaded with modules of sentence-transformers alone.

    Args:
        folder: with model and tokenizer.
        recipe: whose prompts and similarity are kept.
        plm: the model.
        others: modules behind the Transformer, see `whitepool.export.chain.modules`.
        all_layers: whether they need the hidden states of other layers than the last.
    """
    if all_layers:
        _change(folder / "config.json", output_hidden_states=True)
    # Absolute positions count from a row's start, so padding stands on the right.
    padding: dict[str, str] = {"padding_side": "right"}
    if plm.tokenizer.pad_token is None:  # one that the tokenizer treats as special already
        padding["pad_token"] = plm.tokenizer.convert_ids_to_tokens(pad_id(plm.tokenizer))
    _change(folder / "tokenizer_config.json", **padding)
    text = {"method": "forward", "method_output_name": "last_hidden_state"}
    settings = {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": text},
        "module_output_name": "token_embeddings",
    }
    _write(folder / "sentence_bert_config.json", settings)
    entries = [{"idx": 0, "name": "0", "path": "", "type": TRANSFORMER_TYPE}]
    for i, module in enumerate(others, start=1):
        kind = type(module)
        path = f"{i}_{kind.__name__}"
        (folder / path).mkdir()
        module.save(str(folder / path))
        name = f"{kind.__module__}.{kind.__name__}"
        entries.append({"idx": i, "name": str(i), "path": path, "type": name})
    _write(folder / MODULES, entries)
    _write_settings(folder, recipe)


def _write_settings(folder: Path, recipe: Recipe, **more: Any) -> None:
    packages = {"sentence_transformers": "sentence-transformers", "pytorch": "torch"}
    content = {
        "model_type": "SentenceTransformer",
        "__version__": {
            name: version(packages.get(name, name))
            for name in ("sentence_transformers", "transformers", "pytorch")
        },
        "prompts": {"query": recipe.prompts.query, "document": recipe.prompts.document},
        "default_prompt_name": None,
        "similarity_fn_name": recipe.similarity,
        **more,
    }
    _write(folder / "config_sentence_transformers.json", content)


def _change(path: Path, **content: Any) -> None:
    _write(path, json.loads(path.read_text(encoding="utf-8")) | content)


def _write(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
