"""The demo's companions and the load's own metrics, without a cluster."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.commands.demo import command
from cli.demo.cluster import LocalCluster, first_jmx_port
from cli.demo.java import DemoError, fetch_jolokia
from cli.demo.load_metrics import LoadMetrics
from cli.demo.prometheus import check, write_configuration
from dashboards.rules.files import rule_files
from exporters.prometheus.edges import DEFAULT_S


def test_without_prometheus_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DemoError, match="no prometheus on the PATH: apt-get install prometheus"):
        check()
    done = CliRunner().invoke(command, ["up", "--with", "prometheus", "--dir", str(tmp_path / "demo")])
    assert isinstance(done.exception, DemoError)
    assert not (tmp_path / "demo").exists()


def test_an_unknown_companion_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["up", "--with", "nagios", "--dir", str(tmp_path / "demo")])
    assert done.exit_code == 2
    assert "prometheus" in done.output


def test_prometheus_has_the_rules_and_scrapes_agents_and_load(tmp_path: Path) -> None:
    write_configuration(tmp_path, ["127.0.0.1:17199", "127.0.0.2:17199"], "127.0.0.1:17198")
    assert {path.name: path.read_text() for path in (tmp_path / "rules").iterdir()} == dict(rule_files())
    text = (tmp_path / "prometheus.yml").read_text()
    assert all(target in text for target in ("127.0.0.1:17199", "127.0.0.2:17199", "127.0.0.1:17198", '"casstat"'))
    write_configuration(tmp_path, ["127.0.0.1:17199"], "")
    assert '"load"' not in (tmp_path / "prometheus.yml").read_text()


# It is meant to outlive whoever started it.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_program_beside_the_nodes_runs_once_and_ends_with_them(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, tmp_path)
    cluster.start_program("sleeper", ["sleep", "60"])
    pid = cluster.running()["sleeper"]
    cluster.start_program("sleeper", ["sleep", "60"])
    assert cluster.running() == {"sleeper": pid}
    assert cluster.down() == ["sleeper"]
    assert cluster.running() == {}


def test_errors_are_no_operations_and_have_no_duration() -> None:
    metrics = LoadMetrics("c")
    metrics.done("Read", 0.002)
    metrics.done("Read", 0.3)
    metrics.failed("Read")

    def value(name: str, operation: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(
            f"casstat_load_{name}", {"cluster": "c", "client": "demo", "operation": operation, **labels}
        )

    assert value("operations_total", "Read") == 2
    assert value("errors_total", "Read") == 1
    assert value("errors_total", "Write") == 0
    assert value("operation_duration_seconds_count", "Read") == 2
    assert value("operation_duration_seconds_sum", "Read") == pytest.approx(0.302)
    counts = [value("operation_duration_seconds_bucket", "Read", le=repr(float(edge))) for edge in DEFAULT_S]
    assert counts == [sum(each <= edge for each in (0.002, 0.3)) for edge in DEFAULT_S]


def test_clusters_on_other_addresses_look_for_other_ports() -> None:
    assert first_jmx_port("127.0.0.1") == 7199
    ports = [first_jmx_port(f"127.0.{subnet}.1") for subnet in range(256)]
    assert len(set(ports)) == len(ports)
    assert max(first_jmx_port(address) for address in ("127.255.255.1", "10.0.0.1", "192.168.0.1")) < 32768


def test_maven_refuses_downloads_without_a_matching_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text('#!/bin/sh\necho "$@" > "$0.log"\nmkdir jars\ntouch jars/agent.jar\n')
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert fetch_jolokia(tmp_path / "cache", lambda _: None).name == "agent.jar"
    assert "--strict-checksums" in (tmp_path / "mvn.log").read_text().split()
