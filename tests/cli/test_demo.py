"""The demo cluster, its companion programs and its load generator, tested without running Cassandra."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from cli.commands.demo import command
from cli.errors import install_command
from cli.setup.demo.background_process import command_line, end, write_pid_file
from cli.setup.demo.demo_cluster import (
    PLAN_FILE,
    LocalCluster,
    Plan,
    first_jmx_port,
    prometheus_program,
    shown_name,
    state_folder,
    write_configuration,
)
from cli.setup.demo.java_runtime import DemoError, downloaded, fetch_jolokia
from cli.setup.demo.load_generator import CLIENT, LoadResults, load_series
from collector.load_results.client_format import CommandTimes, FormatChoice
from collector.load_results.format_registry import read_file
from dashboards.rules.rule_files import rule_files
from exporters.metrics_page.metric_family import DEFAULT_S


def test_without_prometheus_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DemoError, match=r"prometheus: not found in PATH .*systemctl disable"):
        prometheus_program()
    result = CliRunner().invoke(command, ["up", "--with", "prometheus", "--dir", str(tmp_path / "demo")])
    assert isinstance(result.exception, DemoError)
    assert not (tmp_path / "demo").exists()


def test_without_the_driver_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = CliRunner().invoke(command, ["up", "--load", "300", "--dir", str(tmp_path / "demo")])
    assert str(result.exception) == (
        f"--load: requires Cassandra's Python driver (hint: run '{install_command('cassandra-driver')}')"
    )
    assert not (tmp_path / "demo").exists()


def test_hints_include_the_directory_unless_it_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert LocalCluster(state_folder(os.environ), tmp_path).command("down") == "casstat demo down"
    other = LocalCluster(tmp_path / "my demo", tmp_path)
    assert other.command("down --keep") == f"casstat demo down --keep --dir '{tmp_path}/my demo'"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace downloads and node processes with stubs."""
    monkeypatch.setattr("cli.setup.demo.demo_cluster.find_java", lambda *_: Path("java"))
    monkeypatch.setattr("cli.setup.demo.demo_cluster.has_http_server", lambda _: True)
    monkeypatch.setattr("cli.setup.demo.demo_cluster.fetch_jolokia", lambda *_: Path("jolokia.jar"))
    monkeypatch.setattr("cli.setup.demo.demo_cluster.fetch_cassandra", lambda *_: Path("jars"))
    monkeypatch.setattr("cli.setup.demo.demo_node.Node.start", lambda _: None)
    monkeypatch.setattr("cli.setup.demo.demo_node.Node.wait", lambda *_: None)


PLAN = Plan("5.0.8", 3, "127.0.171.1", "400M")


def test_a_directory_in_which_other_users_can_create_files_is_not_used(tmp_path: Path) -> None:
    for mode in (0o757, 0o1757):
        tmp_path.chmod(mode)
        with pytest.raises(DemoError, match=f"{tmp_path}: not used, because other users can "):
            LocalCluster(tmp_path, tmp_path)


@pytest.mark.usefixtures("parts")
def test_jars_that_other_users_can_change_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "a.jar").touch()
    (tmp_path / "jars" / "a.jar").chmod(0o646)
    monkeypatch.setattr("cli.setup.demo.demo_cluster.fetch_cassandra", lambda *_: tmp_path / "jars")
    # Another cache also helps if a directory above this one is the problem.
    with pytest.raises(DemoError, match=r"not used, because other users can write to .*XDG_CACHE_HOME"):
        LocalCluster(tmp_path / "demo", tmp_path).up(PLAN, {}, lambda _: None)


@pytest.mark.usefixtures("parts")
def test_nodes_keep_their_ports(tmp_path: Path) -> None:
    def ports() -> list[int]:
        return [node.spec.jmx_port for node in LocalCluster(tmp_path / "demo", tmp_path).up(PLAN, {}, lambda _: None)]

    first = ports()
    assert len(set(first)) == PLAN.nodes
    with socket.socket() as other:
        # Starting the cluster again must not change its ports while they are free.
        assert ports() == first
        other.bind(("127.0.0.1", first[1]))
        again = ports()
    assert again[::2] == first[::2]
    assert again[1] not in first
    # The replacement port is kept, even though the original port is free again.
    assert ports() == again


