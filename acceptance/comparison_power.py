"""Measure how often `casstat compare` finds a true difference of about 5% in throughput between real runs.

A node runs on processor 0 with an agent; the load generator, latte, runs on processor 1 with a fixed concurrency. The
connection has a round-trip time of ROUND_TRIP_MS, as between sites. Without it, the node's processor is always busy,
and the throughput varies by 3% from run to run, so three runs per side cannot show a difference of 5%. In the runs of
side B, one of 20 operations reads twice, so B completes 20/21 as many operations per second as A if reads take equally
long. Each side has RUNS runs, in the order A B B A. Then 20 comparisons of three runs per side are drawn from them, and
at least 80% must find a lower throughput of B. Comparisons between runs of one side show the false alarms, which are
printed without a limit because they reuse the same few runs. The two halves of a longer run are also compared and
printed. Before the first run, the node is under load until its throughput is steady, because it compiles its code.
With OUTPUT in the environment, the runs are copied to that directory. Takes about twenty minutes.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

from acceptance.client_hosts import PLAN as CLUSTER_PLAN
from acceptance.client_hosts import WORKLOAD, cluster, latte
from acceptance.delay_proxy import delay_proxy
from acceptance.saturation import GENERATOR_CPU, TASKSET, pin
from cli.recordings.views import completed
from cli.runs.compare_program import comparison_of
from cli.runs.run_views import run_views
from cli.setup.demo.demo_node import NATIVE_PORT
from collector.runs.run import RunPhase
from collector.runs.run_file import read_run, write_run
from exporters.results.comparison.comparison import Comparison
from tests.real.programs import program

RUNS, PER_SIDE, TRIES, MIN_FOUND = 6, 3, 20, 0.8
CONCURRENCY, DURATION_S, LONG_S, WARM_UP_S = 24, 45, 215, 8
PLAN = replace(CLUSTER_PLAN, nodes=1)
# The node announces the proxy's address to its clients.
PROXY, ROUND_TRIP_MS = "127.0.189.101", 30.0
JAVA_OPTIONS = f"-Dcassandra.config.allow_system_properties=true -Dcassandra.settings.broadcast_rpc_address={PROXY}"
# The node is first warmed up on both processors, then on one, until the throughputs of STEADY_PARTS consecutive parts
# are within STEADY_SPREAD of each other.
FAST_WARM_UP_S, PART_S, STEADY_PARTS, STEADY_SPREAD, MAX_PARTS = 60, 20, 4, 0.01, 45
COLUMN = "client_ops_per_s"
SLOWER = """
pub async fn slower(ctx, i) {
    ctx.execute_prepared("read", [latte::hash(i) % ROWS]).await?;
    if i % 20 == 0 { ctx.execute_prepared("read", [latte::hash(i + 1) % ROWS]).await? }
}
"""
FUNCTIONS = {"A": "run", "B": "slower"}


def recorded(folder: Path, workload: Path, function: str, duration_s: int) -> Path:
    """Record a run; return its directory."""
    result = folder.with_suffix(".json")
    command = generator(workload, function, duration_s, "--output", str(result))
    options = ["-o", str(folder), "--warm-up", f"{WARM_UP_S}s", "--no-report", "--client", str(result)]
    words = program("record", *PLAN.addresses(), *options, "--", *command)
    subprocess.run(words, check=True, cwd=folder.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    values = json.loads((folder / "summary.json").read_text())[-1]["values"]
    print(f"{folder.name}: {values[COLUMN]} operations/s, p99 {values['client_p99_ms']} ms", flush=True)
    return folder


def generator(workload: Path, function: str, duration_s: int, *options: str) -> list[str]:
    """Return the command line of the load generator."""
    command = [TASKSET, "-c", GENERATOR_CPU, latte(), "run", str(workload), PROXY, "-t", "1", "--quiet"]
    return [*command, "-p", str(CONCURRENCY), "-f", function, "--duration", f"{duration_s}s", *options]


def wait_until_steady(folder: Path, workload: Path) -> None:
    """Keep the node under load until its throughput is steady. Raises RuntimeError after MAX_PARTS parts."""
    rates: list[float] = []
    result = folder / "warm-up.json"
    while len(rates) < MAX_PARTS:
        command = generator(workload, "slower", PART_S, "--output", str(result))
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        rates.append(json.loads(result.read_text())["result"]["cycle_throughput"]["value"])
        result.unlink()
        print(f"warm-up: {rates[-1]:.0f} operations/s", flush=True)
        last = rates[-STEADY_PARTS:]
        if len(last) == STEADY_PARTS and max(last) / min(last) - 1 < STEADY_SPREAD:
            return
    raise RuntimeError(f"the throughput is not steady after {MAX_PARTS} parts")


def throughput(folder: Path) -> float:
    """Return a run's throughput after the warm-up."""
    return float(json.loads((folder / "summary.json").read_text())[-1]["values"][COLUMN])


