"""Mutate a real node's recording at random: totals must be correct, or the lost ticks must be reported.

`CASSTAT_MUTATIONS` sets the number of mutations (default 20,000). `CASSTAT_RECORDING` names a folder in which the
recording is kept for later runs. The recording has three sessions: one in several files, one in a single file, and one
that ends because the recorder is killed.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from benchmarks.node import loaded, real_node
from collector.recording.writer import files_of
from tests.collector.recording.mutated import Verdict, mutate, truth_of, verdict

MUTATIONS = int(os.environ.get("CASSTAT_MUTATIONS", "20000"))
PROCESSES = 2
BATCH = 50
# Every n-th mutated recording is also read by `casstat journal check` and both merge implementations.
ALL_READERS_EVERY = 20
RATE = 200
TABLES = 3
# For each session, the number of ticks, the size limit of the journal (a file may take up a quarter of it), and whether
# the recorder is killed at the session's end.
SESSIONS = ((26, "120K", False), (12, "100M", False), (10, "100M", True))


def main() -> None:
    """Record, mutate and print the outcomes; exit with status 1 if a wrong total was not reported."""
    folder_name = os.environ.get("CASSTAT_RECORDING")
    with nullcontext(folder_name) if folder_name else tempfile.TemporaryDirectory(prefix="casstat-mutations-") as name:
        folder = Path(name) / "recording"
        if not folder.exists():
            _record(folder)
        (node,) = folder.iterdir()
        truth = truth_of(node)
        sizes = ", ".join(str(file.stat().st_size) for file in files_of(node))
        print(
            f"recording: {len(truth.ticks)} ticks, {truth.reads:.0f} reads, files of {sizes} bytes, {truth.integrity}"
        )
        sys.exit(_mutate_all(node, Path(name)))


def _record(folder: Path) -> None:
    with real_node(TABLES) as node, loaded(RATE, TABLES):
        time.sleep(5)
        for ticks, size, is_killed in SESSIONS:
            command = [sys.executable, "-m", "acceptance.short_frames_recorder", "0.5"]
            command += ["--jolokia", node.spec.jolokia_url, "-w", str(folder)]
            command += ["--journal-limit", size, "--journal-sync", "never", "--no-header"]
            command += [] if is_killed else [str(ticks)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
                for _ in zip(range(ticks), recorder.stdout or (), strict=False):
                    pass
                if is_killed:
                    recorder.send_signal(signal.SIGKILL)


def _mutate_all(node: Path, scratch: Path) -> int:
    began_s = time.monotonic()
    kinds, outcomes, wrong = Counter[str](), Counter[str](), 0
    seeds = range(0, MUTATIONS, BATCH)
    with ProcessPoolExecutor(PROCESSES) as pool:
        for results in pool.map(_batch, [node] * len(seeds), [scratch] * len(seeds), seeds):
            for seed, mutations, result in results:
                kinds.update(mutations)
                outcome = "wrong" if result.wrong else "correct" if result.is_right else "reported"
                outcomes[f"{outcome}, reported" if outcome == "correct" and result.is_reported else outcome] += 1
                if result.wrong:
                    wrong += 1
                    print(f"mutation {seed}: {', '.join(mutations)}: {result.wrong}", flush=True)
            if not (done := sum(outcomes.values())) % 500:
                print(f"{done} mutations in {time.monotonic() - began_s:.0f} s: {dict(outcomes)}", flush=True)
    print(f"{sum(outcomes.values())} mutations in {time.monotonic() - began_s:.0f} s")
    for name, number in (*sorted(outcomes.items()), *sorted(kinds.items())):
        print(f"  {name:24} {number}")
    return 1 if wrong else 0


def _batch(node: Path, scratch: Path, seed: int) -> list[tuple[int, list[str], Verdict]]:
    truth = truth_of(node)
    results = []
    for number in range(seed, min(seed + BATCH, MUTATIONS)):
        with tempfile.TemporaryDirectory(dir=scratch) as name:
            folder = Path(name) / node.name
            shutil.copytree(node, folder)
            generator = random.Random(number)  # noqa: S311 - not for secrets
            mutations = mutate(generator, folder)
            results.append((number, mutations, verdict(truth, folder, by_all=number % ALL_READERS_EVERY == 0)))
    return results


if __name__ == "__main__":
    main()
