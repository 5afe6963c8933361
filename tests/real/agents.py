"""A real node without Jolokia, and Jolokias attached to it by their own launcher."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.attach.launcher import SMALL
from cli.demo.demo_cluster import cache_folder
from cli.demo.demo_node import JOLOKIA_PORT, Node
from cli.demo.java_runtime import JOLOKIA, fetch_jolokia
from tests.real.nodes import light, say, spec_of
from tests.real.programs import PATIENCE_S

# Of Jolokia: both lines that are met.
JOLOKIA_VERSIONS = (JOLOKIA, "1.7.2")
VERSION = "5.0.8"
ADDRESS = "127.0.152.1"
JMX_PORT = 27220


class BareNode:
    """A node without Jolokia, started when first wanted."""

    def __init__(self, home: Path) -> None:
        self._version = ""
        self._node = Node(spec_of(VERSION, ADDRESS, home, JMX_PORT, bare=True, cluster="casstat-access"))

    def for_jolokia(self, version: str) -> Node:
        """Return the node, to which this version alone may be attached: the first one stays in a JVM for good."""
        if self._version not in ("", version):
            self._node.kill()
        self._version = version
        with light():
            self._node.start()
        self._node.wait()
        return self._node

    def close(self) -> None:
        """End it: nobody wants its data."""
        self._node.kill()


def jar_of(version: str) -> Path:
    """Return Jolokia's agent of this version."""
    return fetch_jolokia(cache_folder(os.environ), say, version)


def pid_of(node: Node) -> int:
    process = node.process()
    assert process is not None
    return process.pid


class Agents:
    """Jolokia's own launcher: what it is told, a policy for one, is not what `casstat attach` would tell it."""

    def __init__(self, java: Path, jar: Path) -> None:
        self._command: list[str | Path] = [java, *SMALL, "-jar", jar]

    @contextmanager
    def within(self, pid: int, port: int, *options: str | Path, host: str = "127.0.0.1") -> Iterator[None]:
        """Have an agent in a JVM while the block runs."""
        self._run("--host", host, "--port", str(port), *options, "start", str(pid))
        try:
            yield
        finally:
            self._run("stop", str(pid))

    def _run(self, *arguments: str | Path) -> None:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def attached(node: Node, jar: Path, *options: str | Path) -> Iterator[str]:
    """Attach Jolokia to the node while the block runs; yields its URL."""
    where = node.spec.address
    with Agents(node.spec.java, jar).within(pid_of(node), JOLOKIA_PORT, *options, host=where):
        yield f"{'https' if 'https' in options else 'http'}://{where}:{JOLOKIA_PORT}/jolokia"
