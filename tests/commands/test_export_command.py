"""`whitepool export` from a recipe to a folder for sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.commands.export import run
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.loading import load

from tiny import WORDS

pytestmark = pytest.mark.skipif(
    not hasattr(Encoder, "export"), reason="Encoder.export is not there yet"
)


def test_a_recipe_is_exported_once_and_replaced_where_that_is_said(
    tmp_path: Path,
    checkpoint: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [" ".join(WORDS[i % 7 : i % 7 + 1 + i % 9]) for i in range(50)]
    load(checkpoint("bert"), whitening="pca", k=8, device="cpu").fit(texts).save("mine")
    assert run(["recipe=mine", "output=exported"]) == 0
    assert capsys.readouterr().out == (
        'Exported: exported\nIn Python: SentenceTransformer("exported")\n'
    )
    modules = json.loads((tmp_path / "exported" / "modules.json").read_text(encoding="utf-8"))
    assert modules[0]["type"].endswith("Transformer")
    with pytest.raises(UserError, match="exported"):
        run(["recipe=mine", "output=exported"])
    assert run(["recipe=mine", "output=exported", "overwrite=true"]) == 0
    load(checkpoint("bert"), pooling="static", device="cpu").save("other")
    capsys.readouterr()
    assert run(["recipe=other", "output=own"]) == 0
    assert capsys.readouterr().out.endswith(': whitepool.sentence_transformer("own")\n')
    for none in ("nowhere", "all_minilm"):
        with pytest.raises(UserError, match=f"recipe={none} is no recipe folder: give one that"):
            run([f"recipe={none}", "output=no"])
