"""`casstat demo up --with prometheus`, and the rules on a real cluster."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from cli.setup.demo.demo_cluster import LocalCluster, write_configuration
from dashboards.rules.alert import BUCKETS
from dashboards.rules.rule_files import ALERTS
from tests.dashboards.rule_checks import ALL_ALERTS
from tests.real.stores import fetched
from tests.waiting import eventually

ADDRESSES = ["127.0.174.1", "127.0.174.2"]
URL = f"http://{ADDRESSES[0]}:9090"
PATIENCE_S = 240.0
# The number that every alert's `for` is divided by.
SPEED_UP = 60
# Alerts that may fire because of the machine that runs the tests.
OF_THE_MACHINE = {alert.name for alert in ALERTS["machine"]} | {"CasstatTicksLate", "CasstatTicksMissed"}
# These alerts may fire, too: their windows of up to a day include the slow requests during startup.
OF_THE_MACHINE |= {"CassandraReadsSlow", "CassandraWritesSlow"}
# Matches a metric with its labels in a query.
SELECTOR = re.compile(r"[a-z_:][\w:]*\{[^}]*\}")
# These metrics are present only after certain events, with certain options, or on certain kernels.
NOT_YET: tuple[str, ...] = (
    "cassandra_hints_",
    "cassandra_operation_mode",
    "casstat_sink_",
    "casstat_series_refused",
    "casstat_clock_",
)
NOT_YET += ("node_pressure_",)
GONE = {"CassandraNodesUnreachable", "CassandraNodeDown", "CasstatNodeUnread"}


class Demo:
    """A demo that runs in a subprocess."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = LocalCluster(folder, folder)
        command = [sys.executable, "-m", "cli", "demo", "up", "--nodes", "2", "--load", "100", "--heap", "400M"]
        command += ["--address", ADDRESSES[0], "--with", "prometheus", "--dir", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = self._read()

    def _read(self) -> list[str]:
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip())
            if "Ctrl-C" in line:
                break
        return lines

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def shorten_waits(self) -> None:
        """Divide every alert's `for` by `SPEED_UP`, and let Prometheus load its configuration again."""
        expected = set()
        for path in (self.folder / "prometheus" / "rules").glob("*.yml"):
            text = re.sub(r"for: (\d+)s", lambda match: f"for: {max(int(match[1]) // SPEED_UP, 1)}s", path.read_text())
            path.write_text(text)
            expected |= {int(wait_s) for wait_s in re.findall(r"for: (\d+)s", text)}
        psutil.Process(self.cluster.running()["prometheus"]).send_signal(signal.SIGHUP)
        eventually(lambda: {int(rule.get("duration", 0)) for rule in rules()} - {0} == expected, PATIENCE_S)


def api(path: str) -> Any:
    return json.loads(fetched(f"{URL}/api/v1/{path}"))["data"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in api("rules")["groups"] for rule in group["rules"]]


def firing() -> list[dict[str, Any]]:
    return [alert for alert in api("alerts")["alerts"] if alert["state"] == "firing"]


def names() -> set[str]:
    return {str(alert["labels"]["alertname"]) for alert in firing()}


def series(query: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = api(f"query?query={query}")["result"]
    return result


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    folder = tmp_path / "demo"
    demo = Demo(folder)
    try:
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.end()
        LocalCluster(folder, folder).down()


def test_alerts_fire_and_resolve_on_a_real_cluster(demo: Demo) -> None:
    assert demo.lines, demo.process.poll()
    assert any(line == f"Prometheus  {URL}  alerts {URL}/alerts" for line in demo.lines), demo.lines
    assert set(demo.cluster.running()) == {"node1", "node2", "load", "agent-node1", "agent-node2", "prometheus"}
    demo.shorten_waits()
    _check_scrapes_and_rules()
    # Other alerts may fire at first, because their rates cover five minutes and thus include errors during startup.
    eventually(lambda: names() <= OF_THE_MACHINE, 2 * PATIENCE_S)
    _check_metrics_of_alerts()
    _kill_a_node(demo)
    _remove_the_node(demo)
    pids = list(demo.cluster.running().values())
    assert demo.end() == 0
    assert not demo.cluster.running()
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


def _check_scrapes_and_rules() -> None:
    """Assert that all targets and rules are healthy, and that Prometheus has the load's metrics."""
    eventually(lambda: sorted(target["health"] for target in api("targets")["activeTargets"]) == ["up"] * 3, PATIENCE_S)
    eventually(lambda: all(rule["health"] == "ok" for rule in rules()), PATIENCE_S)
    assert {rule["name"] for rule in rules()} >= {alert.name for alert in ALL_ALERTS}
    assert not [rule for rule in rules() if rule.get("lastError")]
    eventually(lambda: len(series(f'{BUCKETS}{{le="%2BInf",operation="Write"}}')) == 1, PATIENCE_S)
    for name in ("operations_total", "operation_duration_seconds_count", "errors_total"):
        eventually(lambda name=name: len(series(f"casstat_load_{name}")) == 2, PATIENCE_S)  # type: ignore[misc]
    (operations,) = series('casstat_load_operations_total{operation="Read"}')
    assert operations["metric"]["cluster"] == "casstat-demo"
    assert operations["metric"]["client"] == "demo"
    eventually(lambda: float(series('casstat_load_operations_total{operation="Read"}')[0]["value"][1]) > 100)


def _check_metrics_of_alerts() -> None:
    """Assert that all metrics in alerts exist, except those in `NOT_YET`; an alert on a missing metric never fires."""
    wanted = {
        selector
        for alert in ALL_ALERTS
        for selector in SELECTOR.findall(alert.expr)
        if not selector.startswith(NOT_YET)
    }
    assert len(wanted) > 40
    missing = set(wanted)

    def all_seen() -> bool:
        missing.difference_update([selector for selector in missing if series(quote(f"count({selector})"))])
        return not missing

    try:
        eventually(all_seen, PATIENCE_S)
    except AssertionError:
        raise AssertionError(f"missing: {sorted(missing)}") from None


def _kill_a_node(demo: Demo) -> None:
    psutil.Process(demo.cluster.running()["node2"]).kill()
    eventually(lambda: names() >= GONE, PATIENCE_S)
    for alert in firing():
        if alert["labels"]["alertname"] in GONE:
            assert alert["labels"]["cluster"] == "casstat-demo"
            assert alert["labels"].get("node") in (None, ADDRESSES[1])
            assert "error" not in alert["annotations"]["description"]


def _remove_the_node(demo: Demo) -> None:
    """Remove the killed node from the cluster and then from the scrape configuration; its alerts must resolve."""
    nodetool = demo.folder / "node1" / "bin" / "nodetool"
    subprocess.run([nodetool, "assassinate", ADDRESSES[1]], capture_output=True, check=True, timeout=PATIENCE_S)
    eventually(lambda: "CassandraNodesUnreachable" not in names(), PATIENCE_S)
    # The failure detector keeps reporting the removed node as down for three days.
    assert float(series("max(cassandra_endpoints_down)")[0]["value"][1]) == 1
    write_configuration(demo.folder / "prometheus", [f"{ADDRESSES[0]}:17199"], "")
    demo.shorten_waits()
    eventually(lambda: not names() & (GONE | {"CasstatAgentDown"}), PATIENCE_S)
