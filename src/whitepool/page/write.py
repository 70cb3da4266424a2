"""A page as one HTML file that needs no network.

The template escapes all text (Jinja2's autoescape); data for scripts stand in JSON blocks, in which
``<`` is written as an escape, so that nothing in them can end the block. plotly.js is embedded
compressed, 2 MB in place of 5, and unpacked by the browser once the page is shown.
"""

from __future__ import annotations

import base64
import gzip
import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whitepool.page.content import Page
from whitepool.whole_file import write_text

log = logging.getLogger(__name__)

NAME = "report.html"


def save(page: Callable[[], Page], folder: Path) -> Path | None:
    """Write ``report.html`` into a run folder; what goes wrong is a warning.

    Args:
        page: gives the page; called here, since making it may fail.
        folder: of the run.

    Returns:
        The file, None where it could not be written.
    """
    path = folder / NAME
    try:
        text = render(page())
        write_text(path, text)
    except Exception as error:
        log.warning("No report: %s: %s", type(error).__name__, error)
        return None
    log.info("Report: %s", path)
    return path


def render(page: Page) -> str:
    """The page as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("whitepool", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    charts = [asdict(chart) for section in page.sections for chart in section.charts]
    commands = [
        line.command for section in page.sections for table in section.tables
        for line in table.lines
    ]  # fmt: skip
    configs = [
        line.config for section in page.sections for table in section.tables for line in table.lines
    ]
    plotly = _plotly() if charts else ""
    if charts and not plotly:
        log.warning("The report has no charts: plotly is not installed (pip install plotly).")
    here = files("whitepool.page")
    return environment.get_template("page.html").render(
        page=page,
        pictures=[(name, base64.b64encode(svg).decode()) for name, svg in page.pictures],
        style=(here / "page.css").read_text(encoding="utf-8"),
        script=(here / "page.js").read_text(encoding="utf-8"),
        plotly=plotly,
        data=embedded(
            {"charts": charts, "commands": commands, "places": configs, "configs": page.configs}
        ),
    )


def embedded(data: Any) -> str:
    """Data as JSON that may stand in a script element, whatever text it holds."""
    plain = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _plotly() -> str:
    """plotly.js, gzipped, in base64; empty where plotly is not installed."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        return ""
    source = (Path(found.origin).parent / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(source, mtime=0)).decode()
