"""A report in a real browser: it loads nothing, executes no external text, draws every chart, and is accessible."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from exporters.charts.plot_data import Phase
from exporters.report.report import html_report, report_of
from tests.exporters.charts.runs import BEGIN_S
from tests.exporters.report.hostile_report import facts, without_values

pytestmark = pytest.mark.beside
SCHEMES, WIDTHS_PX = ("light", "dark"), (1280, 360)
SECONDS = 120
# For each shape that shows values, by panel: whether it is visible inside the panel.
SHAPES = """
[...document.querySelectorAll("figure svg.plot")].map((plot) => {
  const outer = plot.getBoundingClientRect();
  const isInside = (box) => box.left >= outer.left - 9 && box.right <= outer.right + 9
    && box.top >= outer.top - 9 && box.bottom <= outer.bottom + 9;
  return [...plot.querySelectorAll(":scope > svg > *")].map((shape) => {
    const style = getComputedStyle(shape), box = shape.getBoundingClientRect();
    const isPainted = style.stroke !== "none" || style.fill !== "none";
    return isPainted && style.visibility === "visible" && Number(style.opacity) > 0
      && (box.width > 0 || box.height > 0) && isInside(box);
  });
})
"""
# For each phase above a chart: its width in pixels, and whether its name is visible.
PHASE_NAMES = """
[...document.querySelectorAll("figure .name")].map((name) => {
  const outer = name.getBoundingClientRect(), text = name.querySelector("span").getBoundingClientRect();
  return [outer.width, text.top < outer.bottom && text.width > 0];
})
"""
MIN_NAME_PX = 30
OpenReport = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = which("chromium-headless-shell")
    assert program is not None, "chromium-headless-shell is not installed (hint: run 'sh tools/prepare test')"
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=program) as browser:
        yield browser


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    full = facts(SECONDS)
    end_s = BEGIN_S + SECONDS
    phases = (Phase(BEGIN_S, end_s - 1, "main"), Phase(end_s - 1, end_s, "cool-down", warm_up=True))
    short_phase = replace(full, merged=replace(full.merged, phases=phases))
    data = {"full": full, "short phase": short_phase, "empty": without_values()}
    for name, content in data.items():
        (folder / f"{name}.html").write_text(html_report(report_of(content)))
    return {name: folder / f"{name}.html" for name in data}


@pytest.fixture
def open_report(browser: Browser, reports: dict[str, Path]) -> Iterator[OpenReport]:
    """Return a function that opens a report; at the end, the browser must not have reported anything."""
    contexts, problems = [], []

    def opened(name: str, scheme: Any = "light", width_px: int = 1280) -> Page:
        url = reports[name].as_uri()
        context = browser.new_context(color_scheme=scheme, viewport={"width": width_px, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: None if request.url == url else problems.append(f"request: {request.url}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.mark.parametrize(("scheme", "width_px"), [*product(SCHEMES, WIDTHS_PX)])
def test_every_chart_is_drawn(open_report: OpenReport, scheme: str, width_px: int) -> None:
    page = open_report("full", scheme, width_px)
    panels = page.evaluate(SHAPES)
    assert len(panels) == page.locator("svg.plot").count() >= len(page.locator("figure").all()) == 8
    assert all(panel and all(panel) for panel in panels)
    # Nothing is wider than the screen.
    assert page.evaluate("document.documentElement.scrollWidth") <= width_px


@pytest.mark.parametrize("width_px", WIDTHS_PX)
def test_the_name_of_a_phase_is_shown_only_if_there_is_room(open_report: OpenReport, width_px: int) -> None:
    names = open_report("short phase", width_px=width_px).evaluate(PHASE_NAMES)
    assert {is_shown for _, is_shown in names} == {True, False}
    assert all(is_shown == (width >= MIN_NAME_PX) for width, is_shown in names)


@pytest.mark.parametrize(("name", "scheme", "width_px"), [*product(("full", "empty"), SCHEMES, WIDTHS_PX)])
def test_axe_finds_no_violation(open_report: OpenReport, name: str, scheme: str, width_px: int) -> None:
    results = Axe().run(open_report(name, scheme, width_px)).response
    assert [(found["id"], found["nodes"][0]["html"]) for found in results["violations"]] == []


def test_the_pointer_shows_the_values_at_its_time(open_report: OpenReport) -> None:
    page = open_report("full")
    figure = page.locator("figure").first
    plot = figure.locator("svg.plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert figure.locator("output").inner_text().startswith(clock(SECONDS / 2))
    assert "client operations: 100 operations/s" in figure.locator("output").inner_text()


def test_keys_move_between_values(open_report: OpenReport) -> None:
    page = open_report("full")
    figure = page.locator("figure").first
    figure.locator(".stage").focus()
    times = []
    for key in ("Home", "ArrowRight", "End", "ArrowLeft"):
        page.keyboard.press(key)
        times.append(figure.locator("output").inner_text()[:8])
    assert times == [clock(1), clock(2), clock(SECONDS), clock(SECONDS - 1)]


def test_a_report_can_be_printed(open_report: OpenReport) -> None:
    assert open_report("full", "dark").pdf().startswith(b"%PDF")


def clock(seconds: float) -> str:
    """Return the local time, one hour ahead of UTC, at which a time of the run is shown."""
    local_s = round(BEGIN_S + 3600 + seconds) % 86400
    return f"{local_s // 3600:02d}:{local_s // 60 % 60:02d}:{local_s % 60:02d}"
