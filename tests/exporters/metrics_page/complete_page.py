"""A /metrics page with every metric, for tests of names and queries."""

from prometheus_client import CollectorRegistry

from collector.model.snapshot import Identity
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth, JournalHealth, RunTimes, SinkHealth
from tests.collector.snapshots import scrape, snapshot
from tests.exporters.metrics_page.parsed import one_of_each

RUN = RunTimes("1", "ramp", 1.0, 2.0, ((1.5, "warm"),))
HEALTH = AgentHealth("1.2.3", JournalHealth(1, 2, 3), (SinkHealth("influxdb://x"),), (RUN,))


def complete_page(*, openmetrics: bool) -> str:
    """Return a /metrics page with every node metric and every self-metric of the agent."""
    page = Page(Options(), CollectorRegistry(), lambda: HEALTH, print, lambda: 10.0)
    page.add(snapshot(scrape(10.0, one_of_each())), Identity("c", "d", "r", "n"))
    return page.get(openmetrics=openmetrics, compressed=False).decode()
