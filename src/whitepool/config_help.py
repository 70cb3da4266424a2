"""What `--help` lists: the groups that a command takes, and the choices of each.

Hydra's own list has every folder of the configuration, those that only other files read included.
"""

from __future__ import annotations

from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from omegaconf import DictConfig, OmegaConf

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
