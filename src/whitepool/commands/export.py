"""`whitepool export recipe=FOLDER output=FOLDER`: a recipe for sentence-transformers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whitepool.commands.assignments import assignments, truth
from whitepool.commands.console import HELP
from whitepool.errors import UserError

USAGE = """usage: whitepool export recipe=FOLDER output=FOLDER [overwrite=true]

Write a recipe as a folder that sentence-transformers loads.

  recipe=FOLDER     a recipe that evaluate, train or Encoder.save left
  output=FOLDER     where the exported model goes
  overwrite=true    replace the model that an earlier export left there (default: false)
"""


def run(arguments: Sequence[str]) -> int:
    """Export, and say where to.

    Raises:
        UserError: a setting is wrong, the recipe cannot be loaded, or the folder not be written.
    """
    if set(arguments) & set(HELP):
        sys.stdout.write(USAGE)
        return 0
    given = assignments(arguments, "export", {"recipe": None, "output": None, "overwrite": "false"})
    overwrite = truth("overwrite", given["overwrite"])
    from whitepool.export.layout import is_export, is_own
    from whitepool.loading import load
    from whitepool.quiet import quiet_libraries
    from whitepool.recipe_folder import is_recipe

    recipe = Path(given["recipe"]).expanduser()
    if not (is_recipe(recipe) or is_export(recipe)):
        raise UserError(
            f"recipe={recipe} is no recipe folder: give one that evaluate, train or Encoder.save "
            "left."
        )
    quiet_libraries()
    encoder: Any = load(recipe)
    output = Path(given["output"]).expanduser()
    encoder.export(output, overwrite=overwrite)
    loader = "whitepool.sentence_transformer" if is_own(output) else "SentenceTransformer"
    sys.stdout.write(f'Exported: {output}\nIn Python: {loader}("{output}")\n')
    return 0
