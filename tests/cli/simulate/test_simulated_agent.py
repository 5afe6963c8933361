"""The pages of simulated agents have the metric families of a real agent's page, and their sinks receive all ticks."""

import re
import threading

import pytest

from cli.simulate.simulated_agent import ComputeGate, NodeHistory, SimulatedAgent, SimulatedJournal
from collector.model.snapshot import Tick
from collector.node.catalogue import BEANS, CATALOGUE, HOST
from collector.node.host.busy_processes import METRICS as CLIENT_PROCESSES
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.simulation.simulated_cluster import CALM, Disturbances, header_of, simulated_cluster
from tests.exporters.golden import FOLDER
from tests.exporters.metrics_page.parsed import parsed

BEGIN_S = 1_795_000_000.0
# Long enough for every slow metric, and for a running compaction.
TICKS = 200
FAMILY = re.compile(r"# TYPE (\S+)")
# Metrics that no agent with Jolokia exports by default: those that nodetool alone reports, those that are read only if
# bucket counts are unavailable, and those of client hosts.
READ_BY_DEFAULT = {bean.metric.name for bean in BEANS} | {metric.name for part in HOST for metric in part.metrics}
NOT_BY_DEFAULT = {
    *(CATALOGUE.keys() - READ_BY_DEFAULT),
    *DECAYED,
    *(metric.name for metric in CLIENT_PROCESSES),
}
# Self-metrics of an agent without sinks, runs or too many series.
NOT_WITHOUT_SINKS = re.compile(r"casstat_(sink_|run_|series_refused)")


def agent(
    tables: int = 3, disturbances: Disturbances = CALM, interval_s: float = 1.0
) -> tuple[SimulatedAgent, list[Tick]]:
    ticks: list[Tick] = []
    (node,) = simulated_cluster(1, tables, disturbances=disturbances)
    history = NodeHistory(node, header_of(node, interval_s, "1", "1.0"), ticks)
    simulated = SimulatedAgent(history, ComputeGate(), print, lambda: ticks[-1].time_s, serves=True)
    return simulated, ticks


def tick(simulated: SimulatedAgent, ticks: list[Tick], count: int) -> None:
    for _ in range(count):
        ticks.append(Tick(BEGIN_S + len(ticks)))
        simulated.tick()


def families(text: str) -> set[str]:
    """Return the names of the metric families of a page in OpenMetrics, without those of the process."""
    return {name for name in FAMILY.findall(text) if not name.startswith("process_")}


def test_the_page_has_the_families_of_a_real_agent() -> None:
    simulated, ticks = agent()
    seen: set[str] = set()
    for _ in range(TICKS // 20):
        tick(simulated, ticks, 20)
        seen |= families(simulated.metrics(openmetrics=True, compressed=False).decode())
    everything = families((FOLDER / "prometheus.everything.txt").read_text())
    absent = {name.removesuffix("_total") for name in NOT_BY_DEFAULT} | NOT_BY_DEFAULT
    assert seen == {name for name in everything if name not in absent and not NOT_WITHOUT_SINKS.match(name)}


def test_the_page_has_all_families_of_a_captured_node() -> None:
    simulated, ticks = agent()
    tick(simulated, ticks, 2)
    captured = families((FOLDER / "prometheus.captured.txt").read_text())
    page = families(simulated.metrics(openmetrics=False, compressed=False).decode())
    assert {name for name in captured - page if not NOT_WITHOUT_SINKS.match(name)} == set()


@pytest.mark.parametrize("openmetrics", [False, True])
def test_the_page_is_valid_and_its_histograms_agree_with_its_counters(openmetrics: bool) -> None:
    simulated, ticks = agent()
    tick(simulated, ticks, 3)
    page = parsed(simulated.metrics(openmetrics=openmetrics, compressed=False).decode(), openmetrics=openmetrics)
    names = {"cluster": "simulated", "dc": "dc1", "rack": "rack1", "node": "10.0.0.1"}
    reads = page.of("cassandra_client_requests_total", **names, operation="Read")
    assert reads
    assert page.of("cassandra_client_request_duration_seconds_count", **names, operation="Read") == reads
    if not openmetrics:
        assert len(page.values) == simulated.series == page.of("casstat_series", **names)


def test_events_are_counted_as_by_a_real_agent() -> None:
    simulated, ticks = agent(disturbances=Disturbances(restart_every_s=40.0, restart_s=6.0, silent_s=0.0))
    tick(simulated, ticks, 120)
    page = parsed(simulated.metrics(openmetrics=False, compressed=False).decode())
    names = {"cluster": "simulated", "dc": "dc1", "rack": "rack1", "node": "10.0.0.1"}
    assert page.of("casstat_events_total", **names, kind="restart") == 3
    assert page.of("casstat_events_total", **names, kind="no_answer") == 18
    assert page.of("casstat_ticks_total", **names) == 120


def test_a_journal_returns_the_same_snapshots_later() -> None:
    simulated, ticks = agent(tables=1)
    journal = SimulatedJournal(simulated.history)
    assert list(journal.poll()) == []
    tick(simulated, ticks, 1)
    first = list(journal.poll())
    tick(simulated, ticks, 9)
    late = list(journal.poll())
    assert [entry.number for entry in first + late] == list(range(10))
    fresh = simulated.history.node.snapshot(ticks[1], 1.0)
    assert repr(late[0].snapshot) == repr(fresh)


def test_the_gate_is_idle_only_if_no_thread_wants_to_compute() -> None:
    gate = ComputeGate()
    entered = threading.Event()

    def compute() -> None:
        gate.enter()
        entered.set()
        gate.leave()

    assert gate.is_idle()
    gate.enter()
    thread = threading.Thread(target=compute)
    thread.start()
    assert not gate.is_idle()
    assert not entered.is_set()
    gate.leave()
    thread.join()
    assert gate.is_idle()
