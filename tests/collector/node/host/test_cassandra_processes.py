"""Cassandra processes on this machine: the settings in their command lines, and the process of a given node."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from collector.node.host.cassandra_processes import (
    DAEMON,
    START_SLACK_S,
    LocalNode,
    NodeFacts,
    agent_url,
    local_nodes,
    local_pid,
    node_of,
    trusted_nodes,
)
from tests.every import every

JAR = "-javaagent:/opt/jolokia-agent-jvm-2.3.0-javaagent.jar"


@every(
    ("options", "expected"),
    [
        ("", "http://127.0.0.1:8778/jolokia"),
        ("=", "http://127.0.0.1:8778/jolokia"),
        ("=port=8779", "http://127.0.0.1:8779/jolokia"),
        ("=host=127.0.0.2,port=8778", "http://127.0.0.2:8778/jolokia"),
        ("=port=9000,host=10.1.2.3", "http://10.1.2.3:9000/jolokia"),
        ("=host=*", "http://127.0.0.1:8778/jolokia"),
        ("=host=0.0.0.0,port=1234", "http://127.0.0.1:1234/jolokia"),
        ("=host=localhost", "http://127.0.0.1:8778/jolokia"),
        ("=host=node1.example", "http://node1.example:8778/jolokia"),
        ("=host=::1", "http://[::1]:8778/jolokia"),
        ("=host=fe80::1,port=8779", "http://[fe80::1]:8779/jolokia"),
        ("=host=[::1],port=8779", "http://[::1]:8779/jolokia"),
        ("=protocol=https", "https://127.0.0.1:8778/jolokia"),
        ("=protocol=https,host=10.0.0.1,port=8443,useSslClientAuthentication=false", "https://10.0.0.1:8443/jolokia"),
        ("=agentContext=/j4p", "http://127.0.0.1:8778/j4p"),
        ("=agentContext=/deep/j4p/,port=1", "http://127.0.0.1:1/deep/j4p"),
        ("=agentContext=j4p", "http://127.0.0.1:8778/j4p"),
        ("=user=a=b,nonsense,port=8780", "http://127.0.0.1:8780/jolokia"),
    ],
)
def test_the_agent_url_is_derived_from_its_options(options: str, expected: str) -> None:
    assert agent_url(["java", "-Xmx1G", f"{JAR}{options}", "org.apache.cassandra.service.CassandraDaemon"]) == expected


@every(
    "command",
    [
        [],
        ["java", "org.apache.cassandra.service.CassandraDaemon"],
        ["java", "-javaagent:/opt/jamm-0.4.0.jar", "-Dx=jolokia.jar"],
        ["java", "-javaagent:/opt/jmx_prometheus_javaagent.jar=9404:/etc/jolokia.jar.yaml"],
        ["java", "-cp", "/opt/jolokia-agent-jvm.jar"],
    ],
)
def test_without_an_agent_there_is_no_url(command: list[str]) -> None:
    assert agent_url(command) == ""


def test_the_agent_jar_may_have_any_name() -> None:
    for name in ("jolokia.jar", "jolokia-jvm-1.7.2.jar", "my_jolokia_agent.jar"):
        assert agent_url([f"-javaagent:lib/{name}=port=1"]) == "http://127.0.0.1:1/jolokia"


STARTED_S = 1_700_000_000
HERE = os.uname().nodename


def local(pid: int, started_s: float = STARTED_S) -> LocalNode:
    return LocalNode(pid, started_s)


@pytest.mark.parametrize(
    ("jvm", "started_s", "nodes", "expected"),
    [
        pytest.param("7@host", STARTED_S, [], None, id="no local process"),
        pytest.param("7@host", STARTED_S, [local(7)], 7, id="pid and start time match"),
        pytest.param("7@host", STARTED_S + 2, [local(8), local(7)], 7, id="equal start times, so the pid decides"),
        pytest.param("1@container", STARTED_S + 1, [local(4242)], 4242, id="a container has its own pids"),
        pytest.param(
            "1@container", STARTED_S, [local(8, STARTED_S - 5), local(9, STARTED_S - 1)], 9, id="the nearest start time"
        ),
        pytest.param("7@elsewhere", STARTED_S + 1000, [local(7)], None, id="the same pid on another machine"),
        pytest.param(f"7@{HERE}", STARTED_S + 1000, [local(7)], 7, id="the clock was set after the start"),
        pytest.param(f"7@{HERE}", STARTED_S + 1000, [local(8)], None, id="neither pid nor start time matches"),
        pytest.param("", 0, [local(7)], None, id="a node without facts"),
        pytest.param("7@host", STARTED_S + round(START_SLACK_S) + 1, [local(8)], None, id="start times too far apart"),
    ],
)
def test_the_process_is_identified_by_start_time_and_pid(
    jvm: str, started_s: int, nodes: list[LocalNode], expected: int | None
) -> None:
    assert local_pid(NodeFacts(jvm=jvm, started_ms=1000 * started_s), nodes) == expected


def test_a_different_program_with_the_same_start_time_is_not_the_node() -> None:
    me = psutil.Process()
    started_s = me.create_time()
    facts = NodeFacts(jvm=f"{me.pid}@{HERE}", started_ms=round(1000 * started_s))
    assert local_pid(facts, [local(me.pid + 1, started_s)]) is None
    assert local_pid(replace(facts, jvm=f"{me.pid}@container"), [local(me.pid + 1, started_s)]) == me.pid + 1


@every("number", ["", "x", "1" * 30, "0", "-1"])
def test_without_a_valid_pid_the_start_time_decides(number: str) -> None:
    facts = NodeFacts(jvm=f"{number}@{HERE}", started_ms=1000 * STARTED_S)
    assert local_pid(facts, [local(8)]) == 8


def node_with(*command: str) -> LocalNode:
    (node,) = trusted_nodes([replace(node_of(7, 1.0, ["java", *command, DAEMON]), uid=0)], {0})
    return node


@every(
    ("argument", "port"),
    [
        ("-Dcassandra.jmx.local.port=7199", 7199),
        ("-Dcassandra.jmx.remote.port=7200", 7200),
        ("-Dcom.sun.management.jmxremote.port=7201", 7201),
        ("-Dcom.sun.management.jmxremote.rmi.port=7199", None),
        ("-Dcassandra.jmx.local.port=", None),
        ("-Dcassandra.jmx.local.port=port", None),
        ("-Dcassandra.native_transport_port=9042", None),
    ],
)
def test_the_jmx_port_comes_from_the_command_line(argument: str, port: int | None) -> None:
    assert node_with(argument).jmx_port == port


def test_the_agent_comes_from_the_command_line() -> None:
    assert node_with(f"{JAR}=port=8779").url == "http://127.0.0.1:8779/jolokia"
    assert node_with().url == ""


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("flag", ["-cp", "-classpath", "--class-path"])
@pytest.mark.parametrize("entries", [["conf"], ["lib/cassandra.jar"], ["bin/../conf", "bin/../lib/a.jar"], ["lib/*"]])
def test_nodetool_is_found_beside_the_nodes_configuration_or_jars(
    flag: str, entries: list[str], tmp_path: Path
) -> None:
    tool = executable(tmp_path / "bin/nodetool")
    class_path = ":".join(f"{tmp_path}/{entry}" for entry in entries)
    match = node_with(flag, class_path).nodetool
    assert match is not None
    assert match.resolve() == tool


def test_a_packaged_nodetool_is_found_beside_its_jars(tmp_path: Path) -> None:
    tool = executable(tmp_path / "usr/share/cassandra/bin/nodetool")
    class_path = f"{tmp_path}/etc/cassandra:{tmp_path}/usr/share/cassandra/lib/a.jar"
    assert node_with("-cp", class_path).nodetool == tool


def test_what_nodetool_loads_is_known(tmp_path: Path) -> None:
    tool = executable(tmp_path / "bin/nodetool")
    options = {f"conf/jvm{java}-clients.options" for java in ("", 8, 11, 17, 21, 25)}
    for name in ("bin/cassandra.in.sh", "conf/cassandra-env.sh", "lib/a.jar", *options):
        executable(tmp_path / name)
    node = node_with("-cp", f"{tmp_path}/conf:{tmp_path}/lib/*:{tmp_path}/nosuch.jar")
    assert node.nodetool == tool
    loaded = {path.relative_to(tmp_path).as_posix() for path in node.nodetool_files()}
    assert loaded == {"conf", "conf/cassandra-env.sh", "lib", "lib/a.jar", "bin/cassandra.in.sh", *options}


def test_a_file_that_is_not_executable_is_not_nodetool(tmp_path: Path) -> None:
    executable(tmp_path / "bin/nodetool").chmod(0o644)
    assert node_with("-cp", f"{tmp_path}/conf").nodetool is None
    (tmp_path / "other/bin/nodetool").mkdir(parents=True)
    assert node_with("-cp", f"{tmp_path}/other/conf").nodetool is None
    assert node_with("-cp", "conf:lib/a.jar").nodetool is None
    assert node_with("-cp").nodetool is None
    assert node_with().nodetool is None


YAML = {
    "a list of lines": ("data_file_directories:\n    - /data1\n    - /data2\n", ["/data1", "/data2"]),
    "an unindented list": ("cluster_name: x\ndata_file_directories:\n- /data\n\nport: 7000\n", ["/data"]),
    "in brackets": ("data_file_directories: [/data1, /data2]\n", ["/data1", "/data2"]),
    "in brackets on several lines": ('data_file_directories: [\n  "/data1",\n  "/data2"\n]\n', ["/data1", "/data2"]),
    "in quotes": ("data_file_directories:\n  - \"/da ta\"\n  - '/d-2'\n", ["/da ta", "/d-2"]),
    "with comments": (
        "data_file_directories: # where\n  # - /old\n  - /data1 # fast\n\n#  - /gone\n  - /data2#2\n",
        ["/data1", "/data2#2"],
    ),
    "Windows line endings": ("data_file_directories:\r\n    - /data\r\nport: 1\r\n", ["/data"]),
    "commented out": ("# data_file_directories:\n#     - /var/lib/cassandra/data\nport: 1\n", []),
    "another directory": ("commitlog_directory: /log\nsaved_caches_directory:\n  - /caches\n", []),
    "a relative path": ("data_file_directories:\n    - data\n", []),
    "nothing": ("", []),
    "an empty list": ("data_file_directories: []\n", []),
    "no list": ("data_file_directories:\nport: 1\n- /x\n", []),
    "in brackets that do not end": ("data_file_directories: [/data\n" * 100_000, []),
    "very many empty lines": ("data_file_directories:" + "\n" * 1_000_000 + "port: 1\n", []),
    "not YAML": ("\0\xff data_file_directories", []),
}


@pytest.mark.parametrize(("text", "expected"), YAML.values(), ids=YAML)
def test_data_directories_come_from_the_configuration(text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/cassandra.yaml").write_bytes(text.encode("latin-1"))
    assert node_with("-cp", f"{tmp_path}/conf:{tmp_path}/lib/a.jar").directories == tuple(map(Path, expected))


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_named_configuration_takes_precedence(prefix: str, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/cassandra.yaml").write_text("data_file_directories: [/beside]\n")
    (tmp_path / "named.yaml").write_text("data_file_directories: [/named]\n")
    match = node_with(f"-Dcassandra.config={prefix}{tmp_path}/named.yaml", "-cp", f"{tmp_path}/conf").directories
    assert match == (Path("/named"),)


def test_without_data_directories_in_the_configuration_the_storage_directory_is_used(tmp_path: Path) -> None:
    assert node_with("-Dcassandra.storagedir=/opt/c/bin/../data").directories == (Path("/opt/c/bin/../data/data"),)
    (tmp_path / "cassandra.yaml").write_text("data_file_directories:\n  - /data\n")
    assert node_with("-Dcassandra.storagedir=/opt", "-cp", str(tmp_path)).directories == (Path("/data"),)
    assert node_with().directories == ()


def test_an_unreadable_configuration_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "cassandra.yaml").mkdir()
    assert node_with("-Dcassandra.config=/nosuch.yaml", "-cp", f"{tmp_path}:/nosuch").directories == ()


@contextmanager
def process(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process with these command-line arguments until the block ends."""
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.kill()


