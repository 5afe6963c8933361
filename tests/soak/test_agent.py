"""The agent on a real node under load, with a real Prometheus, and with real stores that have outages."""

import csv
import json
import signal
import subprocess
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from cli.setup.demo.demo_node import Node
from tests.faults.agents import RunningAgent
from tests.faults.certificates import Authority
from tests.faults.program import run
from tests.ports import free_port
from tests.real.programs import load, prepare
from tests.real.prometheus import Prometheus
from tests.real.store_values import as_stored, by_field
from tests.real.stores import InfluxDB, Points, VictoriaMetrics
from tests.soak.recorded import expected
from tests.waiting import eventually

RATE = 300
OUTAGE_S = 30.0
BEFORE_S, AFTER_S = 15.0, 10.0
READS = 1000
IDLE_TICKS = 3


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_stores_receive_every_tick_after_an_outage(node: Node, tmp_path: Path, stack: ExitStack) -> None:
    """One agent runs throughout the outage; the other is killed during it and started again."""
    stores = InfluxDB(tmp_path / "influxdb"), VictoriaMetrics(tmp_path / "victoria-metrics")
    for store in stores:
        store.start()
        stack.callback(store.stop)
    prepare(node)
    to = [word for store in stores for word in ("--to", store.url)]

    def agent(name: str) -> RunningAgent:
        given = ["--jolokia", node.spec.jolokia_url, "--node", name, *to]
        return stack.enter_context(RunningAgent(tmp_path / name, *given)).wait_until_serving()

    with load(node, RATE):
        lives, dies = agent("lives"), agent("dies")
        started_s = time.monotonic()
        eventually(lambda: time.monotonic() - started_s > BEFORE_S, 2 * BEFORE_S)
        for store in stores:
            store.stop()
        stopped_s = time.monotonic()
        eventually(lambda: time.monotonic() - stopped_s > OUTAGE_S / 2, OUTAGE_S)
        dies.end(signal.SIGKILL)
        again = agent("dies")
        eventually(lambda: time.monotonic() - stopped_s > OUTAGE_S, 2 * OUTAGE_S)
        assert set(lives.values("casstat_sink_up")) == {0.0}
        assert min(lives.values("casstat_sink_lag_seconds")) > OUTAGE_S / 2
        for store in stores:
            store.start()
        started_s = time.monotonic()
        for running in (lives, again):
            eventually(lambda running=running: caught_up(running), 120)  # type: ignore[misc]
        eventually(lambda: time.monotonic() - started_s > AFTER_S, 2 * AFTER_S)
    for running in (lives, again):
        # Wait until the latest ticks have been shipped, too.
        eventually(lambda running=running: caught_up(running), 120)  # type: ignore[misc]
        assert set(running.values("casstat_sink_lost_ticks_total")) == {0.0}
        assert set(running.values("casstat_sink_refused_points_total")) == {0.0}
        running.end(signal.SIGTERM)
    influxdb, victoria = stores[0].points(), stores[1].points()
    wanted = {series: times for name in ("lives", "dies") for series, times in expected(tmp_path / name).items()}
    ticks = len({at_ms for series, times in wanted.items() if belongs(series, "lives") for at_ms in times})
    # A busy machine may miss ticks.
    assert ticks > OUTAGE_S / 2
    # Ticks recorded while the agents are shutting down are not sent before their next start, and one store may have
    # received one more tick than the other.
    last_ms = min(max(by_node(points, name)) for points in (influxdb, victoria) for name in ("lives", "dies"))
    fields, taken = by_field(until(wanted, last_ms)), by_field(until(influxdb, last_ms))
    shown = {series: {at: value for at, value in times.items() if at <= last_ms} for series, times in victoria.items()}
    assert taken.keys() == fields.keys() == {series for series, times in shown.items() if times}
    for series, values in fields.items():
        assert taken[series] == as_stored(values)
        assert shown[series] == as_stored(values)


def caught_up(agent: RunningAgent) -> bool:
    return set(agent.values("casstat_sink_up")) == {1.0} and max(agent.values("casstat_sink_lag_seconds")) <= 1.0


def belongs(series: str, node_name: str) -> bool:
    return repr(("node", node_name)) in series


def by_node(points: Mapping[str, Mapping[int, object]], node_name: str) -> set[int]:
    return {at_ms for series, times in points.items() if belongs(series, node_name) for at_ms in times}


def until(points: Points, last_ms: int) -> Points:
    earlier = {
        series: {at: fields for at, fields in times.items() if at <= last_ms} for series, times in points.items()
    }
    return {series: times for series, times in earlier.items() if times}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Authority(folder)


