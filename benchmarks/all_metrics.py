"""`python -m benchmarks.all_metrics URL`: read all metrics every second and derive the samples, until killed."""

import sys
from collections import deque

from collector.model.clock import SystemClock, ticks
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import DEFAULT_TABLES, Selection


def main(url: str) -> None:
    """Sample the node at `url` and discard the samples."""
    clock = SystemClock()
    selection = Selection(tables=DEFAULT_TABLES)
    sampler = NodeSampler(MBeanSource(Jolokia(url), BEANS, selection, clock), selection, NameOverrides(), clock)
    sampler.learn()
    deque(sampler.sample_stream().samples(sampler.snapshots(ticks(clock, 1.0), 1.0)), maxlen=0)


if __name__ == "__main__":
    main(sys.argv[1])
