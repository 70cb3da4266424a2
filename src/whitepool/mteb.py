"""An encoder as a model of mteb, without a folder.

    mteb.evaluate(MtebModel(whitepool.load("mine")), mteb.get_tasks(["STS12"]))

mteb hands over batches of texts with the task they belong to; the prompt goes by task and by side
(query or document), as mteb does it for sentence-transformers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whitepool.assets import HUB_IDS
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.reuse import digest, fingerprint
from whitepool.schema import plain
from whitepool.text_encoder import Floats

try:
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder, get_prompt
    from mteb.models.model_meta import ScoringFunction
except ImportError as error:
    raise UserError(
        f'whitepool.mteb needs {error.name}: install it with pip install "whitepool[mteb]".'
    ) from error


class MtebModel(AbsEncoder):
    """What mteb calls an encoder.

    Args:
        encoder: a fitted encoder.
        prompts: texts put before the texts of a task, under a task's name, a type of task as
            ``STS`` or ``Retrieval``, ``query``, ``document``, or ``Retrieval-query`` and the like;
            the most specific is taken. They come before the encoder's own. mteb warns of a name
            that is none of its tasks.
        name: how mteb's results call it, ``ORGANISATION/NAME``.

    Attributes:
        mteb_model_meta: mteb's description of it. The revision is a checksum of recipe and
            prompts, by which mteb tells kept results of different recipes apart.

    Raises:
        UserError: the encoder is not fitted, or the name has another form.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        prompts: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        recipe = encoder.recipe()
        own = {key: text for key, text in plain(recipe.prompts).items() if text}
        name = name or f"whitepool/{recipe.model.name.replace('/', '--')}"
        if name.count("/") != 1:
            raise UserError(f"name is {name!r}: give ORGANISATION/NAME.")
        self.model = encoder
        self.model_prompts = {**own, **(prompts or {})}
        self.validate_task_to_prompt_name(self.model_prompts, raise_for_invalid_keys=False)
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": name,
                "revision": _revision(encoder, self.model_prompts),
                "embed_dim": encoder.dimension,
                "max_tokens": encoder.max_length,
                "similarity_fn_name": ScoringFunction.COSINE,
                "framework": ["PyTorch"],
                "use_instructions": bool(self.model_prompts),
                "adapted_from": recipe.model.id or HUB_IDS.get(recipe.model.asset or ""),
            }
        )

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence[str]]],
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        prompt_type: Any = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: str | None = None,
    ) -> Floats:
        """Vectors of the texts of all batches, (text, k) float32, in their order.

        Args:
            inputs: batches with texts under ``text``, as mteb's data loaders give them.
            task_metadata: of the task; its name and type choose the prompt.
            hf_split: of no meaning here, as are the subset and the batch size: batches are made
                by tokens.
            hf_subset: see above.
            prompt_type: query, document, or None.
            batch_size: see above.
            show_progress_bar: a bar on stderr.
            precision: ``float32`` or None.

        Raises:
            UserError: texts are missing, or another precision is asked for.
        """
        if precision not in (None, "float32"):
            raise UserError(f"precision is {precision!r}: vectors are float32 alone.")
        texts = list(itertools.chain.from_iterable(map(_texts, inputs)))
        prompt = get_prompt(self.model_prompts, task_metadata, prompt_type)
        return self.model.encode(texts, prompt=prompt or "", progress=show_progress_bar)


def _texts(batch: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if "text" not in batch:
        raise UserError(f"a batch has {', '.join(batch)} and no text: whitepool encodes texts.")
    return batch["text"]


def _revision(encoder: Encoder, prompts: Mapping[str, str]) -> str:
    """A checksum of all that vectors depend on, whatever the place of the model."""
    recipe = encoder.recipe()
    content = plain(recipe)
    for key in ("arrays", "provenance", "versions"):
        del content[key]
    found = encoder.pooled.plm.provenance
    source = ("sha256",) if found["sha256"] else ("id", "revision")
    content["model"] = {key: found[key] for key in (*source, "dtype")}
    content["mteb_prompts"] = dict(prompts)
    content["arrays"] = fingerprint({name: x.numpy() for name, x in recipe.arrays.items()})
    return digest(content)