@pytest.mark.usefixtures("parts")
def test_a_plan_written_by_an_earlier_version_without_ports_is_accepted(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, tmp_path)
    cluster.up(PLAN, {}, lambda _: None)
    notes = json.loads((tmp_path / "cluster.json").read_text())
    del notes["jmx_ports"], notes["jolokia"]
    (tmp_path / "cluster.json").write_text(json.dumps(notes))
    assert cluster.plan() == PLAN


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("text", ["", "[1]", "[" * 100_000])
def test_a_damaged_plan_is_that_of_no_cluster(tmp_path: Path, text: str) -> None:
    cluster = LocalCluster(tmp_path / "demo", tmp_path)
    cluster.folder.mkdir()
    (cluster.folder / PLAN_FILE).write_text(text)
    assert cluster.plan() is None


@pytest.mark.usefixtures("parts")
def test_nodes_without_jolokia_have_no_agent(tmp_path: Path) -> None:
    (node,) = LocalCluster(tmp_path, tmp_path).up(replace(PLAN, nodes=1, jolokia=False), {}, lambda _: None)
    assert node.spec.jolokia is None


@pytest.mark.usefixtures("parts")
def test_a_relative_directory_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, ["up", "--address", "127.0.171.1", "--dir", "demo"])
    assert f"nodetool {tmp_path}/demo/node1/bin/nodetool" in result.output
    assert f"casstat demo down --dir {tmp_path}/demo" in result.output


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.usefixtures("parts")
def test_a_load_with_a_different_rate_replaces_the_running_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "python"
    # As the load generator does, it writes its counts once it runs, to the file after --counts.
    program.write_text('#!/bin/sh\nwhile [ "$1" != --counts ]; do shift; done\necho {} > "$2"\nsleep 60\n')
    program.chmod(0o755)
    monkeypatch.setattr("cli.process_setup.sys.executable", str(program))
    folder = tmp_path / "demo"
    cluster = LocalCluster(folder, tmp_path)

    def up(*arguments: str) -> str:
        result = CliRunner().invoke(command, ["up", "--address", "127.0.171.1", "--dir", str(folder), *arguments])
        assert result.exception is None, result.output
        # A new process's command line is empty until the kernel has loaded the program.
        while "load" in cluster.running() and cluster.load_rate() is None:
            pass
        return next((line for line in result.output.splitlines() if line.startswith("load")), "")

    try:
        assert up() == ""
        assert up("--load", "300") == "load  300 operations/s"
        pid = cluster.running()["load"]
        assert up("--load", "300") == up() == "load  300 operations/s, unchanged"
        assert cluster.running()["load"] == pid
        assert up("--load", "500") == "load  500 operations/s, previously 300"
        assert cluster.load_rate() == 500
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    finally:
        cluster.down()


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.usefixtures("parts")
def test_a_load_that_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.process_setup.sys.executable", "/bin/false")
    folder = tmp_path / "demo"
    result = CliRunner().invoke(command, ["up", "--address", "127.0.171.1", "--dir", str(folder), "--load", "300"])
    assert str(result.exception) == f"load: exited during start-up (hint: see {folder}/load.log)"


@pytest.mark.usefixtures("parts")
def test_options_that_are_not_given_are_those_of_the_existing_cluster(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "demo", tmp_path)
    cluster.up(PLAN, {}, lambda _: None)
    (cluster.folder / "data").touch()
    assert CliRunner().invoke(command, ["up", "--dir", str(cluster.folder)]).exception is None
    assert (cluster.plan(), (cluster.folder / "data").exists()) == (PLAN, True)
    assert CliRunner().invoke(command, ["up", "--nodes", "2", "--dir", str(cluster.folder)]).exception is None
    assert (cluster.plan(), (cluster.folder / "data").exists()) == (replace(PLAN, nodes=2), False)


