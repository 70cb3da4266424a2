"""What the package's source may not do: unpickle, evaluate text, start a shell, trust a folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"), *ROOT.glob("*.py")]
)
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "runpy",
    "code",
    "pty",
}
NAMES = {"eval", "exec", "compile", "__import__"}
CALLS = {
    "os.system",
    "os.popen",
    "os.startfile",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.load_all",
    "yaml.unsafe_load_all",
    "torch.hub.load",
    "importlib.reload",
    "pandas.read_pickle",
    "torch.jit.load",
}
NEEDED = {  # call -> keyword and the value that it must have
    "torch.load": ("weights_only", "True"),
    "np.load": ("allow_pickle", "False"),
    "numpy.load": ("allow_pickle", "False"),
    "yaml.load": ("Loader", "LOADER"),
}
ALLOWED = {  # file and what it does, which was looked at
    ("checkpoint.py", "import pickle"),  # for the name of an error
}


def faults(tree: ast.AST) -> Iterator[str]:
    """What in a module is not allowed."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (f"import {x.name}" for x in names if _top(x.name) in MODULES)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                full = [f"{module}.{x.name}" for x in names]
                yield from (x for x in full if _top(module) in MODULES or x in {*CALLS, *NEEDED})
            case ast.Attribute(value=ast.Name(id="pickle"), attr=name):
                yield from [] if name == "UnpicklingError" else [f"pickle.{name}"]
            case ast.Dict():
                items = zip(map(_text, node.keys), map(_text, node.values), strict=True)
                yield from (key for key, value in items if _trusts(key.strip("'"), value))
            case ast.Call():
                yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    name = ast.unparse(node.func)
    given = {str(x.arg): ast.unparse(x.value) for x in node.keywords}
    if name in NAMES or name in CALLS or name.startswith(("os.exec", "os.spawn")):
        yield name
    if name in NEEDED and given.get(NEEDED[name][0]) != NEEDED[name][1]:
        yield f"{name} without {NEEDED[name][0]}={NEEDED[name][1]}"
    if given.get("shell", "False") != "False":
        yield "shell"
    yield from (key for key, value in given.items() if _trusts(key, value))


def _trusts(key: str, value: str) -> bool:
    return key == "trust_remote_code" and value not in ("False", key)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _text(node: ast.AST | None) -> str:
    return "" if node is None else ast.unparse(node)


def test_source() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    assert len(trees) > 200
    assert {(path.name, x) for path, tree in trees.items() for x in faults(tree)} == ALLOWED


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib",
        "from marshal import load",
        "pickle.loads(x)",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "np.load(x)",
        "np.load(x, allow_pickle=True)",
        "yaml.load(x, Loader=yaml.Loader)",
        "yaml.unsafe_load(x)",
        "eval(x)",
        "exec(x)",
        "os.system(x)",
        "subprocess.run(x, shell=True)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)",
        "options = {'trust_remote_code': x}",
        "from torch import load",
        "os.execv(x, y)",
    ],
)
def test_each_fault_is_seen(line: str) -> None:
    assert list(faults(ast.parse(line)))


def test_the_reader_of_yaml_makes_plain_values_alone() -> None:
    import yaml

    from whitepool.schema import LOADER
    from whitepool.sweeps import folders

    for loader in (LOADER, folders.LOADER):
        assert issubclass(loader, yaml.constructor.SafeConstructor)
