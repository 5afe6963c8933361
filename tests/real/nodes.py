"""What the tests' own nodes are made of."""

import os
from pathlib import Path
from typing import Any

from cli.demo.cluster import cache_folder
from cli.demo.java import fetch_cassandra, fetch_jolokia, find_java, has_http_server
from cli.demo.node import NodeSpec


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
