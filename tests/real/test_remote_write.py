"""An agent of a real node that is killed while the receivers of its remote write are down: no sample is lost."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from collector.recording.journal_files import journal_files
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.parts.remote_write import labels_of, sample_of
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper
from exporters.sinks.shipping.tick_queue import RecordingReader
from tests.exporters.sinks.remote_write.sample_receiver import SampleReceiver
from tests.exporters.sinks.shipping.shipped import BEGIN_S, Node, drain
from tests.faults.agents import RunningAgent
from tests.real.conftest import StartNode
from tests.real.prometheus import Prometheus
from tests.real.stores import VictoriaMetrics
from tests.waiting import eventually

pytestmark = pytest.mark.beside

# The number of ticks of the outage before and after the agent is killed, and after the outage.
OUTAGE_TICKS, TICKS_AFTER, PATIENCE_S = int(os.environ.get("CASSTAT_OUTAGE_TICKS", "8")), 5, 120.0
# Self-metrics that are not in the journal, and the series that they affect.
NOT_RECORDED = ("process_", "casstat_sink_", "casstat_journal_", "casstat_run_")
Stored = dict[frozenset[tuple[str, str]], dict[int, float]]


@pytest.fixture
def victoria(tmp_path: Path) -> Iterator[VictoriaMetrics]:
    store = VictoriaMetrics(tmp_path / "victoria-metrics", dedup=False)
    store.start()
    yield store
    store.stop()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    store = Prometheus(tmp_path / "prometheus")
    store.start()
    yield store
    store.stop()


def expected(journal: Path) -> Stored:
    """Return what an uninterrupted agent would have sent."""
    receiver = SampleReceiver()
    runtime = Runtime(lambda _: False, time.monotonic, time.time, time.process_time, lambda: 0.5)
    shipping = Shipper(receiver, Plan(lambda _: RecordingReader(journal_files(journal)), cpu_share=1.0), runtime, print)
    while shipping.step():
        pass
    shipping.close()
    samples: Stored = {}
    for (head, time_ms), content in receiver.samples.items():
        value, _ = sample_of(content)
        # Not a stale marker.
        if value == value:
            samples.setdefault(frozenset(labels_of(head)), {})[time_ms] = value
    return recorded(samples)


def recorded(samples: Mapping[frozenset[tuple[str, str]], dict[int, float]]) -> Stored:
    return {
        labels: values for labels, values in samples.items() if not dict(labels)["__name__"].startswith(NOT_RECORDED)
    }


def until(samples: Stored, last_ms: int) -> Stored:
    """Return the samples up to a time."""
    cut = {
        labels: {time_ms: value for time_ms, value in values.items() if time_ms <= last_ms}
        for labels, values in samples.items()
    }
    return {labels: values for labels, values in cut.items() if values}


def wait_for_ticks(agent: RunningAgent, count: int) -> None:
    """Wait until the agent has taken this many more ticks."""
    before = agent.value("casstat_ticks_total")
    eventually(lambda: agent.value("casstat_ticks_total") >= before + count, PATIENCE_S)


def stored_in(prometheus: Prometheus) -> Stored:
    series: list[Any] = prometheus.query('{job="casstat"}[1h]', time.time())
    stored = {
        frozenset(one["metric"].items()): {round(1000 * at_s): float(value) for at_s, value in one["values"]}
        for one in series
    }
    return recorded(stored)


def assert_same(stored: Stored, wanted: Stored) -> None:
    """Assert that the store has all samples and no others; VictoriaMetrics rounds values to 15 digits."""
    assert stored.keys() == wanted.keys()
    for labels, samples in wanted.items():
        assert stored[labels].keys() == samples.keys(), dict(labels)
        for time_ms, value in samples.items():
            assert isclose(stored[labels][time_ms], value, rel_tol=1e-14), (dict(labels), time_ms)


def test_an_outage_and_a_kill_lose_nothing(
    start_node: StartNode, tmp_path: Path, victoria: VictoriaMetrics, prometheus: Prometheus
) -> None:
    node = start_node("5.0.8")
    journal, urls = tmp_path / "journal", (victoria.write_url, prometheus.write_url)
    options = ["--jolokia", node.spec.jolokia_url, *(word for url in urls for word in ("--to", url))]

    def is_caught_up(agent: RunningAgent) -> bool:
        return agent.values("casstat_sink_up") == [1.0, 1.0] and max(agent.values("casstat_sink_lag_seconds")) <= 1.0

    with ExitStack() as stack:
        agent = stack.enter_context(RunningAgent(journal, *options)).wait_until_serving()
        agent.until(lambda: is_caught_up(agent))
        for store in (victoria, prometheus):
            store.stop()
        wait_for_ticks(agent, OUTAGE_TICKS)
        agent.end(signal.SIGKILL)
        agent = stack.enter_context(RunningAgent(journal, *options)).wait_until_serving()
        wait_for_ticks(agent, OUTAGE_TICKS)
        for store in (victoria, prometheus):
            store.start()
        eventually(lambda: is_caught_up(agent), PATIENCE_S)
        wait_for_ticks(agent, TICKS_AFTER)
        eventually(lambda: is_caught_up(agent), PATIENCE_S)
        assert agent.values("casstat_sink_lost_ticks_total") == [0.0, 0.0]
        # Prometheus rejects samples that it stored before the kill.
        assert agent.value("casstat_sink_refused_points_total", f'sink="{victoria.write_url}"') == 0.0
        agent.end(signal.SIGTERM)
    in_victoria = recorded({frozenset(labels.items()): values for labels, values in victoria.series()})
    in_prometheus = stored_in(prometheus)
    # The last tick may not have been sent before the agent stopped.
    last_ms = min(max(map(max, stored.values())) for stored in (in_victoria, in_prometheus))
    wanted = until(expected(journal), last_ms)
    assert len({time_ms for values in wanted.values() for time_ms in values}) > 2 * OUTAGE_TICKS + TICKS_AFTER
    assert_same(until(in_victoria, last_ms), wanted)
    assert_same(until(in_prometheus, last_ms), wanted)


def test_samples_that_prometheus_rejects_as_late_do_not_lose_the_others(tmp_path: Path, prometheus: Prometheus) -> None:
    """It accepts samples up to an hour older than the newest one, and rolls back a request with a late one."""
    late_ticks, ticks, hour_s = 60, 120, 3600
    newest = Node(tmp_path / "newest")
    older = Node(tmp_path / "older", step_s=ticks - 1 - hour_s - late_ticks)
    for node, job in ((newest, "newest"), (older, "older")):
        node.record(ticks)
        node.store = sink_of(f"{prometheus.write_url}?labels=job:{job}")  # type: ignore[assignment]
        shipping = node.shipping(state_folder=None)
        drain(shipping)
        shipping.close()
        assert node.time.waits == []
        node.journal.close()
    first_s = BEGIN_S + older.step_s
    (ticks_total,) = prometheus.query('casstat_ticks_total{job="older"}[3h]', BEGIN_S + ticks)
    expected = {first_s + number: number + 1 for number in range(late_ticks, ticks)}
    assert {at_s: float(value) for at_s, value in ticks_total["values"]} == expected
    stored = sum(len(series["values"]) for series in prometheus.query('{job="older"}[3h]', BEGIN_S + ticks))
    # The points include stale markers, which a query does not return.
    assert stored <= shipping.health().points < 1.1 * stored
