"""Kill `casstat sweep` twice with SIGKILL, resume it, and compare its results with those of an uninterrupted sweep.

A cluster of three nodes with agents runs under latte. Each of the two sweeps has three concurrencies, two rates and two
repeats. Both must end with the same rows: every run successful, and the throughput within 2% of the rate. Every run
must open in `casstat report`. Takes about ten minutes.
"""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acceptance.client_hosts import PLAN, WORKLOAD, cluster, latte
from collector.runs.parameter_sweep import read_sweep
from tests.real.programs import program
from tests.waiting import eventually

PARAMETERS, RUNS = ("concurrency=4,16,64", "rate=40,80"), 12
DURATION_S, WARM_UP_S, NODES_WARM_UP_S, MAX_KILL_S, PATIENCE_S = 12, 4, 60, 20.0, 600
KILLS, SEED, TOLERANCE = 2, 1, 0.02
COLUMNS = ("parameters", "runs", "failed", "missing", "errors")


def sweep_words(folder: Path, workload: Path, *options: str) -> list[str]:
    """Return the command line of a sweep in this directory."""
    result = folder.parent / f"{folder.name}.json"
    command = [latte(), "run", str(workload), PLAN.address, "-t", "1", "--quiet", "-p", "{concurrency}"]
    command += ["--rate", "{rate}", "--duration", f"{DURATION_S}s", "--output", str(result)]
    parameters = [word for parameter in PARAMETERS for word in ("-P", parameter)]
    settings = ["--repeat", "2", "--warm-up", f"{WARM_UP_S}s", "--no-report", "-q", "--client", str(result)]
    return program("sweep", *PLAN.addresses(), *parameters, *settings, "-o", str(folder), *options, "--", *command)


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a sweep's results."""
    content: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["rows"]
    return content


def kill_twice(folder: Path, workload: Path) -> None:
    """Kill the sweep at random moments, each time after at least one more run has ended."""
    choice = random.Random(SEED)  # noqa: S311 - not for cryptography
    for number in range(KILLS):
        ended = len(read_sweep(folder).runs) if number else 0
        words = sweep_words(folder, workload, *(("--resume",) if number else ()))
        with subprocess.Popen(words, cwd=folder.parent, stdout=subprocess.DEVNULL) as process:
            eventually(lambda count=ended: _ended(folder) > count + 1, PATIENCE_S)  # type: ignore[misc]
            time.sleep(choice.uniform(0, MAX_KILL_S))
            process.kill()
        print(f"killed after {_ended(folder)} runs", flush=True)


def _ended(folder: Path) -> int:
    return len(read_sweep(folder).runs) if (folder / "sweep.json").exists() else 0


def defects(whole: Path, killed: Path) -> list[str]:
    """Return what is wrong with the results of the two sweeps."""
    problems = []
    for first, second in zip(rows(whole), rows(killed), strict=True):
        rate = float(first["parameters"]["rate"])
        rates = [row["ops_per_s"] for row in (first, second)]
        print(f"{first['parameters']}: {rates[0]:.1f} and {rates[1]:.1f} operations/s", flush=True)
        if [first[name] for name in COLUMNS] != [second[name] for name in COLUMNS] or first["runs"] != 2:
            problems.append(f"the rows differ: {first} and {second}")
        if any(abs(achieved / rate - 1) > TOLERANCE for achieved in rates):
            problems.append(f"the throughput is not close to {rate:g}: {rates}")
    for folder in (whole, killed):
        runs = read_sweep(folder).runs
        if len(runs) != RUNS:
            problems.append(f"{folder.name}: {len(runs)} runs")
        for run in runs:
            if subprocess.run(program("report", str(folder / run.folder)), stdout=subprocess.DEVNULL).returncode:
                problems.append(f"{run.folder}: no report")
    unfinished = len(list((killed / "unfinished").iterdir()))
    print(f"{unfinished} unfinished runs are kept")
    if unfinished > KILLS:
        problems.append(f"{unfinished} unfinished runs")
    return problems


def main() -> int:
    """Make the sweeps; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory() as name:
        folder = Path(name)
        workload = folder / "workload.rn"
        workload.write_text(WORKLOAD)
        with cluster(folder):
            warm_up = ("run", str(workload), PLAN.address, "-p", "16", "--duration", f"{NODES_WARM_UP_S}s", "--quiet")
            for words in (("schema", workload, PLAN.address), ("load", workload, PLAN.address), warm_up):
                subprocess.run([latte(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            whole, killed = folder / "whole", folder / "killed"
            subprocess.run(sweep_words(whole, workload), cwd=folder, check=True, stdout=subprocess.DEVNULL)
            kill_twice(killed, workload)
            resumed = sweep_words(killed, workload, "--resume")
            subprocess.run(resumed, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            problems = defects(whole, killed)
    print(*(f"DEFECT: {problem}" for problem in problems), sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
