"""Cassandra processes on this machine, and the settings in their command lines."""

import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from collector.model.snapshot import SourceError
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import read_text, stat_in
from collector.node.host.trust import NET, listening_users, user_name

DAEMON = "org.apache.cassandra.service.CassandraDaemon"
DEFAULT_URL = "http://127.0.0.1:8778/jolokia"
DEFAULT_DATA = Path("/var/lib/cassandra")
PROC = Path("/proc")
UNKNOWN_ID = -1
# A node's command line is some 10 KB long; another user's may have megabytes.
MAX_COMMAND_BYTES = 1 << 18
MAX_OPTION_CHARS = 4096
# The states of a process that has ended.
ENDED = "ZXx"
# Maximum difference between a process's start times according to the JVM and to the kernel. The JVM's is slightly
# later, and the kernel's shifts when the clock is changed.
START_SLACK_S = 10.0

AGENT = re.compile(r"-javaagent:(?=[^=]*jolokia)[^=]*\.jar(?:=(?P<options>.*))?")
_JMX_PORT = re.compile(r"-D(?:cassandra\.jmx\.(?:local|remote)|com\.sun\.management\.jmxremote)\.port=(\d{1,5})")
_CONFIG = re.compile(r"-Dcassandra\.config=(?:file:(?://)?)?(/.*)")
_STORAGE = re.compile(r"-Dcassandra\.storagedir=(.*)")
# What nodetool includes from the configuration folder: the script, and the options of the Java version that runs it.
_INCLUDED = (
    *("cassandra-env.sh", "logback-tools.xml", "jvm-clients.options"),
    *(f"jvm{java}-clients.options" for java in range(8, 100)),
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_DIRECTORIES = re.compile(r"^data_file_directories:", re.MULTILINE)
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
    """A Cassandra process on this machine, as its command line describes it.

    Any local user can start a process with this command line. Only a node whose user is trusted is given credentials,
    and only its configuration and nodetool are looked for (see `trusted_nodes`).

    url          URL of its Jolokia agent; "" if it has none.
    jmx_port     JMX port; None if the command line does not specify it.
    nodetool     its installation's nodetool; None if there is none next to its configuration or jars.
    directories  data directories; () if they are unknown.
    uid, gid     user and group; UNKNOWN_ID if they are unknown, or if the process was started by one user and runs as
                 another, who then has not chosen its command line.
    inner_pid    PID inside its own PID namespace.
    start_ticks  start time since boot in clock ticks, which does not depend on the clock.
    """

    pid: int
    started_s: float
    url: str = ""
    jmx_port: int | None = None
    nodetool: Path | None = None
    directories: tuple[Path, ...] = ()
    uid: int = UNKNOWN_ID
    gid: int = UNKNOWN_ID
    inner_pid: int | None = None
    command: tuple[str, ...] = field(default=(), repr=False)
    start_ticks: int = field(default=-1, compare=False, repr=False)
    proc: Path = field(default=PROC, compare=False, repr=False)

    @property
    def user(self) -> str:
        """The user's name, or the UID if it has no name on this machine."""
        return "unknown" if self.uid == UNKNOWN_ID else user_name(self.uid)

    def nodetool_files(self) -> list[Path]:
        """Return what the node's nodetool runs or loads: the scripts that it includes, the configuration and the jars.

        A wildcard in the class path stands for the jars in its folder.
        """
        path = _class_path(self.command)
        for folder in [entry.parent for entry in path if entry.name == "*"]:
            path += [folder, *folder.glob("*.jar")]
        scripts = [entry / name for entry in path for name in _INCLUDED if entry.suffix != ".jar"]
        if self.nodetool:
            scripts.append(self.nodetool.with_name("cassandra.in.sh"))
        return [file for file in (*path, *scripts) if os.access(file, os.F_OK)]

    def is_running(self) -> bool:
        """Return whether this process is still running; a new process with the same PID does not count."""
        process = stat_in(self.proc / str(self.pid))
        return process is not None and process.start == self.start_ticks and process.state not in ENDED

    def described(self) -> str:
        """Return the process in words, such as "process 7 of user cassandra (JMX port 7199)"."""
        port = f" (JMX port {self.jmx_port})" if self.jmx_port else ""
        return f"process {self.pid} of user {self.user}{port}"


def local_nodes(proc: Path = PROC) -> list[LocalNode]:
    """Return the processes of all users that look like Cassandra: those with Jolokia first, and older ones first.

    Reads nothing that their command lines name.
    """
    nodes = [node for folder in proc.iterdir() if folder.name.isdigit() and (node := _local_node(folder))]
    return sorted(nodes, key=lambda node: (not node.url, node.started_s))


def _local_node(folder: Path) -> LocalNode | None:
    """Return the Cassandra process whose directory in /proc is `folder`; None if it is not one, or has ended."""
    try:
        command = tuple(read_text(folder / "cmdline", MAX_COMMAND_BYTES).split("\0"))
        if DAEMON not in command:
            return None
        # Read on both sides of the command line: the PID could be reused, or the process could run another program as
        # another user.
        before, began = read_text(folder / "status"), stat_in(folder)
        again = tuple(read_text(folder / "cmdline", MAX_COMMAND_BYTES).split("\0"))
        status, process = read_text(folder / "status"), stat_in(folder)
        btime = float(read_text(folder.parent / "stat").partition("\nbtime ")[2].split()[0])
    except (SourceError, IndexError, ValueError):
        return None
    if process is None or began is None or command != again:
        return None
    uid, gid = _identity(status, folder)
    if began.start != process.start or _identity(before, folder) != (uid, gid):
        uid = gid = UNKNOWN_ID
    node = node_of(int(folder.name), btime + process.start / TICKS_PER_S, command)
    inner = (_field(status, "NSpid") or ["-1"])[-1]
    return replace(node, uid=uid, gid=gid, inner_pid=int(inner), start_ticks=process.start, proc=folder.parent)


def _identity(status: str, folder: Path) -> tuple[int, int]:
    """Return a process's user and group; UNKNOWN_ID if its user may not have chosen its command line."""
    uids, gids = set(_field(status, "Uid")), set(_field(status, "Gid"))
    try:
        # A program such as su runs as root with the arguments of any user.
        is_elevated = bool((folder / "exe").stat().st_mode & (stat.S_ISUID | stat.S_ISGID))
    except OSError:
        # Another user's executable cannot be examined without root's rights.
        is_elevated = False
    if len(uids) != 1 or len(gids) != 1 or is_elevated:
        return UNKNOWN_ID, UNKNOWN_ID
    return int(uids.pop()), int(gids.pop())


def _field(status: str, name: str) -> list[str]:
    """Return the values in a line of /proc/PID/status."""
    return next((line.split()[1:] for line in status.splitlines() if line.startswith(f"{name}:")), [])


def trusted_nodes(nodes: Iterable[LocalNode], users: Collection[int], net: Path = NET) -> list[LocalNode]:
    """Return the nodes of trusted users, with their nodetool and data directories.

    Nodes whose Jolokia or JMX port their user really listens on come first, then those with Jolokia, then older ones.
    """
    trusted = [_with_files(node) for node in nodes if node.uid in users]
    if len(trusted) < 2:
        return trusted
    return sorted(trusted, key=lambda node: (not _listens(node, net), not node.url, node.started_s))


def _listens(node: LocalNode, net: Path) -> bool:
    try:
        jolokia = urlsplit(node.url)
        addresses = [(jolokia.hostname, jolokia.port), ("127.0.0.1", node.jmx_port)]
        return any(host and port and node.uid in listening_users(host, port, net) for host, port in addresses)
    except ValueError:
        # The agent's host is given by name.
        return False


def _with_files(node: LocalNode) -> LocalNode:
    class_path = _class_path(node.command)
    return replace(node, nodetool=_nodetool(class_path), directories=_directories(node.command, class_path))


def node_of(pid: int, started_s: float, command: Sequence[str]) -> LocalNode:
    """Return a Cassandra process with the settings in its command line."""
    options = [word for word in command if word.startswith("-") and len(word) <= MAX_OPTION_CHARS]
    port = next((match[1] for option in options if (match := _JMX_PORT.fullmatch(option))), None)
    return LocalNode(pid, started_s, agent_url(options), int(port) if port else None, command=tuple(command))


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
            listed = _data_directories(read_text(path)) if path.is_file() else ""
        except (OSError, SourceError):
            continue
        if listed:
            return tuple(Path(entry.strip()) for entry in _LISTED.findall(listed) if entry.startswith("/"))
    storage = next((match[1] for argument in command if (match := _STORAGE.fullmatch(argument))), "")
    return (Path(storage, "data"),) if storage else ()


def _data_directories(text: str) -> str:
    """Return the value of data_file_directories in cassandra.yaml, a block list or one in brackets; "" without one.

    Takes time in proportion to the text, which another user has written.
    """
    text = _COMMENT.sub("", text)
    setting = _DIRECTORIES.search(text)
    value = text[setting.end() :].lstrip() if setting else ""
    if value.startswith("["):
        listed, bracket, _ = value.partition("]")
        return listed + bracket if bracket else ""
    return "\n".join(takewhile(lambda line: not line.strip() or line.lstrip().startswith("-"), value.split("\n")))


def agent_url(command: Iterable[str]) -> str:
    """Return the URL of the Jolokia agent in a JVM's command line; "" if there is none."""
    for argument in command:
        if match := AGENT.fullmatch(argument):
            options = dict(part.split("=", 1) for part in (match["options"] or "").split(",") if "=" in part)
            host = options.get("host", "127.0.0.1")
            host = "127.0.0.1" if host in ("*", "0.0.0.0", "localhost") else host  # noqa: S104 - compared, not bound
            host = f"[{host.strip('[]')}]" if ":" in host else host
            context = options.get("agentContext", "/jolokia").strip("/")
            return f"{options.get('protocol', 'http')}://{host}:{options.get('port', '8778')}/{context}"
    return ""


def local_pid(facts: NodeFacts, nodes: Sequence[LocalNode], others: Sequence[LocalNode] = ()) -> int | None:
    """Return the PID of the node on this machine, or None if it runs elsewhere.

    `others` are processes of users that are not trusted. One of them is the node only if none of `nodes` is, and if it
    cannot be confused with a process of another user.
    """
    trusted = _same_node(facts, nodes)
    if trusted:
        return trusted[0].pid
    candidates = _same_node(facts, others)
    return candidates[0].pid if len({node.uid for node in candidates}) == 1 else None


def _same_node(facts: NodeFacts, nodes: Sequence[LocalNode]) -> list[LocalNode]:
    """Return the processes that may be the node, the most likely one first.

    Nodes are matched by start time and PID. If no PID matches, the start time alone suffices, because the PID inside a
    container differs from that on the machine.
    """
    started_s = facts.started_ms / 1000
    number, _, host = facts.jvm.partition("@")
    same_host = host == os.uname().nodename
    near = [node for node in nodes if abs(node.started_s - started_s) < START_SLACK_S]
    if same_pid := [node for node in near if str(node.pid) == number]:
        return same_pid
    if near:
        # `facts` may describe another program with Jolokia that started at about the same time as a node.
        if same_host and _runs_since(number, started_s):
            return []
        return sorted(near, key=lambda node: (str(node.inner_pid) != number, abs(node.started_s - started_s)))
    # The start times may differ because the clock was changed, so the same PID and host name suffice.
    return [node for node in nodes if same_host and str(node.pid) == number]


def _runs_since(number: str, started_s: float) -> bool:
    """Return whether a process with this PID and start time is running on this machine."""
    try:
        return abs(psutil.Process(int(number)).create_time() - started_s) < START_SLACK_S
    except (ValueError, OverflowError, psutil.Error):
        return False