@pytest.fixture
def running_nodes(parts: None, tmp_path: Path) -> Iterator[LocalCluster]:
    """Yield a cluster of three nodes, whose processes only sleep."""
    del parts
    cluster = LocalCluster(tmp_path / "demo", tmp_path)
    cluster.up(PLAN, {}, lambda _: None)
    children = []
    for number in range(1, 4):
        folder = cluster.folder / f"node{number}"
        folder.mkdir()
        children.append(subprocess.Popen(["/bin/sleep", "60"]))
        write_pid_file(folder / "pid", children[-1])
    yield cluster
    for child in children:
        child.kill()
        child.wait()


@pytest.mark.parametrize("name", ["node2", "2", "127.0.171.2"])
def test_one_node_stops_and_starts(name: str, running_nodes: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr("cli.setup.demo.demo_node.Node.start", lambda node: started.append(node.spec.address))

    def demo(*arguments: str) -> str:
        result = CliRunner().invoke(command, [*arguments, "--dir", str(running_nodes.folder)])
        assert result.exception is None, result.output
        return result.output

    assert demo("stop", name).startswith("stopped node2; start it with: casstat demo start node2 --dir ")
    assert set(running_nodes.running()) == {"node1", "node3"}
    assert demo("stop", name) == "node2 is not running\n"
    assert demo("start", name).startswith("127.0.171.2  Cassandra 5.0.8  ")
    assert started == ["127.0.171.2"]
    assert demo("start", "node1") == "node1 is already running\n"


def test_an_unknown_node_or_other_settings_of_a_running_cluster_are_explained(running_nodes: LocalCluster) -> None:
    folder = str(running_nodes.folder)
    unknown = CliRunner().invoke(command, ["stop", "node4", "--dir", folder])
    assert str(unknown.exception) == "node4: no such node in the demo cluster (hint: use node1, node2, node3)"
    other = CliRunner().invoke(command, ["up", "--nodes", "2", "--dir", folder])
    assert "the running demo cluster has nodes 3, not 2 (hint: to replace it, run 'casstat demo down" in str(
        other.exception
    )
    absent = CliRunner().invoke(command, ["start", "node1", "--dir", f"{folder}/none"])
    assert "no demo cluster (hint: run 'casstat demo up" in str(absent.exception)


def test_agents_are_named_after_their_node_in_messages() -> None:
    assert [shown_name(name) for name in ("agent-node1", "load")] == ["the agent of node1", "load"]


def test_the_operations_of_the_load_are_a_result_that_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    results = LoadResults(path)
    for _ in range(3):
        results.done("Read", 0.0015)
    results.done("Write", 0.25)
    results.failed("Write", TimeoutError())
    results.close()
    result = read_file(path, FormatChoice(), CommandTimes(0.0, 1.0))
    read, write = (operation.summary for operation in result.operations)
    assert read is not None
    assert read.response is not None
    assert read.completed == 3
    assert read.response.percentile_s(50) == pytest.approx(0.0015, rel=0.001)
    assert write is not None
    assert (write.completed, write.errors) == (1, {"TimeoutError": 1})


def test_a_load_without_a_cluster_is_an_error_in_one_line(tmp_path: Path) -> None:
    arguments = ["load", "--rate", "10", "--duration", "5s", "--dir", str(tmp_path / "demo")]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, DemoError)
    assert str(result.exception).startswith("no demo cluster is running (hint: run 'casstat demo up --dir ")


def test_an_unknown_companion_is_a_usage_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["up", "--with", "nagios", "--dir", str(tmp_path / "demo")])
    assert result.exit_code == 2
    assert "prometheus" in result.output


def test_prometheus_loads_the_rules_and_scrapes_the_agents_and_the_load_generator(tmp_path: Path) -> None:
    write_configuration(tmp_path, ["127.0.0.1:17199", "127.0.0.2:17199"], "127.0.0.1:17198")
    assert {path.name: path.read_text() for path in (tmp_path / "rules").iterdir()} == dict(rule_files())
    text = (tmp_path / "prometheus.yml").read_text()
    assert all(target in text for target in ("127.0.0.1:17199", "127.0.0.2:17199", "127.0.0.1:17198", '"casstat"'))
    write_configuration(tmp_path, ["127.0.0.1:17199"], "")
    assert '"load"' not in (tmp_path / "prometheus.yml").read_text()


