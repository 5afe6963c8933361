"""Ticks with raw values, and the page of /metrics after them."""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry

from collector.model.metric import Series, Value
from collector.model.snapshot import Identity, Placement, Scrape, Snapshot, Tick
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth
from exporters.sinks.sink import NodeTick
from tests.exporters.metrics_page.parsed import parsed

BEGIN_S = 1_795_000_000


IDENTITY = Identity("prod", "dc1", "rack1", "10.0.0.1")


EXTERNAL = {"job": "casstat", "env": "test"}


SELF_METRICS = ("process_", "casstat_series")


def node_tick(number: int, values: Mapping[Series, Value], session: str = "one", *, shift_s: float = 0.0) -> NodeTick:
    header = Header("1.2.3", 1.0, session, sources=("node",), metrics=tuple(CATALOGUE.values()))
    snapshot = Snapshot("10.0.0.1", Tick(BEGIN_S + number + shift_s, 0.01), (Scrape("node", 5.0 + number, values),))
    return NodeTick(header, IDENTITY, snapshot, None, Placement("machine", "host"))


def pages_of(ticks: Sequence[NodeTick]) -> Iterator[dict[tuple[str, frozenset[tuple[str, str]]], float]]:
    """Yield the series of /metrics after each tick, as a scrape stores them, without those not in the journal."""
    health = AgentHealth("1.2.3", machine="machine", network="host")
    page = Page(Options(), CollectorRegistry(), lambda: health, print, lambda: 0.0)
    for tick in ticks:
        page.add(tick.snapshot, tick.identity)
        exposition = parsed(page.get(openmetrics=False, compressed=False).decode()).values
        # A scrape stores no empty labels, and numbers as floating-point numbers.
        yield {
            (name, frozenset(label for label in labels if label[1])): float(value)
            for (name, labels), value in exposition.items()
            if not name.startswith(SELF_METRICS)
        }
