"""What a fit leaves for a reader: a table on the terminal, and fit.json."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from whitepool.fit import Fit
from whitepool.recipe import Recipe
from whitepool.schema import plain
from whitepool.spectrum import SHARES
from whitepool.versions import versions
from whitepool.whole_file import write_text

SCHEMA = 1


def write(recipe: Recipe, fit: Fit | None, folder: Path) -> None:
    """Write fit.json."""
    content = plain(recipe)
    del content["arrays"]
    result: dict[str, Any] = {"schema": SCHEMA, "recipe": content, "fit": None}
    if fit is not None:
        result["fit"] = {
            **asdict(fit.spectrum),
            "kept": fit.fitted.directions,
            "corpora": fit.corpora,
            "seconds": round(fit.seconds, 3),
        }
    result["versions"] = versions()
    text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / "fit.json", text + "\n")


def show(recipe: Recipe, fit: Fit | None, target: Path, folder: Path) -> None:
    """Print what was fitted, and where it is."""
    console = Console(highlight=False, markup=False)
    if fit is not None:
        s = fit.spectrum
        table = Table(
            title=f"{recipe.model.name}: {fit.words}",
            title_justify="left",
            box=None,
            pad_edge=False,
        )
        cells = {
            "n": f"{s.count:,.0f}",
            "d": str(s.dim),
            "effective rank": str(s.rank),
            "condition number": f"{s.condition:.3g}",
            **{f"{100 * x:g} %": str(n) for x, n in zip(SHARES, s.directions, strict=True)},
            "k": str(fit.fitted.directions),
        }
        for name in cells:
            table.add_column(name, justify="right")
        table.add_row(*cells.values())
        console.print()
        console.print(table)
        console.print(f"Moments: {folder / 'moments.safetensors'}", soft_wrap=True)
    else:
        console.print("No map was fitted (whitening=off).")
    console.print(f"Recipe: {target.absolute()}", soft_wrap=True)
