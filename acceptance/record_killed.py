"""Kill `casstat record` with SIGKILL at random moments, and recover each run with `casstat fetch --recover`.

A demo cluster of two nodes runs under load. One node has an agent; for the other, `record` starts a private agent.
After each kill, no process of the run may remain, and the run must be recoverable with every tick until the kill. Once
all leases have expired, the agent must have no active run. Takes about ten minutes.
"""

import json
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from collector.agents.agent_client import LEASE_S
from collector.runs.run import Run
from collector.runs.run_file import is_run, read_run

ADDRESS = "127.0.187.1"
KILLS, SEED = 20, 1
# The command runs for COMMAND_S seconds. `record` is killed within MAX_KILL_S seconds: before the command begins, while
# the command runs, or while `record` completes the run.
COMMAND_S, MAX_KILL_S = 6, 12.0
# How long processes may take to end, and how old the last tick may be when `record` is killed.
END_S, TICK_S = 15.0, 2.5


class Result(NamedTuple):
    """The outcome of a run: its state when the recorder was killed, the number of ticks per node, and the defects."""

    state: str
    ticks: tuple[int, ...]
    defects: tuple[str, ...]


@contextmanager
def demo(folder: Path) -> Iterator[tuple[str, str]]:
    """Run the demo cluster and an agent; yield the addresses of that agent and of the other node's Jolokia."""
    command = [sys.executable, "-m", "cli", "demo", "up", "--nodes", "2", "--load", "200", "--heap", "400M"]
    subprocess.run([*command, "--address", ADDRESS, "--dir", str(folder)], check=True)
    first, second = (f"http://127.0.187.{number}:8778/jolokia" for number in (1, 2))
    agent = [sys.executable, "-m", "cli", "agent", "--jolokia", first, "--listen", f"{ADDRESS}:17199"]
    try:
        with subprocess.Popen([*agent, "--journal-dir", str(folder / "agent")]) as process:
            yield f"{ADDRESS}:17199", second
            process.terminate()
    finally:
        subprocess.run([sys.executable, "-m", "cli", "demo", "down", "--dir", str(folder)], check=True)


def killed(nodes: tuple[str, str], folder: Path, after_s: float) -> float:
    """Start a recorder and kill it after `after_s` seconds; return the time of the kill."""
    script = f"for i in $(seq {5 * COMMAND_S}); do echo step $i; sleep 0.2; done"
    command = [sys.executable, "-m", "cli", "record", *nodes, "-o", str(folder), "--mark-regex", "step .0"]
    with subprocess.Popen([*command, "--", "sh", "-c", script], stdout=subprocess.DEVNULL) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.kill()
        return time.time()


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of the processes that have a run's directory in their arguments or environment."""
    lines = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = [*process.cmdline(), process.environ().get("CASSTAT_RUN_DIR", "")]
            if process.status() != psutil.STATUS_ZOMBIE and any(str(folder) in word for word in words):
                lines.append(" ".join(process.cmdline()))
    return lines


def state_of(folder: Path) -> tuple[str, Run | None]:
    """Return the state in which the recorder left a run, and the run if there is one."""
    if not is_run(folder):
        return "not begun", None
    run = read_run(folder)
    if run.end_s is None:
        return "command running", run
    return ("fetching" if any(not node.folder for node in run.nodes) else "finished"), run


def checked(folder: Path, killed_s: float) -> Result:
    """Recover a run, and check for leftover processes and missing data."""
    ends_s = time.monotonic() + END_S
    while (left := processes_of(folder)) and time.monotonic() < ends_s:
        time.sleep(0.1)
    defects = [f"process left: {line}" for line in left]
    state, before = state_of(folder)
    if before is None:
        return Result(state, (), tuple(defects))
    command = [sys.executable, "-m", "cli", "fetch", "--recover", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    run = read_run(folder)
    until_s = killed_s if before.end_s is None else before.end_s
    is_long = until_s - run.begin_s > TICK_S
    # Recovering a run that is not longer than TICK_S may fail, because it may have no ticks.
    if (is_long and done.returncode) or "Traceback" in done.stderr:
        defects.append(f"fetch --recover: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    for node in run.nodes:
        ends_at_s = node.end_s or run.begin_s
        if is_long and until_s - ends_at_s > TICK_S:
            defects.append(f"{node.name}: last tick {until_s - ends_at_s:.1f} s before the end")
    if is_long and not (folder / "summary.json").exists():
        defects.append("no summary")
    return Result(state, tuple(node.ticks for node in run.nodes), tuple(defects))


def active_runs(agent: str) -> list[str]:
    """Return the names of the runs that are active on an agent."""
    with urllib.request.urlopen(f"http://{agent}/api/v1/runs?active=true", timeout=10) as response:
        return [run["name"] for run in json.load(response)]


def wait_for_leases(agent: str) -> tuple[float, list[str]]:
    """Wait until no run is active, but no longer than leases last; return the waiting time and the active runs."""
    began_s = time.monotonic()
    while (active := active_runs(agent)) and time.monotonic() - began_s < LEASE_S + END_S:
        time.sleep(0.5)
    return time.monotonic() - began_s, active


def main() -> None:
    """Kill and recover; exit with status 1 if there is any defect."""
    moments = random.Random(SEED)  # noqa: S311 - not for secrets
    failed = 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with TemporaryDirectory(prefix="casstat-killed-") as home, demo(Path(home) / "demo") as nodes:
        for number in range(KILLS):
            folder = Path(home) / f"run{number}"
            after_s = moments.uniform(0.2, MAX_KILL_S)
            result = checked(folder, killed(nodes, folder, after_s))
            failed += bool(result.defects)
            ticks = " and ".join(map(str, result.ticks)) or "no"
            print(f"killed after {after_s:4.1f} s: {result.state}, {ticks} ticks; {'; '.join(result.defects) or 'ok'}")
        waited_s, active = wait_for_leases(nodes[0])
        print(f"active runs {waited_s:.0f} s after the last kill: {len(active)}")
    print(f"{KILLS} kills, {failed} with defects")
    raise SystemExit(bool(failed or active))


if __name__ == "__main__":
    main()
