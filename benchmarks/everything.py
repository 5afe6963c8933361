"""`python -m benchmarks.everything URL`: read the whole catalogue every second and derive the samples, until ended."""

import sys
from collections import deque

from collector.clock import SystemClock, ticks
from collector.jmx import Selection
from collector.jolokia import Jolokia
from collector.watch import Given, Watch


def main(url: str) -> None:
    """Sample and forget."""
    clock = SystemClock()
    watch = Watch(Jolokia(url), Selection(), Given(), clock)
    watch.learn()
    deque(watch.samples(ticks(clock, 1.0), 1.0), maxlen=0)


if __name__ == "__main__":
    main(sys.argv[1])
