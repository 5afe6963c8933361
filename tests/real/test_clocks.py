"""Agents with wrong clocks yield the same merged rows as agents with correct clocks on the same nodes."""

import csv
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path

from cli.setup.demo.demo_node import Node
from collector.runs.run_file import read_run
from tests.faults.agents import RunningAgent
from tests.real.programs import PATIENCE_S, output, prepare, program

FAKETIME = "libfaketime.so.1"
OFFSETS_S = (0.4, -3.0)
RATE, LOAD_S, IDLE_S = 300, 8, 4


def agent(node: Node, journal: Path, offset_s: float) -> RunningAgent:
    """Return an agent whose clock is ahead by `offset_s`; its monotonic clock is correct."""
    environ = {"LD_PRELOAD": str(library()), "FAKETIME": f"{offset_s:+}", "DONT_FAKE_MONOTONIC": "1"}
    options = ("--jolokia", node.spec.jolokia_url)
    return RunningAgent(journal, *options, **environ if offset_s else {}).wait_until_serving()


def library() -> Path:
    return next(Path("/usr/lib").glob(f"*/faketime/{FAKETIME}"))


def record(run: Path, agents: Sequence[RunningAgent], command: Sequence[str]) -> list[str]:
    """Return the command line that records a run on the agents."""
    addresses = [agent.base for agent in agents]
    return program("record", *addresses, "--quiet", "--cool-down", f"{IDLE_S}s", "-o", run, "--", *command)


def test_wrong_clocks_are_corrected(three_nodes: list[Node], tmp_path: Path) -> None:
    nodes = three_nodes[: len(OFFSETS_S)]
    prepare(nodes[0])
    addresses = " ".join(node.spec.address for node in nodes)
    # The load begins and ends within the run, so rows that are shifted in time would differ.
    load = (
        f"{sys.executable} -m cli.setup.demo.load_generator {addresses} --only-these --rate {RATE} --seconds {LOAD_S}"
    )
    command = ("sh", "-c", f"sleep {IDLE_S}; {load} > /dev/null")
    with ExitStack() as stack:
        right, wrong = (
            [
                stack.enter_context(agent(node, tmp_path / kind / node.spec.address, factor * offset_s))
                for node, offset_s in zip(nodes, OFFSETS_S, strict=True)
            ]
            for kind, factor in (("right", 0), ("wrong", 1))
        )
        runs = tmp_path / "run-right", tmp_path / "run-wrong"
        both = record(runs[0], right, record(runs[1], wrong, command))
        done = subprocess.run(both, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    for recorded, offset_s in zip(read_run(runs[1]).nodes, OFFSETS_S, strict=True):
        assert len(recorded.clocks) == 2
        for clock in recorded.clocks:
            assert abs(clock.offset_s - offset_s) <= clock.error_s
    by_right, by_wrong = map(cumulative_reads, runs)
    for node in nodes:
        expected, actual = by_right[node.spec.address], by_wrong[node.spec.address]
        times_s = sorted(expected.keys() & actual.keys())
        tick = max(
            after - before for before, after in zip(expected.values(), list(expected.values())[1:], strict=False)
        )
        assert len(times_s) > LOAD_S
        assert expected[times_s[-1]] == actual[times_s[-1]] > 0
        assert max(abs(expected[time_s] - actual[time_s]) for time_s in times_s) <= tick


def cumulative_reads(run: Path) -> dict[str, dict[float, float]]:
    """Return the number of reads from the beginning of a run to the end of each row, keyed by node and time."""
    output("merge", run, "-i", "1", "-o", run / "seconds")
    with (run / "seconds" / "rows.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["reads"]]
    return {
        node: dict(
            zip(
                (float(row["time"]) for row in rows if row["node"] == node),
                accumulate(float(row["reads"]) for row in rows if row["node"] == node),
                strict=True,
            )
        )
        for node in {row["node"] for row in rows}
    }