def here(pid: int) -> LocalNode | None:
    return next((node for node in local_nodes() if node.pid == pid), None)


def test_cassandra_processes_are_identified_by_main_class() -> None:
    with process(f"{JAR}=port=8123", "-Dcassandra.jmx.local.port=7123", DAEMON) as cassandra, process("Other") as other:
        node = here(cassandra.pid)
        assert node is not None
        assert (node.url, node.jmx_port) == ("http://127.0.0.1:8123/jolokia", 7123)
        assert here(other.pid) is None


def test_nodes_with_an_agent_come_first() -> None:
    with process(DAEMON) as old, process(DAEMON) as young, process(JAR, DAEMON) as with_agent:
        ours = [node.pid for node in local_nodes() if node.pid in (old.pid, young.pid, with_agent.pid)]
        assert ours[0] == with_agent.pid
        assert set(ours[1:]) == {old.pid, young.pid}


def test_a_zombie_is_not_running() -> None:
    with process(DAEMON) as cassandra:
        node = here(cassandra.pid)
        assert node is not None
        assert node.is_running()
        cassandra.kill()
        os.waitid(os.P_PID, cassandra.pid, os.WEXITED | os.WNOWAIT)
        assert not node.is_running()
    assert not node.is_running()


def test_a_process_is_still_running_after_the_clock_is_set() -> None:
    with process(DAEMON) as cassandra:
        node = here(cassandra.pid)
        assert node is not None
        # Setting the wall clock changes the boot time that the kernel reports, and so the start time.
        assert replace(node, started_s=node.started_s + 1000).is_running()
