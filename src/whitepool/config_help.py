"""Where configurations are, and what `--help` lists: a command's groups and their choices.

The configuration is the folder ``conf`` of a checkout; a wheel has a copy of it beside its modules.

Hydra's own list has every folder of the configuration, those that only other files read included.
"""

from __future__ import annotations

from pathlib import Path

from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf

import whitepool
from whitepool.errors import UserError

RESOLVER = "whitepool.groups"  # written ${whitepool.groups:} in conf/hydra/help


def register() -> None:
    """Let help texts refer to `groups`."""
    OmegaConf.register_new_resolver(RESOLVER, groups, replace=True)


def groups(*, _root_: DictConfig) -> str:
    """A line of choices for each group of a composed configuration."""
    loader = GlobalHydra.instance().config_loader()
    names = sorted(str(name) for name in _root_.hydra.runtime.choices)
    return "\n".join(
        f"{name}: {', '.join(sorted(loader.get_group_options(name, ObjectType.CONFIG)))}"
        for name in names
        if not name.startswith("hydra/")
    )


def conf_folder(package: Path | None = None) -> Path:
    """The folder of configurations that belongs to a package folder, by default to this one.

    Raises:
        UserError: there is none, as in a copy of the modules alone.
    """
    package = package or Path(whitepool.__file__).parent
    for folder in (package / "conf", package.parents[1] / "conf"):
        if (folder / "evaluate.yaml").is_file():
            return folder
    raise UserError(
        f"the package in {package} has no folder conf: install whitepool with pip, or run it from "
        "a checkout."
    )
