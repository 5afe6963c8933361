"""A real node without Jolokia, and Jolokias attached to it by their own launcher."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.attach.launcher import SMALL
from cli.demo.cluster import cache_folder
from cli.demo.java import fetch_cassandra, fetch_jolokia, find_java
from cli.demo.node import JOLOKIA_PORT, Node, NodeSpec

VERSION = "5.0.8"
ADDRESS = "127.0.152.1"
JMX_PORT = 27220
PATIENCE_S = 60


class BareNode:
    """A node without Jolokia, started when first wanted."""

    def __init__(self, home: Path) -> None:
        cache = cache_folder(os.environ)
        self._version = ""
        self._node = Node(
            NodeSpec(
                version=VERSION,
                address=ADDRESS,
                home=home,
                java=find_java(os.environ, VERSION),
                jars=fetch_cassandra(VERSION, cache, say),
                jolokia=None,
                seeds=ADDRESS,
                jmx_port=JMX_PORT,
                cluster="casstat-access",
            )
        )

    def for_jolokia(self, version: str) -> Node:
        """Return the node, to which this version alone may be attached: the first one stays in a JVM for good."""
        if self._version not in ("", version):
            self._node.kill()
        self._version = version
        self._node.start()
        self._node.wait()
        return self._node

    def close(self) -> None:
        """End it: nobody wants its data."""
        self._node.kill()


def jar_of(version: str) -> Path:
    """Return Jolokia's agent of this version."""
    return fetch_jolokia(cache_folder(os.environ), say, version)


def say(_message: str) -> None:
    """Downloads need no progress here: what fails says why."""


def pid_of(node: Node) -> int:
    process = node.process()
    assert process is not None
    return process.pid


@contextmanager
def attached(node: Node, jar: Path, *options: str | Path) -> Iterator[str]:
    """Attach Jolokia to the node while the block runs; yields its URL."""
    launcher: list[str | Path] = [node.spec.java, *SMALL, "-jar", jar]
    where = ["--host", node.spec.address, "--port", str(JOLOKIA_PORT)]
    _launch([*launcher, *where, *options, "start", str(pid_of(node))])
    try:
        protocol = "https" if "https" in options else "http"
        yield f"{protocol}://{node.spec.address}:{JOLOKIA_PORT}/jolokia"
    finally:
        _launch([*launcher, "stop", str(pid_of(node))])


def _launch(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
