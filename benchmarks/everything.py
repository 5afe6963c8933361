"""`python -m benchmarks.everything URL`: read the whole catalogue every second and derive the samples, until ended."""

import sys
from collections import deque

from collector.catalogue import BEANS
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean_source import MBeanSource
from collector.model.clock import SystemClock, ticks
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import DEFAULT_TABLES, Selection


def main(url: str) -> None:
    """Sample and forget."""
    clock = SystemClock()
    selection = Selection(tables=DEFAULT_TABLES)
    watch = NodeSampler(MBeanSource(Jolokia(url), BEANS, selection, clock), selection, NameOverrides(), clock)
    watch.learn()
    deque(watch.samples(ticks(clock, 1.0), 1.0), maxlen=0)


if __name__ == "__main__":
    main(sys.argv[1])
