"""A real node without Jolokia, and Jolokia agents attached to it by Jolokia's launcher."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.setup.attach.target_process import SMALL
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import JOLOKIA_PORT, Node
from cli.setup.demo.java_runtime import JOLOKIA, fetch_jolokia
from tests.real.nodes import light, no_progress, spec_of
from tests.real.programs import PATIENCE_S

# One release of each major version in use.
JOLOKIA_VERSIONS = (JOLOKIA, "1.7.2")
VERSION = "5.0.8"
ADDRESS = "127.0.152.1"
JMX_PORT = 27220


class BareNode:
    """A node without Jolokia, started on first use."""

    def __init__(self, home: Path) -> None:
        self._version = ""
        self._node = Node(spec_of(VERSION, ADDRESS, home, JMX_PORT, bare=True, cluster="casstat-access"))

    def for_jolokia(self, version: str) -> Node:
        """Return the node; restart it if it has loaded the classes of another Jolokia version."""
        if self._version not in ("", version):
            self._node.kill()
        self._version = version
        with light():
            self._node.start()
        self._node.wait()
        return self._node

    def close(self) -> None:
        """Kill the node; its data is not needed."""
        self._node.kill()


def jar_of(version: str) -> Path:
    """Return the JAR file of Jolokia's JVM agent in the given version."""
    return fetch_jolokia(cache_folder(os.environ), no_progress, version)


def pid_of(node: Node) -> int:
    process = node.process()
    assert process is not None
    return process.pid


class JolokiaLauncher:
    """Jolokia's own launcher, for options that `casstat attach` does not offer, such as a policy."""

    def __init__(self, java: Path, jar: Path) -> None:
        self._command: list[str | Path] = [java, *SMALL, "-jar", jar]

    @contextmanager
    def within(self, pid: int, port: int, *options: str | Path, host: str = "127.0.0.1") -> Iterator[None]:
        """Attach an agent to a JVM until the `with` block ends."""
        started, output = self._run("--host", host, "--port", str(port), *options, "start", str(pid))
        # The launcher waits only half a second, but a busy JVM may start the agent later.
        late = not started and "Couldn't start agent" in output
        assert started or (late and self._is_attached(pid)), output
        try:
            yield
        finally:
            stopped, output = self._run("stop", str(pid))
            assert stopped, output

    def _is_attached(self, pid: int) -> bool:
        """Wait up to `PATIENCE_S` for an agent in the JVM, and return whether it has started."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            attached, _ = self._run("status", str(pid))
            if attached:
                return True
        return False

    def _run(self, *arguments: str | Path) -> tuple[bool, str]:
        """Run the launcher; return whether it succeeded, and its output."""
        result = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return result.returncode == 0, result.stdout + result.stderr


@contextmanager
def attached(node: Node, jar: Path, *options: str | Path) -> Iterator[str]:
    """Attach Jolokia to the node until the `with` block ends, and yield its URL."""
    address = node.spec.address
    with JolokiaLauncher(node.spec.java, jar).within(pid_of(node), JOLOKIA_PORT, *options, host=address):
        yield f"{'https' if 'https' in options else 'http'}://{address}:{JOLOKIA_PORT}/jolokia"
