"""Snapshots of a real node through Jolokia."""

from collections.abc import Iterator
from contextlib import closing

from cli.demo.demo_node import Node
from collector.catalogue import BEANS
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean_source import MBeanSource
from collector.model.clock import SystemClock, ticks
from collector.model.snapshot import Snapshot
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import Selection


def snapshots(node: Node, selection: Selection) -> Iterator[Snapshot]:
    clock = SystemClock()
    way = MBeanSource(Jolokia(node.spec.jolokia_url), BEANS, selection, clock)
    with closing(NodeSampler(way, selection, NameOverrides(), clock)) as watch:
        assert watch.learn()
        yield from watch.snapshots(ticks(clock, 1.0), 1.0)
