"""Score a frozen language model's sentence embeddings: python evaluate.py --help."""

import hydra
from omegaconf import DictConfig

from whitepool.cli import job, launch


@hydra.main(version_base="1.3", config_path="conf", config_name="evaluate")
@job
def main(config: DictConfig) -> float:
    from whitepool.evaluation import evaluate

    return evaluate(config)


if __name__ == "__main__":
    launch(main, "evaluate")
