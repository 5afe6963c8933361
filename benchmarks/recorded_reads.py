"""`python -m benchmarks.recorded_reads URL`: read what `casstat record URL` reads, every second, until killed."""

import sys
import threading
from collections import deque
from pathlib import Path

from benchmarks.all_metrics import main
from cli.record.clients.local_client_host import SELECTION
from cli.run_folder import command_variable
from collector.model.clock import SystemClock, ticks
from collector.node.host.busy_processes import BusyProcesses
from collector.node.node_sampler import NameOverrides, NodeSampler


def sample_client_host() -> None:
    """Sample this machine as a client host and discard the samples."""
    clock = SystemClock()
    processes = BusyProcesses(clock, command_variable(Path.cwd()))
    sampler = NodeSampler(None, SELECTION, NameOverrides(), clock, extra=[processes])
    deque(sampler.sample_stream().samples(sampler.snapshots(ticks(clock, 1.0), 1.0)), maxlen=0)


if __name__ == "__main__":
    threading.Thread(target=sample_client_host, daemon=True).start()
    main(sys.argv[1])
