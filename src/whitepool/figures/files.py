"""Figures on disk and in the experiment logger, once a run's results are there.

A picture is never worth a failed run: what goes wrong here is a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from whitepool.errors import UserError
from whitepool.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

FOLDER = "figures"
Drawings = Mapping[str, Callable[[], "Figure"]]


def wanted(config: DictConfig) -> bool:
    """Whether ``figures=`` asks for figures.

    Raises:
        UserError: it is neither true nor false.
    """
    if not isinstance(config.figures, bool):
        raise UserError(f"figures is {config.figures!r}: choose one of true, false.")
    return config.figures


def save(drawings: Callable[[], Drawings], folder: Path, logger: Any) -> list[Path]:
    """Draw and write ``figures/NAME.png`` and ``.svg`` into a run folder, and log the former.

    What an earlier run left there is removed.

    Args:
        drawings: gives name -> what draws it; called here, since it may import or compute what
            fails.
        folder: of the run.
        logger: gets the images where it takes any (W&B).

    Returns:
        The PNG files that were written.
    """
    for stale in (*(folder / FOLDER).glob("*.png"), *(folder / FOLDER).glob("*.svg")):
        stale.unlink()
    try:
        found = drawings()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        log.warning("No figures: %s is not installed (pip install %s).", package, package)
        return []
    except Exception as error:
        log.warning("No figures: %s: %s", type(error).__name__, error)
        return []
    written = []
    for name, draw in found.items():
        try:
            path = _write(draw(), folder / FOLDER / name)
            if hasattr(logger, "log_image"):
                logger.log_image(key=f"{FOLDER}/{name}", images=[str(path)])
        except Exception as error:
            why = str(error).strip().partition("\n")[0]
            log.warning("Figure %s failed: %s: %s", name, type(error).__name__, why)
        else:
            written.append(path)
    if written:
        log.info("Figures: %s (%s).", folder / FOLDER, ", ".join(p.stem for p in written))
    return written


def _write(figure: Figure, stem: Path) -> Path:
    """Write PNG and SVG, laid out once; returns the former."""
    import matplotlib as mpl

    from whitepool.figures.style import DPI, RULES

    stem.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(RULES):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        with whole_file(stem.with_suffix(".svg")) as file:
            figure.savefig(file, format="svg", metadata={"Date": None})
        with whole_file(stem.with_suffix(".png")) as file:
            figure.savefig(file, format="png", dpi=DPI)
    return stem.with_suffix(".png")
