"""The model that mteb is given: what mteb calls, prompts by task, and a local task as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whitepool
from whitepool.encoder import Encoder
from whitepool.errors import UserError

import tiny_suite

mteb = pytest.importorskip("mteb", reason='pip install "whitepool[mteb]"')
PAIRS = tiny_suite.pair_set("mine", "", 60)


@dataclass(frozen=True)
class Metadata:
    """What a prompt depends on."""

    name: str
    type: str


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[[str], Path]) -> Path:
    return checkpoint("bert")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    made = whitepool.load(folder, whitening="pca", k=9, prompts={"query": "music "}, device="cpu")
    return made.fit([*PAIRS.first, *PAIRS.second])


def local_task(name: str, first: Any, second: Any, gold: Any) -> Any:
    """An STS task of mteb from pairs that are at hand."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    absent = ("reference", "date", "domains", "task_subtypes", "license", "annotations_creators",
              "dialect", "sample_creation", "bibtex_citation")  # fmt: skip

    class Local(AbsTaskSTS):  # type: ignore[misc]
        metadata = TaskMetadata(
            name=name,
            dataset={"path": "none", "revision": "none"},
            description="pairs at hand",
            type="STS",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
            **dict.fromkeys(absent),
        )

        def load_data(self, **_: Any) -> None:
            columns = {"sentence1": list(first), "sentence2": list(second), "score": list(gold)}
            self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
            self.data_loaded = True

    return Local()


def score_of(model: Any, task: Any) -> float:
    """Spearman x100 that mteb finds."""
    found = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    return 100 * float(found.task_results[0].scores["test"][0]["cosine_spearman"])


def test_a_local_task(encoder: Encoder) -> None:
    """mteb's own evaluator, which calls encode as it will, gives scipy's number on our vectors."""
    from scipy import stats

    from whitepool.mteb import MtebModel

    task = local_task("MineSTS", PAIRS.first, PAIRS.second, PAIRS.gold)
    found = score_of(MtebModel(encoder), task)
    a, b = encoder.encode(PAIRS.first), encoder.encode(PAIRS.second)
    expected = stats.spearmanr(encoder.similarity_pairwise(a, b), PAIRS.gold).statistic
    assert found == pytest.approx(100 * expected, abs=0.05)
    prompted = score_of(MtebModel(encoder, prompts={"STS": "two cat runs in a park "}), task)
    assert abs(prompted - found) > 0.1


def test_what_mteb_asks_of_a_model(encoder: Encoder, folder: Path) -> None:
    from mteb.models import EncoderProtocol

    from whitepool.mteb import MtebModel

    model = MtebModel(encoder)
    assert isinstance(model, EncoderProtocol)
    meta = model.mteb_model_meta
    assert (meta.name, meta.embed_dim, meta.max_tokens) == (f"whitepool/{folder.name}", 9, 64)
    assert meta.similarity_fn_name == mteb.models.model_meta.ScoringFunction.COSINE
    x = encoder.encode(PAIRS.first[:5])
    assert np.allclose(model.similarity(x, x), encoder.similarity(x, x), atol=1e-6)
    assert MtebModel(encoder, name="me/mine").mteb_model_meta.name == "me/mine"
    with pytest.raises(UserError, match="name is 'mine': give ORGANISATION/NAME"):
        MtebModel(encoder, name="mine")


def test_other_recipes_have_other_revisions(encoder: Encoder, folder: Path, tmp_path: Path) -> None:
    """mteb keeps results by name and revision."""
    from whitepool.mteb import MtebModel

    def revision(other: Encoder, **options: Any) -> str:
        return str(MtebModel(other, name="a/b", **options).mteb_model_meta.revision)

    again = whitepool.load(encoder.save(tmp_path / "recipe"), device="cpu")
    assert revision(again) == revision(encoder)
    refitted = whitepool.load(folder, whitening="pca", k=9, device="cpu").fit(PAIRS.first)
    found = {
        revision(encoder),
        revision(encoder, prompts={"STS": "a "}),
        revision(refitted),
        revision(whitepool.load(folder, device="cpu")),
        revision(whitepool.load(folder, pooling="cls", device="cpu")),
        revision(whitepool.load(folder, pooling="cls", max_length=9, device="cpu")),
    }
    assert len(found) == 6


@pytest.mark.parametrize(
    ("name", "kind", "side", "prompt"),
    [
        ("A", "Retrieval", "query", "one "),
        ("A", "Retrieval", "document", "two "),
        ("STS12", "STS", None, "cat "),
        ("STS13", "STS", None, "dog "),
        ("B", "Clustering", "query", "music "),
        ("B", "Clustering", None, ""),
    ],
)
def test_prompts_go_by_task_and_side(
    encoder: Encoder, name: str, kind: str, side: str | None, prompt: str
) -> None:
    """The most specific one, and the encoder's own where there is none."""
    from mteb.types import PromptType

    from whitepool.mteb import MtebModel

    prompts = {"Retrieval-query": "one ", "Retrieval": "two ", "STS12": "cat ", "STS": "dog "}
    model = MtebModel(encoder, prompts=prompts)
    batches = [{"text": ["a man", "a woman"]}, {"text": ["food"]}]
    found = model.encode(
        batches,
        task_metadata=Metadata(name, kind),
        hf_split="test",
        hf_subset="default",
        prompt_type=PromptType(side) if side else None,
        batch_size=2,
        show_progress_bar=False,
    )
    texts = ["a man", "a woman", "food"]
    assert np.array_equal(found, encoder.encode(texts, prompt=prompt))


def test_mistakes(encoder: Encoder) -> None:
    from whitepool.mteb import MtebModel

    model = MtebModel(encoder)
    options: dict[str, Any] = {
        "task_metadata": Metadata("A", "STS"), "hf_split": "test", "hf_subset": "default",
    }  # fmt: skip
    with pytest.raises(UserError, match="precision is 'int8': vectors are float32 alone"):
        model.encode([], precision="int8", **options)
    with pytest.raises(UserError, match="a batch has image and no text"):
        model.encode([{"image": []}], **options)
    with pytest.warns(UserWarning, match="Task name Nonsense is not valid"):
        MtebModel(encoder, prompts={"Nonsense": "x"})
