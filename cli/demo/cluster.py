"""A local cluster for people: it outlives the command that starts it, and what it is made of is noted in its folder."""

import importlib.util
import ipaddress
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cli.demo.java import DemoError, fetch_cassandra, fetch_jolokia, find_java, has_http_server
from cli.demo.node import FIRST_JMX_PORT, STOP_TIMEOUT_S, Node, NodeSpec
from cli.demo.process import end, is_free, read_pid_file, write_pid_file

Progress = Callable[[str], None]

NOTES = "cluster.json"
PORTS_OF_A_SUBNET, SUBNETS = 20, 1000
LOAD = "load"


@dataclass(frozen=True)
class Plan:
    """What the cluster is made of: `nodes` nodes on consecutive loopback addresses from `address` on."""

    version: str
    nodes: int
    address: str
    heap: str

    def addresses(self) -> list[str]:
        """Return the nodes' addresses."""
        first = ipaddress.IPv4Address(self.address)
        return [str(first + number) for number in range(self.nodes)]


class LocalCluster:
    """The demo cluster whose files are in `folder`; jars are kept in `cache`."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self._cache = cache

    def plan(self) -> Plan | None:
        """Return what the cluster there is made of, None when there is none."""
        try:
            return Plan(**json.loads((self.folder / NOTES).read_text()))
        except (OSError, TypeError, ValueError):
            return None

    def nodes(self, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Return the cluster's nodes, ready to be started; fetches what is missing."""
        plan = self.plan()
        if plan is None:
            raise DemoError(f"no demo cluster in {self.folder}")
        java = find_java(environ, plan.version)
        jolokia = fetch_jolokia(self._cache, progress) if has_http_server(java) else None
        jars = fetch_cassandra(plan.version, self._cache, progress)
        addresses = plan.addresses()
        ports = itertools.count(first_jmx_port(plan.address))
        jmx_ports = (port for port in ports if is_free("127.0.0.1", port))
        return [
            Node(
                NodeSpec(
                    version=plan.version,
                    address=address,
                    home=self.folder / f"node{number + 1}",
                    java=java,
                    jars=jars,
                    jolokia=jolokia,
                    seeds=addresses[0],
                    jmx_port=next(jmx_ports),
                    heap=plan.heap,
                )
            )
            for number, address in enumerate(addresses)
        ]

    def up(self, plan: Plan, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Start the cluster, one node after the other, and return its nodes when all take clients.

        Raises DemoError; then nothing is left running.
        """
        there = self.plan()
        if there is not None and there != plan and self.running():
            raise DemoError(f"another demo cluster runs in {self.folder}: end it with 'casstat demo down'")
        if there is not None and there != plan:
            self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / NOTES).write_text(json.dumps(asdict(plan)) + "\n")
        try:
            nodes = self.nodes(environ, progress)
            for node in nodes:
                node.start()
                node.wait(progress)
        except BaseException:
            self.down()
            raise
        return nodes

    def start_load(self, rate: float, metrics: str = "") -> None:
        """Start a load of `rate` operations a second that outlives this process; it serves its `metrics` there."""
        if importlib.util.find_spec("cassandra") is None:
            raise DemoError("a load needs the Python driver: pip install 'casstat[demo]'")
        plan = self.plan()
        if plan is None or LOAD in self.running():
            return
        self.counts.unlink(missing_ok=True)
        command = [sys.executable, "-m", "cli.demo.load", *plan.addresses()]
        command += ["--rate", str(rate), "--tables", "3", "--counts", str(self.counts)]
        command += ["--metrics", metrics] if metrics else []
        self.start_program(LOAD, command)

    def start_program(self, name: str, command: Sequence[str]) -> None:
        """Start a program beside the nodes that outlives this process, unless it runs already."""
        if name in self.running():
            return
        with self.log_of(name).open("ab") as log:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        write_pid_file(self.folder / f"{name}.pid", started)

    def log_of(self, name: str) -> Path:
        """Return where a program beside the nodes says what it has to say."""
        return self.folder / f"{name}.log"

    @property
    def counts(self) -> Path:
        """Where the load keeps its counts."""
        return self.folder / "load.json"

    def running(self) -> dict[str, int]:
        """Return the process number of all that runs: "node1" …, and what is beside them, such as "load"."""
        found = {}
        for name, pid_file in (*self._nodes(), *self._programs()):
            if process := read_pid_file(pid_file):
                found[name] = process.pid
        return found

    def down(self) -> list[str]:
        """Stop all that runs, what is beside the nodes first; return what that was."""
        stopped = list(self.running())
        for _, pid_file in (*self._programs(), *self._nodes()):
            if process := read_pid_file(pid_file):
                end(process, STOP_TIMEOUT_S)
            pid_file.unlink(missing_ok=True)
        return stopped

    def _nodes(self) -> list[tuple[str, Path]]:
        return [(path.parent.name, path) for path in sorted(self.folder.glob("node*/pid"))]

    def _programs(self) -> list[tuple[str, Path]]:
        return [(path.stem, path) for path in sorted(self.folder.glob("*.pid"))]

    def remove(self) -> None:
        """Remove all that the cluster wrote, and nothing that is not the cluster's."""
        if self.plan() is not None:
            shutil.rmtree(self.folder)


def first_jmx_port(address: str) -> int:
    """Return from where on a cluster that begins at this address looks for ports that are free.

    JMX listens at 127.0.0.1 whatever the node's address: clusters that are started at once must not find the same.
    """
    subnet = (int(ipaddress.IPv4Address(address)) - int(ipaddress.IPv4Address("127.0.0.1"))) // 256
    return FIRST_JMX_PORT + PORTS_OF_A_SUBNET * (subnet % SUBNETS)


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return where the demo cluster lives by default."""
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "casstat" / "demo"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where fetched jars are kept."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "casstat"
