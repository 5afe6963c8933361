"""Takes snapshots of a real node through Jolokia."""

from collections.abc import Iterable, Iterator
from contextlib import closing

from cli.setup.demo.demo_node import Node
from collector.model.clock import SystemClock, ticks
from collector.model.snapshot import Snapshot
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection


def complete(snapshots: Iterable[Snapshot]) -> Iterator[Snapshot]:
    """Yield the snapshots in which every source was read; a busy node may answer too late."""
    return (snapshot for snapshot in snapshots if not any(scrape.problem for scrape in snapshot.scrapes))


def snapshots(node: Node, selection: Selection) -> Iterator[Snapshot]:
    """Yield complete snapshots of a node, at least about a second apart."""
    clock = SystemClock()
    source = MBeanSource(Jolokia(node.spec.jolokia_url), BEANS, selection, clock)
    with closing(NodeSampler(source, selection, NameOverrides(), clock)) as sampler:
        assert sampler.learn()
        yield from complete(sampler.snapshots(ticks(clock, 1.0), 1.0))
