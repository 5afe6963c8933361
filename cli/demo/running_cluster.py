"""The running demo cluster, alongside which further programs such as Prometheus can be started."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.demo.demo_cluster import LocalCluster, Progress
from cli.demo.demo_node import NodeSpec
from cli.demo.java_runtime import DemoError

START_TIMEOUT_S = 60.0
POLL_S = 0.1


@dataclass(frozen=True)
class RunningCluster:
    """The cluster and its nodes.

    load_metrics  address of the load generator's metrics endpoint, or "" without a load.
    """

    cluster: LocalCluster
    nodes: Sequence[NodeSpec]
    progress: Progress
    load_metrics: str = ""

    def start(self, name: str, command: Sequence[str], is_ready: Callable[[], bool]) -> None:
        """Start a program that outlives this process, and wait until it is ready. Raises DemoError."""
        self.cluster.start_program(name, command)
        ends_s = time.monotonic() + START_TIMEOUT_S
        while not is_ready():
            self.progress(f"starting {name}")
            if name not in self.cluster.running():
                raise DemoError(f"{name}: exited during start-up (hint: see {self.cluster.log_of(name)})")
            if time.monotonic() > ends_s:
                raise DemoError(
                    f"{name}: not ready after {START_TIMEOUT_S:g} s (hint: see {self.cluster.log_of(name)})"
                )
            time.sleep(POLL_S)
