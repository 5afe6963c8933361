"""The running demo cluster, alongside which further programs such as Prometheus can be started."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.setup.demo.demo_cluster import LocalCluster, Progress, shown_name
from cli.setup.demo.demo_node import NodeSpec
from cli.setup.demo.java_runtime import DemoError

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
        self.wait(name, is_ready)

    def wait(self, name: str, is_ready: Callable[[], bool], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until a program is ready. Raises DemoError if it exits or is not ready in time."""
        shown, hint = shown_name(name), f"(hint: see {self.cluster.log_of(name)})"
        ends_s = time.monotonic() + timeout_s
        while not is_ready():
            self.progress(f"starting {shown}")
            if name not in self.cluster.running():
                raise DemoError(f"{shown}: exited during start-up {hint}")
            if time.monotonic() > ends_s:
                raise DemoError(f"{shown}: not ready after {timeout_s:g} s {hint}")
            time.sleep(POLL_S)
