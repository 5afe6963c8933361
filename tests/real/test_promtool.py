"""Prometheus' own checker has nothing to say against the exposition but what node_exporter's names bring along."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from cli.demo.demo_node import Node
from collector.model.clock import SystemClock
from collector.model.identity import Identity
from collector.model.metric import Kind
from collector.model.snapshot import Snapshot
from collector.sampling.selection import DEFAULT_TABLES, Selection
from exporters.prometheus.page import Page
from exporters.prometheus.rendering import NODE_EXPORTERS, Options
from tests.collector.snapshots import scrape, snapshot
from tests.exporters.prometheus.complete_page import HEALTH
from tests.exporters.prometheus.parsed import one_of_each, parsed
from tests.real.node_snapshots import snapshots
from tests.real.programs import load, prepare

pytestmark = pytest.mark.beside

# Dashboards want these names: the checker would have them in another case.
CAMELS = "metric names should be written in 'snake_case' not 'camelCase'"
TICKS = 3


def page_of(found: Iterator[Snapshot], *, machine: bool) -> Page:
    """Return the page after some ticks."""
    clock, identity = SystemClock(), Identity()
    page = Page(Options(machine=machine), CollectorRegistry(), lambda: HEALTH, print, clock.monotonic_s)
    for _, each in zip(range(TICKS), found, strict=False):
        identity = identity.after(each)
        page.add(each, identity)
    return page


def synthetic() -> Iterator[Snapshot]:
    now_s = SystemClock().monotonic_s()
    for number in range(TICKS):
        yield snapshot(scrape(now_s + number, one_of_each()))


def promtool(text: bytes) -> tuple[int, list[str]]:
    """Return promtool's exit code and what it says of an exposition."""
    program = shutil.which("promtool")
    assert program, "no promtool: tools/prepare test installs it"
    command = [program, "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, check=False, timeout=60)
    return done.returncode, (done.stdout + done.stderr).decode().splitlines()


def complaints(page: Page) -> list[str]:
    """Return what promtool says of a page."""
    code, said = promtool(page.get(openmetrics=False, compressed=False))
    assert code in (0, 3), said
    assert bool(said) == bool(code)
    return said


def is_node_exporters(complaint: str) -> bool:
    name, _, what = complaint.partition(" ")
    return name in NODE_EXPORTERS and what == CAMELS


def check(machines: Page, own: Page) -> None:
    """Check pages with and without metrics of node_exporter with promtool."""
    assert complaints(own) == []
    assert [each for each in complaints(machines) if not is_node_exporters(each)] == []
    for page in (machines, own):
        parsed(page.get(openmetrics=True, compressed=False).decode(), openmetrics=True)


def test_every_metric_there_is() -> None:
    check(page_of(synthetic(), machine=True), page_of(synthetic(), machine=False))


@pytest.mark.parametrize("line", ["x_total 1\n", "# TYPE x_total gauge\nx_total 1\n", "# HELP x x\nx 1 2 3\n"])
def test_the_checker_does_complain(line: str) -> None:
    assert promtool(line.encode())[0] != 0


def test_a_real_node(each_node: Node) -> None:
    prepare(each_node)
    with load(each_node, 200):
        selection = Selection(tables=DEFAULT_TABLES)
        page = page_of(snapshots(each_node, selection), machine=True)
        check(page, page_of(snapshots(each_node, selection), machine=False))
    found = parsed(page.get(openmetrics=False, compressed=False).decode())
    assert found.kinds["cassandra_client_request_duration_seconds"] == Kind.HISTOGRAM.value
    name = "cassandra_client_request_duration_seconds_bucket"
    buckets = {
        (dict(labels)["operation"], float(dict(labels)["le"])): value
        for (each, labels), value in found.values.items()
        if each == name
    }
    reads = [value for (operation, _), value in sorted(buckets.items()) if operation == "Read"]
    assert reads == sorted(reads)
    assert reads[-1] > 0
    assert len({dict(labels).get("node") for _, labels in found.values}) == 1
