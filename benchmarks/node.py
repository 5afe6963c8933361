"""A real node for the benchmarks, and the CPU time of its JVM."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import Node, NodeSpec
from cli.setup.demo.java_runtime import fetch_cassandra, fetch_jolokia, find_java
from cli.setup.demo.load_generator import Load

VERSION = "5.0.8"
ADDRESS = "127.0.160.1"
JMX_PORT = 28199
ANSWERING = ("jolokia-", "HTTP-Dispatcher")


def show_progress(message: str) -> None:
    """Show a message on stderr if stderr is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{message:70}\r")


@contextmanager
def real_node(tables: int, heap: str = "1G") -> Iterator[Node]:
    """Run a node with `tables` tables in the keyspace `bench` for the duration of the block."""
    cache = cache_folder(os.environ)
    with tempfile.TemporaryDirectory(prefix="casstat-bench-") as home:
        spec = NodeSpec(
            version=VERSION,
            address=ADDRESS,
            home=Path(home),
            java=find_java(os.environ),
            jars=fetch_cassandra(VERSION, cache, show_progress),
            jolokia=fetch_jolokia(cache, show_progress),
            seeds=ADDRESS,
            jmx_port=JMX_PORT,
            heap=heap,
        )
        node = Node(spec)
        try:
            node.start()
            node.wait(show_progress)
            Load([ADDRESS], keyspace="bench", tables=tables).close()
            yield node
        finally:
            node.stop()


@contextmanager
def loaded(rate: float, tables: int = 10) -> Iterator[None]:
    """Run a load of `rate` operations per second, spread over `tables` tables, for the duration of the block."""
    command = [
        sys.executable,
        "-m",
        "cli.setup.demo.load_generator",
        ADDRESS,
        "--keyspace",
        "bench",
        "--tables",
        str(tables),
        "--rate",
        str(rate),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        try:
            yield
        finally:
            load.terminate()


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU time that a process has used so far."""
    times = process.cpu_times()
    return times.user + times.system


def answering_s(process: psutil.Process) -> float:
    """Return the CPU time that a node's JVM has used for Jolokia requests.

    Only Jolokia's threads are counted, because the CPU time of the node's other work varies by more than the requests
    use.
    """
    used_ns = 0
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        if (thread / "comm").read_text().startswith(ANSWERING):
            used_ns += int((thread / "schedstat").read_text().split()[0])
    return used_ns / 1e9


def jvm(node: Node) -> psutil.Process:
    """Return the node's process. Raises SystemExit if it has ended."""
    process = node.process()
    if process is None:
        raise SystemExit("the node's process has ended")
    return process
