"""Run the notebooks of this folder and keep what they show: python notebooks/run.py [FILE ...]

Needs pip install -e ".[dev]" -c constraints.txt. What changes from one run to the next, or from one
machine to another, is not kept: times of execution, metadata, ids. What a cell prints of
times is.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
NO_WIDGETS = "ignore:IProgress not found"  # of tqdm, whose bars are not shown here
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook after all of its cells have run, from the top, in a new kernel.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where)
    client.execute(env={**os.environ, "PYTHONWARNINGS": NO_WIDGETS})
    return cleaned(notebook)


def cleaned(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what no reader wants to see change."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02}"
        cell.metadata.pop("execution", None)
    return notebook


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(prog="python notebooks/run.py", description=__doc__)
    parser.add_argument("file", nargs="*", type=Path, help="by default every notebook here")
    for path in parser.parse_args().file or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)


if __name__ == "__main__":
    main()
