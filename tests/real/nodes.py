"""Specifications and JVM options for the nodes that tests start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import NodeSpec
from cli.setup.demo.java_runtime import fetch_cassandra, fetch_jolokia, find_java, has_http_server

# With less JIT compilation, a node starts in half the time.
FAST_START = "-XX:TieredStopAtLevel=1"
# Without this option, a node flushes its schema after each CREATE TABLE, which takes most of the statement's time.
FAST_SCHEMA = "-Dcassandra.test.flush_local_schema_changes=false"
# A loaded node's threads poll every 60 µs, which uses most of a CPU. With this timer slack, they poll every
# millisecond.
SLACK_NS = 1_000_000


@contextmanager
def light(*options: str) -> Iterator[None]:
    """Within the block, nodes are started with settings that save CPU time, and with additional JVM options."""
    slack = Path("/proc/self/timerslack_ns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join([FAST_START, *options]))
        slack.write_text(str(SLACK_NS))
        try:
            yield
        finally:
            # Writing 0 restores the default.
            slack.write_text("0")


def no_progress(_message: str) -> None:
    """Ignore the progress messages of downloads and node starts."""


def spec_of(version: str, address: str, home: Path, jmx_port: int, *, bare: bool = False, **more: Any) -> NodeSpec:
    """Return the specification of a node, with Jolokia if its Java supports it and the node is not `bare`."""
    cache = cache_folder(os.environ)
    java = find_java(os.environ, version)
    return NodeSpec(
        version=version,
        address=address,
        home=home,
        java=java,
        jars=fetch_cassandra(version, cache, no_progress),
        jolokia=None if bare or not has_http_server(java) else fetch_jolokia(cache, no_progress),
        seeds=address,
        jmx_port=jmx_port,
        **more,
    )
