"""The Cassandra processes of this machine: which there are, and what their command lines tell."""

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
# A JVM's own idea of its start comes a little after the kernel's, and the kernel's moves with the clock.
START_SLACK_S = 10.0

_AGENT = re.compile(r"-javaagent:[^=]*jolokia[^=]*\.jar(?:=(?P<options>.*))?")
_JMX_PORT = re.compile(r"-D(?:cassandra\.jmx\.(?:local|remote)|com\.sun\.management\.jmxremote)\.port=(\d{1,5})")
_CONFIG = re.compile(r"-Dcassandra\.config=(?:file:(?://)?)?(/.*)")
_STORAGE = re.compile(r"-Dcassandra\.storagedir=(.*)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
# One of data_file_directories in cassandra.yaml, in a list of lines or in brackets.
_DIRECTORIES = re.compile(r"^data_file_directories:\s*(\[[^\]]*\]|(?:\s*\n\s*-\s*\S.*)+)", re.MULTILINE)
_LISTED = re.compile(r"[^\s\[\],\"'-][^\n,\]\"']*")


@dataclass(frozen=True)
class NodeFacts:
    """What a node says of itself.

    address      its own, as it announces it.
    directories  of its data.
    jvm          its process as it sees itself, "PID@HOST".
    started_ms   that JVM's start, milliseconds since the epoch.
    pid          that process as this machine sees it; None when it is not seen here.
    here         whether it runs on this machine.
    origin       what its counters count from, as its scrapes say it.
    peers        the addresses of all nodes of its cluster that it knows, its own too.
    """

    address: str = ""
    directories: tuple[Path, ...] = ()
    jvm: str = ""
    started_ms: int = 0
    pid: int | None = None
    here: bool = False
    origin: str = ""
    peers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocalNode:
    """A Cassandra process on this machine.

    url          where its Jolokia answers, "" when it was given none.
    jmx_port     where its JMX answers, None when its command line does not say.
    nodetool     the one that came with it, None when there is none beside its jars.
    directories  of its data, so far as its configuration can be read.
    process      itself: its start is the kernel's, which no setting of the clock moves.
    """

    pid: int
    started_s: float
    url: str = ""
    jmx_port: int | None = None
    nodetool: Path | None = None
    directories: tuple[Path, ...] = ()
    process: psutil.Process | None = field(default=None, compare=False, repr=False)

    def is_running(self) -> bool:
        """Return whether this very process still runs."""
        try:
            return (
                self.process is not None and self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False


def local_nodes() -> list[LocalNode]:
    """Return the Cassandra processes on this machine, those with a Jolokia first, then the oldest first."""
    nodes = []
    for process in psutil.process_iter(["pid", "cmdline", "create_time"]):
        line = process.info["cmdline"] or []
        if DAEMON in line:
            node = node_of(process.info["pid"], process.info["create_time"], line)
            nodes.append(replace(node, process=process))
    return sorted(nodes, key=lambda node: (not node.url, node.started_s))


def node_of(pid: int, started_s: float, command: Sequence[str]) -> LocalNode:
    """Return what a Cassandra process' command line tells."""
    port = next((match[1] for argument in command if (match := _JMX_PORT.fullmatch(argument))), None)
    places = _class_path(command)
    return LocalNode(
        pid,
        started_s,
        agent_url(command),
        int(port) if port else None,
        _nodetool(places),
        _directories(command, places),
    )


def _class_path(command: Sequence[str]) -> list[Path]:
    for flag, value in pairwise(command):
        if flag in ("-cp", "-classpath", "--class-path"):
            return [Path(entry) for entry in value.split(":") if entry.startswith("/")]
    return []


def _nodetool(class_path: Iterable[Path]) -> Path | None:
    """Return the nodetool in the `bin` beside the folder of the configuration or of the jars."""
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
            found = _DIRECTORIES.search(_COMMENT.sub("", read_text(path))) if path.is_file() else None
        except (OSError, SourceError):
            continue
        if found:
            return tuple(Path(place.strip()) for place in _LISTED.findall(found[1]) if place.startswith("/"))
    storage = next((match[1] for argument in command if (match := _STORAGE.fullmatch(argument))), "")
    return (Path(storage, "data"),) if storage else ()


def agent_url(command: Iterable[str]) -> str:
    """Return the URL of the Jolokia agent that a JVM's command line loads, "" without one."""
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
    """Return which of this machine's Cassandra processes the facts are about, or None when it runs elsewhere.

    A container's own process number is not the machine's, so the start decides where the number does not.
    """
    started_s = facts.started_ms / 1000
    number, _, host = facts.jvm.partition("@")
    same_host = host == os.uname().nodename
    near = [node for node in nodes if abs(node.started_s - started_s) < START_SLACK_S]
    for node in near:
        if str(node.pid) == number:
            return node.pid
    if near:
        # Another program that speaks Jolokia may have started just when a node did.
        another = same_host and _runs_since(number, started_s)
        return None if another else min(near, key=lambda node: abs(node.started_s - started_s)).pid
    # The clock may have been set since: then the number alone must do, where the name of the host fits it.
    return next((node.pid for node in nodes if same_host and str(node.pid) == number), None)


def _runs_since(number: str, started_s: float) -> bool:
    """Return whether a process of this number runs here that started then."""
    try:
        return abs(psutil.Process(int(number)).create_time() - started_s) < START_SLACK_S
    except (ValueError, OverflowError, psutil.Error):
        return False
