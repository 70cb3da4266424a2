"""Puts the folder conf into the wheel as whitepool/conf; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConf(build_py):
    """The top-level folder stays the only copy; an editable install reads it where it is."""

    def run(self) -> None:
        """Copy the modules, then the configuration."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "whitepool" / "conf"
            shutil.rmtree(target, ignore_errors=True)  # of an earlier build
            shutil.copytree("conf", target)


setup(cmdclass={"build_py": BuildWithConf})
