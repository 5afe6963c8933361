"""`casstat demo up --with prometheus`: what it promises, and that the rules say what is so of a real cluster."""

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

from cli.demo.demo_cluster import LocalCluster
from cli.demo.demo_prometheus import write_configuration
from dashboards.rules.all_alerts import ALERTS, alert_list
from dashboards.rules.burn_rate import BUCKETS
from tests.real.programs import eventually
from tests.real.stores import asked

ADDRESSES = ["127.0.174.1", "127.0.174.2"]
URL = f"http://{ADDRESSES[0]}:9090"
PATIENCE_S = 240.0
# `for` is this much shorter here.
HASTE = 60
# What the machine that the tests run on may well deserve.
OF_THE_MACHINE = {alert.name for alert in ALERTS["machine"]} | {"CasstatTicksLate", "CasstatTicksMissed"}
# A slow start is forgotten after a day.
OF_THE_MACHINE |= {"CassandraReadsSlow", "CassandraWritesSlow"}
# What a metric and its labels look like in a query.
SELECTOR = re.compile(r"[a-z_:][\w:]*\{[^}]*\}")
# Only there once it happened, or where somebody asked for it, or as the kernel pleases.
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
    """The demo in a process of its own, as in somebody's terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = LocalCluster(folder, folder)
        command = [sys.executable, "-m", "cli", "demo", "up", "--nodes", "2", "--load", "100", "--heap", "400M"]
        command += ["--address", ADDRESSES[0], "--with", "prometheus", "--dir", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = self._read()

    def _read(self) -> list[str]:
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line.rstrip())
            if "Ctrl-C" in line:
                break
        return said

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def haste(self) -> None:
        """Let alerts wait for less."""
        for path in (self.folder / "prometheus" / "rules").glob("*.yml"):
            text = re.sub(r"for: (\d+)s", lambda found: f"for: {max(int(found[1]) // HASTE, 1)}s", path.read_text())
            path.write_text(text)
        self.reload()

    def reload(self) -> None:
        asked(f"{URL}/-/reload", b"")


def api(path: str) -> Any:
    return json.loads(asked(f"{URL}/api/v1/{path}"))["data"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in api("rules")["groups"] for rule in group["rules"]]


def firing() -> list[dict[str, Any]]:
    return [alert for alert in api("alerts")["alerts"] if alert["state"] == "firing"]


def names() -> set[str]:
    return {str(alert["labels"]["alertname"]) for alert in firing()}


def series(query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api(f"query?query={query}")["result"]
    return found


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


def test_rules_on_a_real_cluster(demo: Demo) -> None:
    assert demo.said, demo.process.poll()
    assert any(line == f"Prometheus  {URL}  alerts {URL}/alerts" for line in demo.said), demo.said
    assert set(demo.cluster.running()) == {"node1", "node2", "load", "agent-node1", "agent-node2", "prometheus"}
    demo.haste()
    _is_whole()
    # What went wrong at the start stays in the rates for five minutes.
    eventually(lambda: names() <= OF_THE_MACHINE, 2 * PATIENCE_S)
    _all_is_there()
    _a_node_dies(demo)
    _the_node_is_gone_for_good(demo)
    pids = list(demo.cluster.running().values())
    assert demo.end() == 0
    assert not demo.cluster.running()
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


def _is_whole() -> None:
    """All is scraped, all rules are sound, the load and its latency are there."""
    eventually(lambda: sorted(each["health"] for each in api("targets")["activeTargets"]) == ["up"] * 3, PATIENCE_S)
    eventually(lambda: all(rule["health"] == "ok" for rule in rules()), PATIENCE_S)
    assert {rule["name"] for rule in rules()} >= {alert.name for alert in alert_list()}
    assert not [rule for rule in rules() if rule.get("lastError")]
    eventually(lambda: len(series(f'{BUCKETS}{{le="%2BInf",operation="Write"}}')) == 1, PATIENCE_S)
    for name in ("operations_total", "operation_duration_seconds_count", "errors_total"):
        eventually(lambda name=name: len(series(f"casstat_load_{name}")) == 2, PATIENCE_S)  # type: ignore[misc]
    (found,) = series('casstat_load_operations_total{operation="Read"}')
    assert found["metric"]["cluster"] == "casstat-demo"
    assert found["metric"]["client"] == "demo"
    eventually(lambda: float(series('casstat_load_operations_total{operation="Read"}')[0]["value"][1]) > 100)


def _all_is_there() -> None:
    """Whatever an alert looks at is there, so that its silence means something."""
    wanted = {
        found for alert in alert_list() for found in SELECTOR.findall(alert.expr) if not found.startswith(NOT_YET)
    }
    assert len(wanted) > 40
    missing = set(wanted)

    def all_seen() -> bool:
        missing.difference_update([each for each in missing if series(quote(f"count({each})"))])
        return not missing

    try:
        eventually(all_seen, PATIENCE_S)
    except AssertionError:
        raise AssertionError(f"not there: {sorted(missing)}") from None


def _a_node_dies(demo: Demo) -> None:
    psutil.Process(demo.cluster.running()["node2"]).kill()
    eventually(lambda: names() >= GONE, PATIENCE_S)
    for alert in firing():
        if alert["labels"]["alertname"] in GONE:
            assert alert["labels"]["cluster"] == "casstat-demo"
            assert alert["labels"].get("node") in (None, ADDRESSES[1])
            assert "error" not in alert["annotations"]["description"]


def _the_node_is_gone_for_good(demo: Demo) -> None:
    """Others know that it is no more, and nobody watches it."""
    nodetool = demo.folder / "node1" / "bin" / "nodetool"
    subprocess.run([nodetool, "assassinate", ADDRESSES[1]], capture_output=True, check=True, timeout=PATIENCE_S)
    eventually(lambda: "CassandraNodesUnreachable" not in names(), PATIENCE_S)
    # The failure detector goes on to call it down, for three days.
    assert float(series("max(cassandra_endpoints_down)")[0]["value"][1]) == 1
    write_configuration(demo.folder / "prometheus", [f"{ADDRESSES[0]}:17199"], "")
    demo.haste()
    eventually(lambda: not names() & (GONE | {"CasstatAgentDown"}), PATIENCE_S)
