"""Tests that take minutes but mostly wait, and therefore run alongside other tests.

CASSTAT_SOAK_MIN is the duration of the soak test in minutes, with one fault per minute. If it is not set, every fault
occurs once, and both the faults and the recovery times are shorter.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.setup.demo.demo_node import Node
from tests.faults.conftest import fake, plain_environment
from tests.real.nodes import light, spec_of
from tests.soak.pace import FAULTS, Pace

__all__ = ["fake", "plain_environment"]

MINUTES = int(os.environ.get("CASSTAT_SOAK_MIN", "0"))
PACE = Pace(MINUTES, 12.0, 48.0) if MINUTES else Pace(len(FAULTS), 6.0, 14.0)
# Each test process needs its own addresses, distinct from those of tests/real, which runs at the same time.
NUMBER = 1 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
VERSION, ADDRESS, JMX_PORT = "5.0.8", f"127.0.159.{NUMBER}", 27289 + NUMBER


@pytest.fixture
def pace() -> Pace:
    return PACE


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Yield a real node, started on first use."""
    node = Node(spec_of(VERSION, ADDRESS, tmp_path_factory.mktemp("node"), JMX_PORT))
    try:
        with light():
            node.start()
        node.wait()
        yield node
    finally:
        node.kill()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # The first test may have to download Cassandra.
            item.add_marker(pytest.mark.timeout(PACE.total_s + 1500))
