"""What libraries say that a user of this program cannot use."""

from __future__ import annotations

import logging
import sys
import warnings


def quiet_libraries() -> None:
    """Leave to the log what a user of this program can use."""
    import transformers

    transformers.logging.set_verbosity_error()
    for name in ("pytorch_lightning", "lightning_fabric", "httpx", "sentence_transformers"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message="Metric `SpearmanCorrcoef` will save all targets")
    warnings.filterwarnings("ignore", message=".*GPU available but not used.*")
    warnings.filterwarnings("ignore", message=".*LeafSpec.*")
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