def compared(a: Sequence[Path], b: Sequence[Path]) -> Comparison:
    """Return the comparison of the throughput."""
    report = completed(comparison_of([run_views(folder) for folder in a], [run_views(folder) for folder in b]))
    (comparison,) = [comparison for comparison in report.comparisons if comparison.column == COLUMN]
    return comparison


def described(comparison: Comparison) -> str:
    """Return a comparison's difference, interval and p-value as text."""
    difference = comparison.difference
    if difference.relative is None or difference.low is None or difference.high is None or difference.p is None:
        return f"{difference.value_a} and {difference.value_b}: {difference.reason}"
    interval = f"[{difference.low:+.2%}, {difference.high:+.2%}]"
    return f"{difference.relative:+.2%} {interval}, p {difference.p:.2g}, {comparison.adjusted_p:.2g} corrected"


def half(source: Path, target: Path, number: int) -> Path:
    """Copy a run with one half of its measured phase as its only measured phase; return the copy's directory."""
    shutil.copytree(source, target)
    run = read_run(target)
    (phase,) = [phase for phase in run.phases if phase.measured]
    middle_s = (phase.begin_s + phase.end_s) / 2
    begin_s, end_s = (phase.begin_s, middle_s) if number == 0 else (middle_s, phase.end_s)
    phases = (RunPhase("before", run.begin_s, begin_s, measured=False), RunPhase("half", begin_s, end_s))
    write_run(target, replace(run, name=f"{run.name}-{number}", phases=phases))
    return target


def tries(a: Sequence[Path], b: Sequence[Path]) -> Iterator[Comparison]:
    """Yield at most TRIES comparisons of PER_SIDE runs per side without a run in common."""
    pairs = {
        frozenset((first, second)): (first, second)
        for first in combinations(a, PER_SIDE)
        for second in combinations(b, PER_SIDE)
        if not set(first) & set(second)
    }
    choice = random.Random(1)  # noqa: S311 - not for cryptography
    for first, second in choice.sample([*pairs.values()], min(TRIES, len(pairs))):
        yield compared(first, second)


def power(sides: dict[str, list[Path]]) -> float:
    """Print the comparisons of the two sides and of each side with itself; return the share that found B slower."""
    for side, folders in sides.items():
        rates = [throughput(folder) for folder in folders]
        print(f"{side}: mean {mean(rates):.0f} operations/s, spread {stdev(rates) / mean(rates):.2%}")
    print(f"all runs: {described(compared(sides['A'], sides['B']))}", flush=True)
    count = 0
    for comparison in tries(sides["A"], sides["B"]):
        is_lower = comparison.is_significant and (comparison.difference.relative or 0.0) < 0
        count += is_lower
        print(f"  {described(comparison)}{': found' if is_lower else ''}", flush=True)
    for side, folders in sides.items():
        results = list(tries(folders, folders))
        alarms = sum(comparison.is_significant for comparison in results)
        print(f"{side} and {side}: {alarms} of {len(results)} differ", flush=True)
    print(f"A and B: {count} of {TRIES} found")
    return count / TRIES


def main() -> int:
    """Record and compare the runs; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        os.environ["JAVA_TOOL_OPTIONS"] = JAVA_OPTIONS
        nodes = stack.enter_context(cluster(folder, PLAN))
        del os.environ["JAVA_TOOL_OPTIONS"]
        stack.enter_context(delay_proxy(PROXY, PLAN.address, NATIVE_PORT, ROUND_TRIP_MS / 2))
        workload = folder / "workload.rn"
        workload.write_text((WORKLOAD + SLOWER).replace("'replication_factor' : 3", "'replication_factor' : 1"))
        warm_up = ("run", str(workload), PROXY, "-p", "32", "--duration", f"{FAST_WARM_UP_S}s", "--quiet")
        for words in (("schema", workload, PROXY), ("load", workload, PROXY), warm_up):
            subprocess.run([latte(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        pin(nodes)
        wait_until_steady(folder, workload)
        sides: dict[str, list[Path]] = {"A": [], "B": []}
        # The first recorded run of each side is slower than the others.
        for side in FUNCTIONS:
            recorded(folder / f"{side}-first", workload, FUNCTIONS[side], DURATION_S)
        for number in range(RUNS):
            for side in ("A", "B") if number % 2 == 0 else ("B", "A"):
                run = recorded(folder / f"{side}{number}", workload, FUNCTIONS[side], DURATION_S)
                sides[side].append(run)
        whole = recorded(folder / "long", workload, FUNCTIONS["A"], LONG_S)
        halves = [half(whole, folder / f"half{number}", number) for number in (0, 1)]
        print(f"halves of a run: {described(compared(halves[:1], halves[1:]))}", flush=True)
        if output := os.environ.get("OUTPUT"):
            for recorded_run in (*sides["A"], *sides["B"]):
                shutil.copytree(recorded_run, Path(output) / recorded_run.name)
        return power(sides) < MIN_FOUND


if __name__ == "__main__":
    sys.exit(main())
