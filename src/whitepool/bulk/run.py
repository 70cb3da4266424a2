"""One bulk run, from a composed configuration to a folder of vectors: `encode.py` in order."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from whitepool.bulk.folder import open_folder
from whitepool.bulk.inputs import open_encoder, open_trainer
from whitepool.bulk.job import Job
from whitepool.bulk.settings import Settings
from whitepool.bulk.several import check_sources, fill_on_several
from whitepool.bulk.shards import check_format
from whitepool.config_kinds import check_kinds
from whitepool.data.row_sources import open_input
from whitepool.identity import PACKAGES
from whitepool.linears import keep_few_kernels
from whitepool.quiet import quiet_libraries
from whitepool.ranks.settings import check_trainer, is_several

SETTINGS = tuple(Settings.__dataclass_fields__)


def encode(config: DictConfig) -> float:
    """Encode an input into a folder, or finish what an earlier run began; returns its vectors.

    Args:
        config: what `conf/encode.yaml` composes to.

    Raises:
        UserError: something cannot be loaded, read or written, or the folder was begun otherwise.
    """
    check_kinds(config)
    quiet_libraries()
    check_trainer(config)
    keep_few_kernels()
    run_folder = Path(config.output_dir)
    run_folder.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, run_folder / "config.yaml", resolve=True)
    content: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    settings = Settings(**{name: content[name] for name in SETTINGS})
    check_format(settings)
    sources = open_input(content["input"], **content["read"])
    check_sources(config, sources)
    trainer = open_trainer(config)
    encoder, identity = open_encoder(config, trainer.strategy.root_device)
    job = Job(encoder, settings, sources, has_ids=config.read.id is not None)
    made_from = {
        "input": {
            **content["read"],
            "files": [{"name": s.name, "bytes": s.bytes} for s in sources],
        },
        "encoder": identity,
        "dim": job.dim,
        "settings": settings.made_from(),
        "versions": _versions(settings),
    }
    path = Path(config.output).expanduser()
    with open_folder(path, made_from, settings.on_bad, overwrite=config.overwrite) as folder:
        if is_several(config):
            total = fill_on_several(job, folder, trainer, config.trainer.strategy.start_method)
        else:
            total = job.fill(folder, show=config.trainer.enable_progress_bar)
    return float(total.vectors)


def _versions(settings: Settings) -> dict[str, str]:
    """Versions that the bytes of a shard depend on."""
    packages = (*PACKAGES, *(("pyarrow",) if settings.format == "parquet" else ("numpy",)))
    return {name: version(name) for name in packages}
