"""report.html in headless Chromium: no network, no error, sorting, filtering, hostile text."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from whitepool.page import content, write
from whitepool.page.tables import Cell, Line, Table

import made_jobs as made

FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --no-first-run".split()
pytestmark = pytest.mark.slow

TIMEOUT = 120_000  # ms
NAMES = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = (
    "<script>window.broken = 1</script>",
    "</script><img src=x onerror='window.broken = 2'>",
    '" onmouseover="window.broken = 3" x="',
    "'; window.broken = 4; //",
    "{{ 7 * 7 }} ${7 * 7} &lt;b&gt; \u2028 \\u003c",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "long " + "w" * 20_000,
)


class Opened:
    """A page in the browser, and what it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1100) -> None:
        self.page = browser.new_page()
        self.page.set_viewport_size({"width": width, "height": 800})
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def column(self, name: str, table: int = 0) -> list[str]:
        """The visible cells of a column, without their small print."""
        found: list[str] = self.page.evaluate(
            """([name, place]) => {
              const table = document.querySelector(`[data-table="${place}"] table`);
              const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
              return [...table.tBodies[0].rows].filter((row) => !row.hidden)
                .map((row) => row.cells[heads.indexOf(name)].firstChild?.textContent ?? "");
            }""",
            [name, table],
        )
        return found

    def drawn(self) -> None:
        """Wait for the first chart."""
        self.page.wait_for_selector(".drawn .main-svg")

    def quiet(self, path: Path) -> None:
        """Nothing was said, and nothing but the file was asked for."""
        assert self.said == []
        assert {url for url in self.asked if not url.startswith("data:")} == {path.as_uri()}
        assert self.page.evaluate("window.broken") is None


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no browser for report.html (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        folder = tmp_path_factory.mktemp("chromium")
        opened = playwright.chromium.launch_persistent_context(
            folder, executable_path=path, args=FLAGS, headless=True
        )
        opened.set_default_timeout(TIMEOUT)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def closed_pages(browser: Any) -> Iterator[None]:
    """Pages that a test opened are closed behind it."""
    yield
    for page in browser.pages[1:]:
        page.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recipes, one failed job, an analysis-like table of hostile sentences."""
    folder = tmp_path_factory.mktemp("report")
    jobs = [
        made.job(0, "pooling=cls", "whitening=pca", folder=folder),
        made.job(1, "pooling=avg", "whitening=pca", folder=folder),
        made.job(2, "pooling=avg", "whitening=pca", f"data.name={HOSTILE[0]}", folder=folder),
        dataclasses.replace(made.job(3, "pooling=max"), results=None, error=HOSTILE[1]),
    ]
    for job in jobs[:3]:
        job.folder.mkdir()
        (job.folder / "config.yaml").write_text(f"seed: 0\nname: {HOSTILE[1]}\n")
    page = content.of_multirun(folder, jobs)
    sentences = tuple(
        Line((Cell(text, text), Cell(str(i), float(i)))) for i, text in enumerate(HOSTILE)
    )
    table = Table("Pairs", "", ("sentence", "n"), frozenset("n"), sentences, len(sentences))
    section = content.Section(HOSTILE[1], (table,), ())
    page = dataclasses.replace(page, title=HOSTILE[0], sections=(*page.sections, section))
    (folder / "report.html").write_text(write.render(page), encoding="utf-8")
    return folder / "report.html"


def test_loads_without_an_error_or_a_request(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    opened.drawn()
    if folder := os.environ.get("WHITEPOOL_ARTIFACTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        opened.page.screenshot(path=Path(folder) / "report.png")
    opened.quiet(report)


def test_charts_are_shared_with_nobody(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    opened.drawn()
    opened.page.wait_for_selector(".modebar-btn", state="attached")
    words = opened.page.evaluate(
        "[...document.querySelectorAll('.modebar-btn')].map((b) => b.dataset.title)"
    )
    assert "Zoom" in words
    assert not [w for w in words if re.search(r"(?i)share|cloud|edit|upload|plotly|studio", w)]


def test_an_opened_row_makes_no_table_wider(browser: Any, tmp_path: Path) -> None:
    job = made.job(0, "pooling=cls", "whitening=pca", folder=tmp_path)
    job.folder.mkdir()
    (job.folder / "config.yaml").write_text(f"name: {'x' * 500}\n")
    path = tmp_path / "report.html"
    path.write_text(write.render(content.of_run(job)), encoding="utf-8")
    opened = Opened(browser, path, width=1280)
    width = "document.querySelector('.scroll').scrollWidth"
    before = opened.page.evaluate(width)
    opened.page.locator("button.more").first.click()
    assert opened.page.evaluate(width) == before


def test_hostile_text_stays_text(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    opened.drawn()
    assert opened.column("sentence", table=1) == list(HOSTILE)
    assert opened.page.inner_text("h1") == HOSTILE[0]
    assert HOSTILE[1] in opened.page.inner_text("main li")
    labels = opened.page.evaluate(
        "[...document.querySelectorAll('.ytick text')].map((label) => label.textContent)"
    )
    assert any("<script>window.broken" in label for label in labels)
    assert opened.page.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    opened.page.click(".more >> nth=0")
    assert HOSTILE[1] in opened.page.inner_text("pre.config")
    opened.quiet(report)


def test_sorts_and_filters_by_keyboard(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    page = opened.page
    before = opened.column("avg")
    assert len(before) == 6
    head = page.locator("[data-table='0'] th", has_text="avg")
    for order, backwards in (("descending", True), ("ascending", False)):
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        assert opened.column("avg") == sorted(before, key=float, reverse=backwards)
    page.locator("[data-table='0'] th button", has_text="pooling").press("Space")
    assert opened.column("pooling") == ["avg"] * 4 + ["cls"] * 2

    search = page.locator("[data-table='0'] input")
    search.focus()
    page.keyboard.type("CLS off")
    assert opened.column("pooling") == ["cls"]
    assert page.inner_text("[data-table='0'] output") == "1 of 6 rows"
    search.fill("")
    page.locator("[data-table='0'] .tools select >> nth=0").select_option("avg")
    assert opened.column("pooling") == ["avg"] * 4
    opened.quiet(report)


def test_a_row_opens_to_its_command(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    page = opened.page
    button = page.locator("[data-table='0'] .more >> nth=0")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert page.inner_text("pre.command") == "python evaluate.py pooling=cls whitening=pca"
    assert page.inner_text("pre.config").startswith("seed: 0")
    page.keyboard.press("Enter")
    assert page.locator("pre.command").count() == 0


def test_narrow_and_dark(browser: Any, report: Path) -> None:
    opened = Opened(browser, report, width=360)
    page = opened.page
    opened.drawn()
    wide = """[...document.querySelectorAll('body *')].filter((element) =>
      element.getBoundingClientRect().right > 361 && !element.closest('.scroll'))
      .map((element) => element.outerHTML.slice(0, 80))"""
    assert page.evaluate(wide) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    ground = "getComputedStyle(document.body).backgroundColor"
    grid = "document.querySelector('.xtick text').style.fill"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground), page.evaluate(grid)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{grid} !== '{light[1]}'")
    assert page.evaluate(ground) != light[0]


def test_1000_rows_open_in_under_two_seconds(browser: Any, tmp_path: Path) -> None:
    jobs = [made.job(i, f"pooling=p{i}", folder=tmp_path) for i in range(500)]
    page = content.of_multirun(tmp_path, jobs)
    assert sum(len(table.lines) for table in page.sections[0].tables) == 1000
    path = tmp_path / "report.html"
    path.write_text(write.render(page), encoding="utf-8")
    seconds = []
    for _ in range(4):
        opened = Opened(browser, path)
        opened.page.wait_for_function("performance.timing.loadEventEnd > 0")
        timing = opened.page.evaluate(
            "performance.timing.loadEventEnd - performance.timing.navigationStart"
        )
        seconds.append(timing / 1000)
        opened.page.close()
    assert min(seconds) < 2, seconds
