"""Specification and JVM options of the nodes that tests start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.demo.demo_cluster import cache_folder
from cli.demo.demo_node import NodeSpec
from cli.demo.java_runtime import fetch_cassandra, fetch_jolokia, find_java, has_http_server

# With less compilation a node starts in half the time.
FAST_START = "-XX:TieredStopAtLevel=1"
# Without it, a node flushes its schema after each created table, which takes most of the time.
FAST_SCHEMA = "-Dcassandra.test.flush_local_schema_changes=false"
# Threads of a loaded node poll every 60 µs, which takes most of a CPU; with this timer slack, every millisecond.
SLACK_NS = 1_000_000


@contextmanager
def light(*options: str) -> Iterator[None]:
    """Start nodes in this block with low CPU use, and with further JVM options."""
    slack = Path("/proc/self/timerslack_ns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join([FAST_START, *options]))
        slack.write_text(str(SLACK_NS))
        try:
            yield
        finally:
            # 0 restores the default.
            slack.write_text("0")


def no_progress(_message: str) -> None:
    """Ignore progress messages of downloads and starts."""


def spec_of(version: str, address: str, home: Path, jmx_port: int, *, bare: bool = False, **more: Any) -> NodeSpec:
    """Return the specification of a node, with Jolokia if its Java supports it and it is not `bare`."""
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
