"""A local cluster for people: it outlives the command that starts it, and what it is made of is noted in its folder."""

import importlib.util
import ipaddress
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cli.demo.background_process import end, is_free, read_pid_file, write_pid_file
from cli.demo.demo_node import FIRST_JMX_PORT, JOLOKIA_PORT, STOP_TIMEOUT_S, Node, NodeSpec
from cli.demo.java_runtime import DemoError, fetch_cassandra, fetch_jolokia, find_java, has_http_server
from cli.install_hint import install_command

Progress = Callable[[str], None]

NOTES = "cluster.json"
PORTS_OF_A_SUBNET, SUBNETS = 20, 1000
LOAD = "load"
RATE = "--rate"


@dataclass(frozen=True)
class Plan:
    """What the cluster is made of: `nodes` nodes on consecutive loopback addresses from `address` on.

    jmx_ports  of the nodes, chosen at the first start and kept for the next ones.
    """

    version: str
    nodes: int
    address: str
    heap: str
    jolokia: bool = True
    jmx_ports: tuple[int, ...] = field(default=(), compare=False)

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
            plan = Plan(**json.loads((self.folder / NOTES).read_text()))
            return replace(plan, jmx_ports=tuple(plan.jmx_ports))
        except (OSError, TypeError, ValueError):
            return None

    def _write(self, plan: Plan) -> None:
        (self.folder / NOTES).write_text(json.dumps(asdict(plan)) + "\n")

    def nodes(self, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Return the cluster's nodes, ready to be started; fetches what is missing."""
        plan = self.plan()
        if plan is None:
            raise DemoError(f"no demo cluster in {self.folder}")
        java = find_java(environ, plan.version)
        has_jolokia = plan.jolokia and has_http_server(java)
        jolokia = fetch_jolokia(self._cache, progress) if has_jolokia else None
        jars = fetch_cassandra(plan.version, self._cache, progress)
        addresses = plan.addresses()
        jmx_ports = self._jmx_ports(plan)
        self._write(replace(plan, jmx_ports=jmx_ports))
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
                    jmx_port=jmx_ports[number],
                    heap=plan.heap,
                )
            )
            for number, address in enumerate(addresses)
        ]

    def _jmx_ports(self, plan: Plan) -> tuple[int, ...]:
        """Return a port for each node: the one it had, unless another program has taken it."""
        running = self.running()
        chosen: list[int] = []
        for number in range(plan.nodes):
            had = plan.jmx_ports[number : number + 1]
            if not had or not (f"node{number + 1}" in running or is_free("127.0.0.1", had[0])):
                ports = itertools.count(first_jmx_port(plan.address))
                taken = {*chosen, *plan.jmx_ports}
                had = (next(port for port in ports if port not in taken and is_free("127.0.0.1", port)),)
            chosen += had
        return tuple(chosen)

    def up(self, plan: Plan, environ: Mapping[str, str], progress: Progress) -> list[Node]:
        """Start the cluster, one node after the other, and return its nodes when all take clients.

        Raises DemoError; then nothing is left running.
        """
        there = self.plan()
        if there is not None and there != plan and self.running():
            raise DemoError(f"another demo cluster runs in {self.folder}: end it with '{self.command('down')}'")
        if there is not None and there != plan:
            self.remove()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(there if there == plan else plan)
        try:
            nodes = self.nodes(environ, progress)
            for node in nodes:
                node.start()
                node.wait(progress)
        except BaseException:
            self.down()
            raise
        return nodes

    def command(self, action: str) -> str:
        """Return the command line that does `action` with this cluster."""
        folder = "" if self.folder == state_folder(os.environ) else f" --dir {shlex.quote(str(self.folder))}"
        return f"casstat demo {action}{folder}"

    def attach_command(self, node: Node, progress: Progress) -> str:
        """Return the command line that brings Jolokia into a node that runs without it; "" where its Java cannot."""
        process = node.process()
        if process is None or not has_http_server(node.spec.java):
            return ""
        jar = shlex.quote(str(fetch_jolokia(self._cache, progress)))
        return f"casstat attach --jar {jar} --listen {node.spec.address}:{JOLOKIA_PORT} {process.pid}"

    def load_rate(self) -> float | None:
        """Return the rate of the load that runs, operations per second; None without one."""
        process = read_pid_file(self._pid_file(LOAD))
        command = process.cmdline() if process else []
        return float(command[command.index(RATE) + 1]) if RATE in command else None

    def start_load(self, rate: float, metrics: str = "") -> None:
        """Start a load of `rate` operations per second that outlives this process; it serves its `metrics` there.

        A load that runs already is replaced unless it is the same.
        """
        plan = self.plan()
        if plan is None:
            return
        arguments = ["-m", "cli.demo.load_generator", *plan.addresses()]
        arguments += [RATE, str(rate), "--tables", "3", "--counts", str(self.counts)]
        arguments += ["--metrics", metrics] if metrics else []
        before = read_pid_file(self._pid_file(LOAD))
        if before is not None:
            if before.cmdline()[-len(arguments) :] == arguments:
                return
            end(before, STOP_TIMEOUT_S)
        self.counts.unlink(missing_ok=True)
        self.start_program(LOAD, [sys.executable, *arguments])

    def start_program(self, name: str, command: Sequence[str]) -> None:
        """Start a program beside the nodes that outlives this process, unless it runs already."""
        if name in self.running():
            return
        with self.log_of(name).open("ab") as log:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        write_pid_file(self._pid_file(name), started)

    def _pid_file(self, name: str) -> Path:
        return self.folder / f"{name}.pid"

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


def require_driver() -> None:
    """Raise DemoError when the load's Python driver is missing."""
    if importlib.util.find_spec("cassandra") is None:
        raise DemoError(f"--load needs Cassandra's Python driver: {install_command('cassandra-driver')}")


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
