"""A job whose process dies: a callback of Hydra, imported by the processes of a launcher."""

import os
import signal
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback


class Death(Callback):
    """Kills the process of the job in a folder, the first time that one begins."""

    def __init__(self, folder: str, file: str) -> None:
        self.folder = folder
        self.file = Path(file)  # is there once it has

    def on_job_start(self, config: Any, **kwargs: Any) -> None:
        """Die where the launcher has begun the job, and the job has not yet."""
        if Path(config.hydra.runtime.output_dir).name == self.folder and not self.file.exists():
            self.file.touch()
            os.kill(os.getpid(), signal.SIGKILL)
