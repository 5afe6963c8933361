"""Cassandra processes on this machine, and the settings in their command lines."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import psutil

from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

DAEMON = "org.apache.cassandra.service.CassandraDaemon"
DEFAULT_URL = "http://127.0.0.1:8778/jolokia"
DEFAULT_DATA = Path("/var/lib/cassandra")
# Maximum difference between a process's start times according to the JVM and to the kernel. The JVM's is slightly
# later, and the kernel's shifts when the clock is changed.
START_SLACK_S = 10.0

_AGENT = re.compile(r"-javaagent:[^=]*jolokia[^=]*\.jar(?:=(?P<options>.*))?")
_JMX_PORT = re.compile(r"-D(?:cassandra\.jmx\.(?:local|remote)|com\.sun\.management\.jmxremote)\.port=(\d{1,5})")
_CONFIG = re.compile(r"-Dcassandra\.config=(?:file:(?://)?)?(/.*)")
_STORAGE = re.compile(r"-Dcassandra\.storagedir=(.*)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
# The data_file_directories setting in cassandra.yaml, written as a block list or in brackets.
_DIRECTORIES = re.compile(r"^data_file_directories:\s*(\[[^\]]*\]|(?:\s*\n\s*-\s*\S.*)+)", re.MULTILINE)
_LISTED = re.compile(r"[^\s\[\],\"'-][^\n,\]\"']*")


@dataclass(frozen=True)
class NodeFacts:
    """Properties of a node: those that it reports, and its process on this machine.

    address      broadcast address.
    directories  data directories.
    jvm          the JVM's name, "PID@HOST", with the PID inside its container.
    started_ms   the JVM's start time, in milliseconds since the epoch.
    pid          PID on this machine; None if the process is not visible.
    is_local     whether the node runs on this machine.
    origin       origin of its counters, as in its scrapes.
    peers        addresses of all nodes in its cluster, including its own.
    """

    address: str = ""
    directories: tuple[Path, ...] = ()
    jvm: str = ""
    started_ms: int = 0
    pid: int | None = None
    is_local: bool = False
    origin: str = ""
    peers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalNode:
    """A Cassandra process on this machine.

    url          URL of its Jolokia agent; "" if it has none.
    jmx_port     JMX port; None if the command line does not specify it.
    nodetool     its installation's nodetool; None if there is none next to its configuration or jars.
    directories  data directories; () if they are unknown.
    process      the process, identified by its start time since boot, which does not depend on the clock.
    """

    pid: int
    started_s: float
    url: str = ""
    jmx_port: int | None = None
    nodetool: Path | None = None
    directories: tuple[Path, ...] = ()
    process: psutil.Process | None = field(default=None, compare=False, repr=False)

    def is_running(self) -> bool:
        """Return whether this process is still running; a new process with the same PID does not count."""
        try:
            return (
                self.process is not None and self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


def local_nodes() -> list[LocalNode]:
    """Return the Cassandra processes on this machine: those with Jolokia first, and older ones before newer ones."""
    nodes = []
    for process in psutil.process_iter(["pid", "cmdline", "create_time"]):
        line = process.info["cmdline"] or []
        if DAEMON in line:
            node = node_of(process.info["pid"], process.info["create_time"], line)
            nodes.append(replace(node, process=process))
    return sorted(nodes, key=lambda node: (not node.url, node.started_s))


def node_of(pid: int, started_s: float, command: Sequence[str]) -> LocalNode:
    """Return a Cassandra process with the settings in its command line."""
    port = next((match[1] for argument in command if (match := _JMX_PORT.fullmatch(argument))), None)
    class_path = _class_path(command)
    return LocalNode(
        pid,
        started_s,
        agent_url(command),
        int(port) if port else None,
        _nodetool(class_path),
        _directories(command, class_path),
    )


def _class_path(command: Sequence[str]) -> list[Path]:
    for flag, value in pairwise(command):
        if flag in ("-cp", "-classpath", "--class-path"):
            return [Path(entry) for entry in value.split(":") if entry.startswith("/")]
    return []


def _nodetool(class_path: Iterable[Path]) -> Path | None:
    """Return the nodetool in the `bin` directory next to the configuration or jars, or None if there is none."""
    for entry in class_path:
        folder = entry.parent if entry.name in ("conf", "lib") else entry.parent.parent
        tool = folder / "bin" / "nodetool"
        if tool.is_file() and os.access(tool, os.X_OK):
            return tool
    return None


def _directories(command: Sequence[str], class_path: Iterable[Path]) -> tuple[Path, ...]:
    configured = [match[1] for argument in command if (match := _CONFIG.fullmatch(argument))]
    for path in (*map(Path, configured), *(entry / "cassandra.yaml" for entry in class_path)):
        try:
            match = _DIRECTORIES.search(_COMMENT.sub("", read_text(path))) if path.is_file() else None
        except (OSError, SourceError):
            continue
        if match:
            return tuple(Path(entry.strip()) for entry in _LISTED.findall(match[1]) if entry.startswith("/"))
    storage = next((match[1] for argument in command if (match := _STORAGE.fullmatch(argument))), "")
    return (Path(storage, "data"),) if storage else ()


def agent_url(command: Iterable[str]) -> str:
    """Return the URL of the Jolokia agent in a JVM's command line; "" if there is none."""
    for argument in command:
        if match := _AGENT.fullmatch(argument):
            options = dict(part.split("=", 1) for part in (match["options"] or "").split(",") if "=" in part)
            host = options.get("host", "127.0.0.1")
            host = "127.0.0.1" if host in ("*", "0.0.0.0", "localhost") else host  # noqa: S104 - compared, not bound
            host = f"[{host.strip('[]')}]" if ":" in host else host
            context = options.get("agentContext", "/jolokia").strip("/")
            return f"{options.get('protocol', 'http')}://{host}:{options.get('port', '8778')}/{context}"
    return ""


def local_pid(facts: NodeFacts, nodes: Sequence[LocalNode]) -> int | None:
    """Return the PID of the node on this machine, or None if it runs elsewhere.

    Nodes are matched by start time and PID. If no PID matches, the start time alone suffices, because the PID inside a
    container differs from that on the machine.
    """
    started_s = facts.started_ms / 1000
    number, _, host = facts.jvm.partition("@")
    same_host = host == os.uname().nodename
    near = [node for node in nodes if abs(node.started_s - started_s) < START_SLACK_S]
    for node in near:
        if str(node.pid) == number:
            return node.pid
    if near:
        # `facts` may describe another program with Jolokia that started at about the same time as a node.
        is_other_program = same_host and _runs_since(number, started_s)
        return None if is_other_program else min(near, key=lambda node: abs(node.started_s - started_s)).pid
    # The start times may differ because the clock was changed, so the same PID and host name suffice.
    return next((node.pid for node in nodes if same_host and str(node.pid) == number), None)


def _runs_since(number: str, started_s: float) -> bool:
    """Return whether a process with this PID and start time is running on this machine."""
    try:
        return abs(psutil.Process(int(number)).create_time() - started_s) < START_SLACK_S
    except (ValueError, OverflowError, psutil.Error):
        return False
