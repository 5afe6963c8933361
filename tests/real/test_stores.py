"""Real stores hold every tick of every recorded series exactly once, with equal values."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from collector.model.snapshot import Identity, Sample
from collector.node.node_sampler import SampleStream
from collector.recording.writer import Limits
from exporters.recent_ticks import RecentTicks
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.parts.points import PathCache, rows, tags, time_ms
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper, journal_opener
from exporters.sinks.sink import RefusedError
from tests.collector.snapshots import REQUESTS
from tests.exporters.sinks.shipping.shipped import BEGIN_S, Node, head, snapshot
from tests.real.store_values import as_stored, by_field
from tests.real.stores import Carbon, InfluxDB, Points, StoreProcess, VictoriaMetrics, name
from tests.waiting import eventually

TICKS, MS = 300, 1000
WHO = Identity("prod", node="n1")
CATALOGUE = head().catalogue
Store = TypeVar("Store", bound=StoreProcess)


def running(store: Store) -> Iterator[Store]:
    store.start()
    yield store
    store.stop()


@pytest.fixture
def influxdb(tmp_path: Path) -> Iterator[InfluxDB]:
    yield from running(InfluxDB(tmp_path / "influxdb"))


@pytest.fixture
def victoria_metrics(tmp_path: Path) -> Iterator[VictoriaMetrics]:
    yield from running(VictoriaMetrics(tmp_path / "victoria-metrics"))


@pytest.fixture
def carbon(tmp_path: Path) -> Iterator[Carbon]:
    yield from running(Carbon(tmp_path / "carbon"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Yield a node whose first tick was `TICKS` s ago: stores refuse points that are very old or in the future."""
    made = Node(tmp_path / "node", step_s=float(int(time.time()) - TICKS) - BEGIN_S, limits=Limits(sync="never"))
    yield made
    made.journal.close()


def ship(node: Node, url: str) -> None:
    command = [sys.executable, "-m", "cli", "ship", str(node.folder), "--to", url]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert f"shipped {node.number - 1} ticks" in result.stdout


def samples_of(node: Node) -> list[Sample]:
    taken = [snapshot(number, step_s=node.step_s) for number in range(node.number)]
    return list(SampleStream(CATALOGUE, ("node",), paced=False, met=True).samples(taken))


def expected(node: Node) -> Points:
    points: Points = {}
    for sample in samples_of(node):
        for series, fields in rows(CATALOGUE, sample):
            labels = {**WHO.labels(), **dict(tags(CATALOGUE[series[0]], series))}
            points.setdefault(name(series[0], labels), {})[time_ms(sample)] = fields
    return points


def assert_equal(stored: dict[str, dict[int, float]], wanted: dict[str, dict[int, float]]) -> None:
    assert stored.keys() == wanted.keys()
    for series, values in wanted.items():
        assert stored[series] == as_stored(values)


def assert_refused(url: str, point: bytes, reason: str) -> None:
    """Assert that the sink recognises the store's refusal of a point."""
    with closing(sink_of(url)) as sink, pytest.raises(RefusedError, match=reason):
        sink.send([point], 10.0)


def test_influxdb_receives_a_complete_recording(node: Node, influxdb: InfluxDB) -> None:
    node.record(TICKS)
    ship(node, influxdb.url)
    assert_equal(by_field(influxdb.points()), by_field(expected(node)))
    # Sending the same points again, compressed, changes nothing.
    ship(node, f"{influxdb.url}?gzip=1")
    assert_equal(by_field(influxdb.points()), by_field(expected(node)))
    assert_refused(influxdb.url, b"no line at all", "unable to parse")


def test_victoria_metrics_receives_a_complete_recording(node: Node, victoria_metrics: VictoriaMetrics) -> None:
    node.record(TICKS)
    ship(node, victoria_metrics.url)
    assert_equal(victoria_metrics.points(), by_field(expected(node)))
    assert_refused(victoria_metrics.url, b"x" * (1 << 20) + b" value=1", "too long line")