# The companion program is meant to outlive the process that started it.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_companion_program_starts_once_and_stops_with_the_cluster(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, tmp_path)
    cluster.start_program("sleeper", ["sleep", "60"])
    pid = cluster.running()["sleeper"]
    cluster.start_program("sleeper", ["sleep", "60"])
    assert cluster.running() == {"sleeper": pid}
    assert cluster.down() == ["sleeper"]
    assert cluster.running() == {}


def test_failed_operations_count_only_as_errors() -> None:
    series = load_series("c")
    series.completed(CLIENT, "Read", 0.002)
    series.completed(CLIENT, "Read", 0.3)
    series.failed(CLIENT, "Read")

    def value(name: str, operation: str, **labels: str) -> float | None:
        return series.registry.get_sample_value(
            f"casstat_load_{name}", {"cluster": "c", "client": "demo", "operation": operation, **labels}
        )

    response = {"latency": "response"}
    assert value("operations_total", "Read") == 2
    assert value("errors_total", "Read", error="") == 1
    assert value("errors_total", "Write", error="") == 0
    assert value("operation_duration_seconds_count", "Read", **response) == 2
    assert value("operation_duration_seconds_sum", "Read", **response) == pytest.approx(0.302)
    counts = [value("operation_duration_seconds_bucket", "Read", le=str(bound_s), **response) for bound_s in DEFAULT_S]
    assert counts == [sum(latency_s <= bound_s for latency_s in (0.002, 0.3)) for bound_s in DEFAULT_S]


def test_clusters_on_different_addresses_have_different_first_ports() -> None:
    assert first_jmx_port("127.0.0.1") == 7199
    ports = [first_jmx_port(f"127.0.{subnet}.1") for subnet in range(256)]
    assert len(set(ports)) == len(ports)
    assert max(first_jmx_port(address) for address in ("127.255.255.1", "10.0.0.1", "192.168.0.1")) < 32768


def test_maven_verifies_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text('#!/bin/sh\necho "$@" > "$0.log"\nmkdir jars\ntouch jars/agent.jar\n')
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert fetch_jolokia(tmp_path / "cache", lambda _: None).name == "agent.jar"
    assert "--strict-checksums" in (tmp_path / "mvn.log").read_text().split()


def test_download_progress_is_parsed_from_mavens_log() -> None:
    log = """[INFO] Downloading from central: a.pom
[INFO] Downloaded from central: a.pom (900 B at 2.2 kB/s)
[INFO] Downloaded from central: a.jar (683 kB at 1.8 MB/s)
[INFO] Downloaded from central: b.jar (12 MB at 1.8 MB/s)
[INFO] Downloading from central: c.jar
"""
    files, size_mb = downloaded(log)
    assert files == 3
    assert size_mb == pytest.approx(12.6839)


def test_end_returns_when_the_process_is_a_zombie() -> None:
    # A process remains a zombie if its parent does not wait for it. For example, `demo up --with prometheus` does not
    # wait for the nodes that `demo down` stops.
    script = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        end(child, 5)
        assert child.status() == psutil.STATUS_ZOMBIE
        parent.kill()


def test_a_zombie_counts_as_exited(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, tmp_path / "cache")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        (tmp_path / "node1").mkdir()
        for name in ("load.pid", "node1/pid"):
            write_pid_file(tmp_path / name, child)
        assert cluster.running().keys() == {"load", "node1"}
        child.kill()
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert cluster.running() == {}
        assert cluster.load_rate() is None
        # The process may exit after it has been found.
        assert command_line(psutil.Process(child.pid)) == []
        assert cluster.down() == []


def test_a_directory_that_others_can_change_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo").chmod(0o777)
    for action in ("up", "down", "status"):
        result = CliRunner().invoke(command, [action, "--dir", str(tmp_path / "demo")])
        assert "not used, because other users can write to" in str(result.exception), action
