"""Fit what needs no labels on a corpus, and keep it as a recipe: python train.py --help."""

import hydra
from omegaconf import DictConfig

from whitepool.cli import job, launch


@hydra.main(version_base="1.3", config_path="conf", config_name="train")
@job
def main(config: DictConfig) -> float:
    from whitepool.training import train

    return train(config)


if __name__ == "__main__":
    launch(main, "train")
