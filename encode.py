"""Encode texts of any number into a folder of vectors: python encode.py --help."""

import hydra
from omegaconf import DictConfig

from whitepool.cli import job, launch


@hydra.main(version_base="1.3", config_path="conf", config_name="encode")
@job
def main(config: DictConfig) -> float:
    from whitepool.bulk.run import encode

    return encode(config)


if __name__ == "__main__":
    launch(main, "encode")
