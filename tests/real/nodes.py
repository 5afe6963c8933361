"""What the tests' own nodes are made of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.demo.demo_cluster import cache_folder
from cli.demo.demo_node import NodeSpec
from cli.demo.java_runtime import fetch_cassandra, fetch_jolokia, find_java, has_http_server

# A node that compiles less is there in half the time.
QUICK = "-XX:TieredStopAtLevel=1"
# Else a node writes its schema to disk after each table that is created, which takes most of the time.
QUICK_SCHEMA = "-Dcassandra.test.flush_local_schema_changes=false"
# A node under load has threads that look for work every 60 µs, which takes most of a CPU; so they do every millisecond.
SLACK_NS = 1_000_000


@contextmanager
def light(*options: str) -> Iterator[None]:
    """Let nodes that are started in the block leave the machine to the others; more options are for their JVM."""
    slack = Path("/proc/self/timerslack_ns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", " ".join([QUICK, *options]))
        slack.write_text(str(SLACK_NS))
        try:
            yield
        finally:
            # What it was at first.
            slack.write_text("0")


def say(_message: str) -> None:
    """Downloads and starts need no progress here: what fails says why."""


def spec_of(version: str, address: str, home: Path, jmx_port: int, *, bare: bool = False, **more: Any) -> NodeSpec:
    """Return a node of one's own, with a Jolokia where its Java can have one, unless it is to be `bare`."""
    cache = cache_folder(os.environ)
    java = find_java(os.environ, version)
    return NodeSpec(
        version=version,
        address=address,
        home=home,
        java=java,
        jars=fetch_cassandra(version, cache, say),
        jolokia=None if bare or not has_http_server(java) else fetch_jolokia(cache, say),
        seeds=address,
        jmx_port=jmx_port,
        **more,
    )
