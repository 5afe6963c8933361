"""promtool accepts the exposition, except for the spelling of node_exporter's metric names."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from cli.setup.demo.demo_node import Node
from collector.model.clock import SystemClock
from collector.model.metric import Kind
from collector.model.snapshot import Identity, Snapshot
from collector.node.selection import DEFAULT_TABLES, Selection
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import NODE_EXPORTERS, Options
from tests.collector.snapshots import scrape, snapshot
from tests.exporters.metrics_page.complete_page import HEALTH
from tests.exporters.metrics_page.parsed import one_of_each, parsed
from tests.real.node_snapshots import snapshots
from tests.real.programs import load, prepare

pytestmark = pytest.mark.beside

# promtool's complaint about node_exporter's metric names, which are kept because existing dashboards use them.
CAMELS = "metric names should be written in 'snake_case' not 'camelCase'"
TICKS = 3


def page_of(taken: Iterator[Snapshot], *, machine: bool) -> Page:
    """Return the /metrics page after `TICKS` ticks."""
    clock, identity = SystemClock(), Identity()
    page = Page(Options(machine=machine), CollectorRegistry(), lambda: HEALTH, print, clock.monotonic_s)
    for _, current in zip(range(TICKS), taken, strict=False):
        identity = identity.after(current)
        page.add(current, identity)
    return page


def synthetic() -> Iterator[Snapshot]:
    now_s = SystemClock().monotonic_s()
    for number in range(TICKS):
        yield snapshot(scrape(now_s + number, one_of_each()))


def promtool(text: bytes) -> tuple[int, list[str]]:
    """Return promtool's exit code and messages for an exposition."""
    program = shutil.which("promtool")
    assert program, "no promtool: tools/prepare test installs it"
    command = [program, "check", "metrics"]
    result = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    return result.returncode, (result.stdout + result.stderr).decode().splitlines()


def complaints(page: Page) -> list[str]:
    """Return promtool's messages for a page."""
    code, messages = promtool(page.get(openmetrics=False, compressed=False))
    assert code in (0, 3), messages
    assert bool(messages) == bool(code)
    return messages


def is_node_exporters(complaint: str) -> bool:
    name, _, text = complaint.partition(" ")
    return name in NODE_EXPORTERS and text == CAMELS


def check(with_host: Page, without_host: Page) -> None:
    """Assert that promtool accepts both pages, except for the spelling of node_exporter's metric names."""
    assert complaints(without_host) == []
    assert [line for line in complaints(with_host) if not is_node_exporters(line)] == []
    for page in (with_host, without_host):
        parsed(page.get(openmetrics=True, compressed=False).decode(), openmetrics=True)


def test_promtool_accepts_a_page_with_every_metric() -> None:
    check(page_of(synthetic(), machine=True), page_of(synthetic(), machine=False))


@pytest.mark.parametrize("line", ["x_total 1\n", "# TYPE x_total gauge\nx_total 1\n", "# HELP x x\nx 1 2 3\n"])
def test_promtool_reports_malformed_expositions(line: str) -> None:
    assert promtool(line.encode())[0] != 0


def test_promtool_accepts_the_page_of_a_real_node(jolokia_node: Node) -> None:
    prepare(jolokia_node)
    with load(jolokia_node, 200):
        selection = Selection(tables=DEFAULT_TABLES)
        page = page_of(snapshots(jolokia_node, selection), machine=True)
        check(page, page_of(snapshots(jolokia_node, selection), machine=False))
    exposition = parsed(page.get(openmetrics=False, compressed=False).decode())
    assert exposition.kinds["cassandra_client_request_duration_seconds"] == Kind.HISTOGRAM.value
    name = "cassandra_client_request_duration_seconds_bucket"
    buckets = {
        (dict(labels)["operation"], float(dict(labels)["le"])): value
        for (series, labels), value in exposition.values.items()
        if series == name
    }
    reads = [value for (operation, _), value in sorted(buckets.items()) if operation == "Read"]
    assert reads == sorted(reads)
    assert reads[-1] > 0
    assert len({dict(labels).get("node") for _, labels in exposition.values}) == 1
