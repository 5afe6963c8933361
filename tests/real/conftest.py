"""Real nodes, started on first use: one for each supported Cassandra version, and a cluster of three."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.setup.demo.demo_cluster import LocalCluster, Plan, cache_folder
from cli.setup.demo.demo_node import Node
from tests.real.nodes import light, no_progress, spec_of
from tests.real.programs import prepare, session

VERSIONS = {"5.0.8": "127.0.150", "4.1.9": "127.0.141", "4.0.17": "127.0.140", "3.11.19": "127.0.131"}
# The Java installation used for Cassandra 3.11 lacks the HTTP server module that Jolokia needs.
WITH_JOLOKIA = [version for version in VERSIONS if not version.startswith("3.")]
FIRST_JMX_PORT = 27199
BESIDE = "beside"
CLUSTER = Plan("5.0.8", 3, "127.0.172.1", "400M")

StartNode = Callable[[str], Node]
StartNodes = Callable[[], list[Node]]


@pytest.fixture(scope="session")
def start_node(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[StartNode]:
    """Return a function that returns a running node of the given version."""
    nodes: dict[str, Node] = {}
    # Tests marked `beside` run at the same time as the others, and use their own nodes.
    number = 2 if pytestconfig.getoption("markexpr") == BESIDE else 1

    def start(version: str) -> Node:
        if version not in nodes:
            jmx_port = FIRST_JMX_PORT + number * len(VERSIONS) + list(VERSIONS).index(version)
            home = tmp_path_factory.mktemp(f"node-{version}")
            nodes[version] = Node(spec_of(version, f"{VERSIONS[version]}.{number}", home, jmx_port))
        with light():
            nodes[version].start()
        nodes[version].wait(no_progress)
        return nodes[version]

    yield start
    for node in nodes.values():
        # The data is not needed, and a clean shutdown takes seconds.
        node.kill()


@pytest.fixture(scope="session")
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartNodes]:
    """Return a function that returns the three running nodes of a cluster, each with a copy of all data."""
    cluster = LocalCluster(tmp_path_factory.mktemp("three") / "cluster", cache_folder(os.environ))
    nodes: list[Node] = []

    def start() -> list[Node]:
        with light():
            for node in nodes:
                node.start()
                node.wait(no_progress)
            if not nodes:
                nodes.extend(cluster.up(CLUSTER, os.environ, no_progress))
                _create_keyspace()
                prepare(nodes[0])
        return nodes

    yield start
    for node in nodes:
        node.kill()


def _create_keyspace() -> None:
    # If the load generator created the keyspace, its replication factor would depend on how many nodes had joined.
    with session(CLUSTER.address) as driver:
        copies = f"{{'class': 'SimpleStrategy', 'replication_factor': {CLUSTER.nodes}}}"
        driver.execute(f"CREATE KEYSPACE demo WITH replication = {copies}")


@pytest.fixture
def three_nodes(start_cluster: StartNodes) -> list[Node]:
    """Return the cluster's nodes, all running."""
    return start_cluster()


@pytest.fixture(params=WITH_JOLOKIA)
def jolokia_node(request: pytest.FixtureRequest, start_node: StartNode) -> Node:
    """Return a running node; the test runs once for each version whose Java supports Jolokia."""
    return start_node(request.param)


@pytest.fixture(params=list(VERSIONS))
def any_node(request: pytest.FixtureRequest, start_node: StartNode) -> Node:
    """Return a running node; the test runs once for each version, whether or not its Java supports Jolokia."""
    return start_node(request.param)


@pytest.fixture
def node(start_node: StartNode) -> Node:
    """Return a running node of the newest version."""
    return start_node("5.0.8")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.real)
            # The first test may have to download Cassandra.
            item.add_marker(pytest.mark.timeout(1500))
    # The cluster is started last, so that it takes no CPU time from the other tests.
    items.sort(key=lambda item: "start_cluster" in getattr(item, "fixturenames", ()))
