"""Check the verdicts of `casstat capacity` on rates that load generators achieve exactly, and on an overloaded node.

1. A load generator achieves exactly its rate and ends at CALLS different fractions of a second, with results by
   operation and by second: each step must pass with the exact rate. The node is simulated.
2. An open loop (`open_loop.py`) loads a real node with one native transport thread, in steps of 15 s: while a rate that
   was confirmed ran, the backlog of operations, counted from the load generator's own times, must not have grown.

Takes about a quarter of an hour. `ARGS=exact` or `ARGS=real` runs only one part.
"""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acceptance import open_loop
from acceptance.client_hosts import PLAN, cluster
from acceptance.exact_load import CALLS
from exporters.results.capacity.search import CONFIRMATION
from tests.faults import swept_node
from tests.real.programs import program

NODE = replace(PLAN, nodes=1)
MAX_DIFFERENCE = 0.002
JOURNAL_S = 1800
"""How long the simulated node has data."""
THIRDS = 3
MAX_GROWTH = 0.01
"""The backlog may grow by this share of the operations that are due in a third of a step."""


def searched(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Run a search; return its steps."""
    arguments = ["-o", str(folder), "-q", "--no-report", "--settle", "1s", *words]
    subprocess.run(program("capacity", *arguments), check=False)
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    steps: list[dict[str, Any]] = content["steps"]
    return steps


def exact_problems(folder: Path) -> Iterator[str]:
    """Yield the steps that do not pass."""
    steps: list[dict[str, Any]] = []
    swept_node.AFTER_S = JOURNAL_S
    for form in ("operations", "seconds"):
        with swept_node.swept_node(folder / f"journal-{form}") as node:
            result = f"{folder}/{form}-{{rate}}.csv"
            command = [sys.executable, "-m", "acceptance.exact_load", "{rate}", "{duration}", result, form]
            options = ["--rate", "4..2048", "--step", "12s", "--confirm", "12s", "--warm-up", "3s"]
            options += ["--objective", "client_errors_per_s < 1", "--client", result, node.address]
            steps += searched(folder / form, *options, "--", *command, str(folder / "calls"))
    passed = 0
    for step in steps[:CALLS]:
        achieved = step["client_ops_per_s"]
        is_exact = achieved is not None and abs(achieved / step["rate"] - 1) <= MAX_DIFFERENCE
        passed += step["is_met"] and step["is_certain"] and is_exact
        if not (step["is_met"] and step["is_certain"] and is_exact):
            yield f"{step['run']}: {achieved} of {step['rate']} operations per second: {step['reason']}"
    print(f"exact rates: {passed} of {len(steps[:CALLS])} steps pass", flush=True)
    if len(steps) < CALLS:
        yield f"only {len(steps)} of {CALLS} steps"


def backlog(file: Path, rate: float, begin_s: float, end_s: float) -> Sequence[float]:
    """Return the operations that are due but not completed, ten times a second in a time range."""
    with file.open() as lines:
        rows = [(float(row["time_s"]), float(row["response_ms"]) / 1000) for row in csv.DictReader(lines)]
    ends_s = sorted(end_s for end_s, _ in rows)
    first_due_s = min(end_s - response_s for end_s, response_s in rows)
    times_s = [begin_s + index / 10 for index in range(int(10 * (end_s - begin_s)))]
    completed, waiting = 0, []
    for time_s in times_s:
        while completed < len(ends_s) and ends_s[completed] <= time_s:
            completed += 1
        waiting.append(rate * (time_s - first_due_s) - completed)
    return waiting


def overload_problems(folder: Path) -> Iterator[str]:
    """Yield the confirmed rates whose backlog grew."""
    os.environ["JAVA_TOOL_OPTIONS"] = (
        "-Dcassandra.config.allow_system_properties=true -Dcassandra.settings.native_transport_max_threads=1"
    )
    with cluster(folder, NODE):
        open_loop.prepare(NODE.address)
        result = f"{folder}/open-{{rate}}.csv"
        command = [sys.executable, "-m", "acceptance.open_loop", NODE.address, "{rate}", "{duration}", result]
        options = ["--rate", "50..3200", "--step", "15s", "--confirm", "15s", "--warm-up", "5s", "--max-time", "7m"]
        options += ["--objective", "error_share < 0.01", "--objective", "client_p50_ms < 5000", "--client", result]
        steps = searched(folder / "search", *options, *NODE.addresses(), "--", *command)
    confirmed = 0
    print((folder / "search" / "results.md").read_text(), flush=True)
    # The file of a rate is that of its last step.
    for step in {step["rate"]: step for step in steps}.values():
        run = json.loads((folder / "search" / step["run"] / "run.json").read_text())
        phase = next(phase for phase in run["phases"] if phase["measured"])
        end_s = phase["begin_s"] + step["length_s"]
        waiting = backlog(Path(result.replace("{rate}", f"{step['rate']:g}")), step["rate"], phase["begin_s"], end_s)
        third = len(waiting) // THIRDS
        growth = min(waiting[-third:]) - max(waiting[:third])
        print(
            f"{step['purpose']} at {step['rate']:g}/s, {'met' if step['is_met'] else 'not met'}: backlog"
            f" {min(waiting[:third]):.0f} to {max(waiting[:third]):.0f} in the first third,"
            f" {min(waiting[-third:]):.0f} to {max(waiting[-third:]):.0f} in the last",
            flush=True,
        )
        if step["purpose"] == CONFIRMATION and step["is_met"] and step["is_certain"]:
            confirmed += 1
            if growth > MAX_GROWTH * step["rate"] * step["length_s"] / THIRDS:
                yield f"the backlog grew by {growth:.0f} operations at {step['rate']:g}/s, which was confirmed"
    if not confirmed:
        yield "no rate was confirmed"
    if all(step["is_met"] for step in steps):
        yield "no rate overloads the node"


def main() -> int:
    """Run the parts that the arguments name, or both; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parts = {"exact": exact_problems, "real": overload_problems}
    problems = []
    for name in sys.argv[1:] or parts:
        with TemporaryDirectory() as folder:
            problems += list(parts[name](Path(folder)))
    for problem in problems:
        print(f"DEFECT: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
