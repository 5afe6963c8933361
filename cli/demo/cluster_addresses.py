"""The cluster as those see it who are started beside it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.demo.demo_cluster import LocalCluster, Progress
from cli.demo.demo_node import NodeSpec
from cli.demo.java_runtime import DemoError

START_TIMEOUT_S = 60.0
POLL_S = 0.1


@dataclass(frozen=True)
class ClusterAddresses:
    """The cluster and its nodes; `load_metrics` is where its load tells Prometheus of itself, "" without a load."""

    cluster: LocalCluster
    nodes: Sequence[NodeSpec]
    progress: Progress
    load_metrics: str = ""

    def start(self, name: str, command: Sequence[str], answers: Callable[[], bool]) -> None:
        """Start a program that goes on when this one ends, and wait until it `answers`. Raises DemoError."""
        self.cluster.start_program(name, command)
        ends_s = time.monotonic() + START_TIMEOUT_S
        while not answers():
            self.progress(f"starting {name}")
            if name not in self.cluster.running():
                raise DemoError(f"{name} ended while starting: see {self.cluster.log_of(name)}")
            if time.monotonic() > ends_s:
                raise DemoError(f"{name} does not answer: see {self.cluster.log_of(name)}")
            time.sleep(POLL_S)