def test_prometheus_matches_the_replay_and_credentials_are_required(
    node: Node, tmp_path: Path, stack: ExitStack, authority: Authority
) -> None:
    prepare(node)
    url = node.spec.jolokia_url
    plain = stack.enter_context(RunningAgent(tmp_path / "plain", "--jolokia", url)).wait_until_serving()
    host, port = "127.0.0.1", free_port()
    server = authority.sign("server", "subjectAltName=IP:127.0.0.1")
    client = authority.sign("client", "extendedKeyUsage=clientAuth")
    web = tmp_path / "web.yml"
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    web.write_text(
        json.dumps(
            {
                "tls_server_config": {
                    "cert_file": str(server.file),
                    "key_file": str(server.key),
                    "client_auth_type": "RequireAndVerifyClientCert",
                    "client_ca_file": str(authority.file),
                },
                "basic_auth_users": {"prometheus": hashed},
            }
        )
    )
    secured = stack.enter_context(
        RunningAgent(tmp_path / "secured", "--jolokia", url, "--web-config-file", str(web), listen=f"{host}:{port}")
    )
    secured.wait_for_line("serving")
    tls = {
        "ca_file": str(authority.file),
        "cert_file": str(client.file),
        "key_file": str(client.key),
    }
    right = {"basic_auth": {"username": "prometheus", "password": "secret"}}
    target = {"scheme": "https", "static_configs": [{"targets": [f"{host}:{port}"]}]}
    jobs: dict[str, dict[str, Any]] = {
        "plain": {"static_configs": [{"targets": [plain.base.removeprefix("http://")]}]},
        "right": {**target, **right, "tls_config": tls},
        "no_password": {**target, "tls_config": tls},
        "wrong_password": {
            **target,
            "tls_config": tls,
            "basic_auth": {"username": "prometheus", "password": "wrong"},
        },
        "no_certificate": {**target, **right, "tls_config": {"ca_file": tls["ca_file"]}},
        "no_tls": {**right, "static_configs": target["static_configs"]},
    }
    prometheus = Prometheus(tmp_path / "prometheus", jobs)
    prometheus.start()
    stack.callback(prometheus.stop)
    # No request is made before the load and after it, so it does not matter how old a scraped tick is.
    begin_s = settled_s(prometheus, plain)
    with load(node, RATE):
        before = plain.value("cassandra_client_requests_total", 'operation="Read"')
        plain.until(lambda: plain.value("cassandra_client_requests_total", 'operation="Read"') > before + READS)
    end_s = settled_s(prometheus, plain)
    ups = {series["metric"]["job"]: series["value"][1] for series in prometheus.query("up", end_s)}
    assert ups == {name: "1" if name in ("plain", "right") else "0" for name in jobs}
    assert prometheus.value('casstat_build_info{job="right"}', end_s) == 1
    assert_curl_needs_credentials(f"https://{host}:{port}", tls)
    plain.end(signal.SIGTERM)
    row = merged(tmp_path / "plain", begin_s, end_s)
    offset = f"offset {round(1000 * (end_s - begin_s))}ms"
    for operation, word in (("Read", "read"), ("Write", "write")):
        of = f'{{job="plain",operation="{operation}"}}'
        counter, bucket = (
            f"cassandra_client_requests_total{of}",
            f"cassandra_client_request_duration_seconds_bucket{of}",
        )
        assert prometheus.value(f"{counter} - {counter} {offset}", end_s) == float(row[f"{word}s"]) > 0
        bounds = bounds_ms(prometheus, bucket, end_s)
        for q, of_row in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            quantile = f"histogram_quantile({q}, sum by (le) ({bucket} - {bucket} {offset}))"
            found_ms = 1000 * prometheus.value(quantile, end_s)
            assert abs(bucket_index(bounds, found_ms) - bucket_index(bounds, float(row[f"{word}_{of_row}_ms"]))) <= 1


def settled_s(prometheus: Prometheus, agent: RunningAgent) -> float:
    """Wait until Prometheus has scraped the agent's latest values, and these no longer change; return the time."""
    seen: list[list[float]] = []

    def holds() -> bool:
        seen.append([*agent.values("cassandra_client_requests_total"), agent.value("casstat_ticks_total")])
        latest = prometheus.query('cassandra_client_requests_total{job="plain"}', time.time())
        scraped = [float(series["value"][1]) for series in latest]
        unchanged = [values for values in seen if values[:-1] == seen[-1][:-1]]
        # After a tick in which the node did not answer in time, there are no values.
        return (
            bool(scraped)
            and sorted(scraped) == sorted(seen[-1][:-1])
            and unchanged[-1][-1] >= unchanged[0][-1] + IDLE_TICKS
        )

    agent.until(holds)
    return time.time()


def bucket_index(bounds: list[float], value: float) -> int:
    """Return the index of the bucket that contains a value."""
    return bisect_left(bounds, value)


def bounds_ms(prometheus: Prometheus, buckets: str, time_s: float) -> list[float]:
    return sorted(1000 * float(series["metric"]["le"]) for series in prometheus.query(buckets, time_s))


def merged(folder: Path, begin_s: float, end_s: float) -> dict[str, str]:
    """Return the row of a node's recording for a period."""
    into = folder.with_name("merged")
    result = run("merge", str(folder), "-o", str(into), "-i", "86400", "--from", str(begin_s), "--until", str(end_s))
    assert result.returncode == 0, result.stderr
    with (into / "rows.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["node"] != "cluster"]
    return row


def assert_curl_needs_credentials(base: str, tls: dict[str, str]) -> None:
    ca, own = ["--cacert", tls["ca_file"]], ["--cert", tls["cert_file"], "--key", tls["key_file"]]

    def status(path: str, *more: str) -> str:
        command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *more, f"{base}{path}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout

    password = ["-u", "prometheus:secret"]
    for path in ("/metrics", "/-/healthy", "/-/ready", "/api/v1/node", "/api/v1/samples", "/api/v1/journal", "/"):
        assert status(path, *ca, *own, *password) == "200", path
        assert status(path, *ca, *own) == "401", path
        assert status(path, *ca, *own, "-u", "prometheus:wrong") == "401", path
        # The TLS handshake fails, so there is no status.
        assert status(path, *ca, *password) == "000", path
        assert status(path, *own, *password) == "000", path
