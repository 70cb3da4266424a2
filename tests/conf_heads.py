"""The heads of conf/pooling and the steps of conf/whitening, built for a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import OmegaConf

from whitepool.data.corpus import Corpus, Source, Text
from whitepool.framing import Frame
from whitepool.from_config import frame_of, options
from whitepool.maps.names import POST_PROCESSES, PostKind
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.token_counts import with_corpus

CONF = Path(__file__).resolve().parents[1] / "conf"
# What a head asks for, or what suits a model of few layers and words.
SETTINGS: dict[str, dict[str, Any]] = {
    "ditto": {"block": 1, "head": 2},
    "layers": {"layers": [2, 0, 2]},
    "sbert_wk": {"start": 1},
    "static_remove_biases": {"frequent": 3},
}
DECODERS = ("prompteol", "prompt_cot", "prompt_ke", "echo", "weighted_mean", "last_token")
HEADS = sorted(path.stem for path in (CONF / "pooling").glob("*.yaml"))
# A flow is trained on vectors and exported in tests/flow.
STEPS: list[PostKind] = sorted(kind for kind in POST_PROCESSES if kind != "flow")


@cache
def _config(name: str) -> Any:
    """What pooling=NAME composes to, without the time that Hydra takes."""
    schema, own = (
        OmegaConf.load(CONF / f"{file}.yaml") for file in ("schema/pooling", f"pooling/{name}")
    )
    del own["defaults"]
    merged = OmegaConf.merge(schema, own, SETTINGS.get(name, {}))
    return OmegaConf.create({"pooling": merged})


def corpus_of(texts: Sequence[str]) -> Corpus:
    """A corpus of some texts."""

    def read() -> Iterator[Text]:
        return (Text(text, "made") for text in texts)

    return Corpus("made", (Source("made", read),))


def built(name: str, plm: FrozenPLM, corpus: Sequence[str]) -> tuple[Pooling, Frame]:
    """The head pooling=NAME and its frame; its token weights, if any, counted in a corpus."""
    config = _config(name)
    head = instantiate(options(config.pooling, "pooling"), _convert_="all")
    frame = frame_of(config, head)
    head, _ = with_corpus(head, corpus_of(corpus), plm, plm.max_length, 100, frame)
    return head, frame
