"""A run with one node and two phases, during which a load generator could have run."""

from dataclasses import replace
from pathlib import Path

from collector.runs.run import ClientHost, Run, RunCommand, RunCondition, RunNode, RunPhase
from collector.runs.run_file import write_run
from tests.collector.merge.recorded_nodes import busy, record

BEGIN_S, LENGTH_S = 1_795_245_174.442, 60.0
"""The times of the first and last sample of the capture `latte-read-3node.json`."""


def run_in(
    folder: Path,
    begin_s: float = BEGIN_S,
    client_hosts: tuple[ClientHost, ...] = (),
    conditions: tuple[RunCondition, ...] = (),
    command: RunCommand | None = None,
) -> Path:
    """Write a run with one node and two phases, and return its directory; its command ends a second before it."""
    record(folder / "nodes" / "n1", busy("n1", 70, begin_s=begin_s - 5))
    end_s = begin_s + LENGTH_S + 3
    phases = (
        RunPhase("warm-up", begin_s, begin_s + 10.5, measured=False),
        RunPhase("first", begin_s + 10.5, begin_s + 30.5),
        RunPhase("second", begin_s + 30.5, end_s),
    )
    node = RunNode("n1", "http://n1", "nodes/n1", 70, interval_s=1.0)
    command = command or RunCommand(("latte", "run"), begin_s, end_s - 1, 0)
    run = Run("load", begin_s, end_s, "0.1", {}, (node,), command, phases, warm_up_s=10.5)
    write_run(folder, replace(run, client_hosts=client_hosts, conditions=conditions))
    return folder
