"""One evaluation, from a composed configuration to a folder of results."""

from __future__ import annotations

import logging
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from whitepool import report, scores
from whitepool.encoding import encode, open_store
from whitepool.inputs import prepare, quiet_libraries
from whitepool.tracking import tracked
from whitepool.whitening import save_maps

log = logging.getLogger(__name__)


def evaluate(config: DictConfig) -> float:
    """Encode, whiten, score, and write the results; returns the headline score.

    Args:
        config: what `conf/evaluate.yaml` composes to.

    Returns:
        Spearman x100 under the protocol's aggregate: post-processed unless whitening is off, the
        mean over tasks if there are several.
    """
    quiet_libraries()
    store = open_store(config.cache)
    output = Path(config.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, output / "config.yaml", resolve=True)
    with tracked(config, output) as logger:
        inputs = prepare(config)
        protocol, plm, table = inputs.protocol, inputs.plm, inputs.table
        encoded = encode(config, inputs, store, logger=logger, folder=output)
        maps = encoded.maps
        by_stage = scores.cosines(table, encoded.vectors, maps, protocol)
        result = scores.score(table.scored, by_stage, samples=config.bootstrap, seed=config.seed)
        run = report.Run(
            config=OmegaConf.to_container(config, resolve=True),
            protocol=protocol,
            model={"name": plm.name, **plm.provenance},
            max_length=inputs.max_length,
            table=table,
            scores=result,
            maps=maps,
            encode_seconds=encoded.seconds,
            device=encoded.device,
            reused=encoded.reused,
            vectors_key=encoded.key,
        )
        if maps is not None:
            save_maps(output / "whitening.safetensors", maps, run.provenance())
        run.write(output)
        if logger:
            logger.log_metrics(run.metrics())
            logger.save()
        run.log_table(logger)
        report.show(run, output)
        return run.headline.value
