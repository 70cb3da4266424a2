"""Hydra's basic sweeper, whose jobs are matched to what an earlier multirun left.

Hydra looks for plugins in this package whenever a program of the environment begins, so that
nothing heavy is imported at the top.
"""

from __future__ import annotations

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn


class ResumableSweeper(BasicSweeper):
    """The jobs of Hydra's basic sweeper, run by any launcher as `whitepool.sweeps.run` says."""

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Run the jobs of a sweep."""
        from whitepool.sweeps.run import run_jobs

        assert self.config is not None
        assert self.hydra_context is not None
        assert self.launcher is not None
        loader = self.hydra_context.config_loader
        parser = OverridesParser.create(config_loader=loader)

        def jobs(words: Sequence[str]) -> list[list[str]]:
            parsed = parser.parse_overrides([*self._parse_config(), *words])
            return [job for batch in self.split_arguments(parsed, None) for job in batch]

        return run_jobs(
            self.config, loader, self.launcher, arguments, jobs, at_once=self.max_batch_size
        )
