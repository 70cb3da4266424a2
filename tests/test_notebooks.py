"""The notebooks: what is in them, and that they run."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: Any) -> str:
    """What a cell wrote on stdout, lines and columns aside."""
    return " ".join(
        "".join(out.text for out in cell.outputs if out.get("name") == "stdout").split()
    )


def figures(cell: Any) -> int:
    return sum("image/png" in out.get("data", {}) for out in cell.outputs)


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "01_whitening", "02_ditto", "03_dimensions_and_search",
    ]  # fmt: skip


@each
def test_a_notebook_defines_nothing_and_keeps_what_it_shows(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for number, cell in enumerate(code(notebook), 1):
        lines = (line for line in cell.source.splitlines() if not line.startswith("%"))
        tree = ast.parse("\n".join(lines))
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        assert not any(isinstance(node, defined) for node in ast.walk(tree))
        assert cell.execution_count == number
        assert "execution" not in cell.metadata
        assert not any(out.output_type == "error" for out in cell.outputs)
    assert sum(map(figures, code(notebook))) >= 1
    assert sum(bool(printed(cell)) for cell in code(notebook)) >= 3
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(root|home|tmp|work|usr)/", text)


@pytest.mark.slow
@each
def test_a_notebook_runs_and_shows_the_same(path: Path) -> None:
    """Numbers may differ in their last digits; a cell tagged ``time`` may print other ones."""
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    kept, again = nbformat.read(path, as_version=4), run.executed(path)
    for was, now in zip(code(kept), code(again), strict=True):
        assert figures(was) == figures(now)
        if "time" in was.metadata.get("tags", []):
            continue
        assert NUMBER.sub("#", printed(was)) == NUMBER.sub("#", printed(now))
        old, new = ([float(n.replace(",", "")) for n in NUMBER.findall(printed(c))]
                    for c in (was, now))  # fmt: skip
        assert new == pytest.approx(old, rel=0.02, abs=0.25)
