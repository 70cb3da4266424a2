"""Recipe folders: written whole or not at all, and read without trusting them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from torch import Tensor

from whitepool.errors import UserError
from whitepool.recipe import SCHEMA, Recipe
from whitepool.schema import parse, plain, read
from whitepool.whole_folder import whole_folder

YAML = "recipe.yaml"
WEIGHTS = "weights.safetensors"
PICKLES = (".pkl", ".pickle", ".bin", ".pt", ".pth", ".ckpt", ".joblib", ".npy", ".npz")
TITLE = "# A recipe of whitepool: whitepool.load(FOLDER) in Python, recipe=FOLDER on commands.\n"


def is_recipe(folder: Path) -> bool:
    """Whether the folder looks like a recipe."""
    return (folder / YAML).is_file()


def save(recipe: Recipe, folder: Path) -> Path:
    """See `Recipe.save`."""
    folder = folder.expanduser().absolute()
    check_target(folder)
    with whole_folder(folder, "the recipe") as fresh:
        write(recipe, fresh)
    return folder


def check_target(folder: Path) -> None:
    """Refuse to replace what is not a recipe, or a recipe with files of the user's beside it."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir() or folder.is_symlink():
        raise UserError(f"{folder} is not a folder: give a new folder for the recipe.")
    names = {path.name for path in folder.iterdir()}
    if names and YAML not in names:
        raise UserError(f"{folder} holds other things than a recipe: give a new or empty folder.")
    if extra := sorted(names - {YAML, WEIGHTS}):
        raise UserError(f"{folder} is a recipe, but {extra[0]} beside it would be lost: move it.")


def write(recipe: Recipe, folder: Path) -> None:
    """Write the files of a recipe into a folder that is there."""
    from safetensors.torch import save_file

    content = plain(recipe)
    del content["arrays"]
    text = yaml.safe_dump({"schema": SCHEMA, **content}, sort_keys=False, allow_unicode=True)
    (folder / YAML).write_text(TITLE + text, encoding="utf-8")
    if recipe.arrays:
        arrays = {name: array.contiguous() for name, array in recipe.arrays.items()}
        save_file(arrays, folder / WEIGHTS)


def load(folder: Path) -> Recipe:
    """See `Recipe.load`."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise UserError(f"recipe folder {folder} does not exist.")
    if not is_recipe(folder):
        raise UserError(f"{folder} is not a recipe: it has no {YAML}.")
    try:
        content = parse((folder / YAML).read_text(encoding="utf-8"))
        _check_schema(content)
        content.pop("schema")
        return read(Recipe, content, given={"arrays": _arrays(folder)})
    except UnicodeDecodeError as error:
        raise UserError(f"{folder / YAML}: the file is not UTF-8; convert it.") from error
    except OSError as error:
        raise UserError(f"recipe {folder} cannot be read: {error.strerror}.") from error
    except UserError as error:
        what = str(error).removesuffix(".")
        raise UserError(f"recipe {folder}: {what}; correct it, or make the recipe anew.") from error


def _check_schema(content: Any) -> None:
    if not isinstance(content, dict) or "schema" not in content:
        raise UserError(f"{YAML} has no schema number, so it is not a recipe.")
    schema = content["schema"]
    if type(schema) is not int or schema < 1:
        raise UserError(f"schema is {schema!r}: it is a whole number from 1.")
    if schema > SCHEMA:
        raise UserError(
            f"its schema is {schema} and this whitepool reads up to {SCHEMA}: install a newer "
            "whitepool."
        )


def _arrays(folder: Path) -> dict[str, Tensor]:
    """All arrays of the weights file; none if there is no such file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    if not path.exists():
        if pickles := sorted(x.name for x in folder.iterdir() if x.suffix.lower() in PICKLES):
            raise UserError(f"{pickles[0]} is not read: arrays come from {WEIGHTS} alone.")
        return {}
    try:
        arrays: dict[str, Tensor] = load_file(path)
    except (SafetensorError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UserError(f"{WEIGHTS} is not a safetensors file ({error}).") from error
    return arrays