def test_remote_write_stores_every_tick_of_a_recording(node: Node, victoria_metrics: VictoriaMetrics) -> None:
    node.record(TICKS)
    for url in (victoria_metrics.write_url, f"{victoria_metrics.write_url}?labels=job:sharded&shards=3"):
        command = [sys.executable, "-m", "cli", "ship", str(node.folder), "--to", url]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        # The first tick has raw values, but no rates.
        assert f"shipped {TICKS} ticks" in result.stdout
    by_job: dict[str, dict[frozenset[tuple[str, str]], dict[int, float]]] = {}
    for labels, values in victoria_metrics.series():
        by_job.setdefault(labels.pop("job"), {})[frozenset(labels.items())] = values
    assert by_job["casstat"] == by_job["sharded"]
    times = [round(MS * (BEGIN_S + node.step_s + number)) for number in range(TICKS)]
    requests = {"__name__": REQUESTS[0], "operation": REQUESTS[1], "instance": "n1", **WHO.labels()}
    assert by_job["casstat"][frozenset(requests.items())] == {time: 10 * n for n, time in enumerate(times)}
    ticks = {"__name__": "casstat_ticks_total", "instance": "n1", **WHO.labels()}
    assert by_job["casstat"][frozenset(ticks.items())] == {time: n for n, time in enumerate(times, 1)}


def test_victoria_metrics_receives_a_complete_recording_as_graphite(
    node: Node, victoria_metrics: VictoriaMetrics
) -> None:
    node.record(TICKS)
    ship(node, victoria_metrics.graphite_url)
    points = victoria_metrics.points()
    wanted = by_field(expected(node))
    for series, values in wanted.items():
        metric, labels = series.split(" ", 1)
        field = next(
            suffix
            for suffix in ("per_s", "value", "count", "mean", "p50", "p95", "p999", "p99", "max")
            if metric.endswith(f"_{suffix}")
        )
        assert points[f"casstat.{metric.removesuffix(f'_{field}')}.{field} {labels}"] == as_stored(values)
    assert len(points) == len(wanted)


def test_carbon_receives_a_complete_recording(node: Node, carbon: Carbon) -> None:
    node.record(TICKS)
    wanted: dict[str, dict[int, float]] = {}
    for sample in samples_of(node):
        for series, fields in rows(CATALOGUE, sample):
            dotted = PathCache("casstat").of(WHO, series)
            for field, value in fields.items():
                wanted.setdefault(f"{dotted}.{field}", {})[time_ms(sample) // 1000] = value
    ship(node, carbon.url)
    eventually(lambda: sum(map(len, carbon.points().values())) >= sum(map(len, wanted.values())))
    assert carbon.points() == wanted


def test_a_restarted_store_receives_everything(node: Node, influxdb: InfluxDB) -> None:
    node.recent = RecentTicks(kept=20)
    stop = threading.Event()
    plan = Plan(journal_opener(node.folder), state_folder=node.folder.parent / "kept", recent=node.recent)
    shipping = Shipper(sink_of(influxdb.url), plan, Runtime(stop.wait), node.messages.append)
    thread = threading.Thread(target=shipping.run)
    thread.start()
    try:
        node.record(100)
        eventually(lambda: shipping.health().points > 0)
        influxdb.stop()
        node.record(100)
        # Stopping InfluxDB may reset an open connection; only new connections are refused.
        eventually(lambda: not shipping.health().up and "refused" in shipping.health().reason)
        influxdb.start()
        node.record(100)
        eventually(lambda: shipping.health().up and shipping.health().lag_s == 0.0, 120)
    finally:
        stop.set()
        thread.join(60)
    assert_equal(by_field(influxdb.points()), by_field(expected(node)))
    assert shipping.health().lost_ticks == 0
    assert any("store available again" in line for line in node.messages)
