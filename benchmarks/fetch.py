"""Fetching an hour of recordings from three agents, and completing a ten-minute run on three nodes."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copytree

from benchmarks import node_recordings, simulated_recordings
from benchmarks.figures import Figure

NODES, TICKS = 3, 4200
HOUR_S, RUN_S = 3600, 600
MAX_FETCH_S, MAX_FINISH_S = 3.0, 10.0
SERVING = re.compile(r"serving (\S+)")
# Nothing listens at this address: the agents record ticks without values while they serve earlier ones.
NO_JOLOKIA = "http://127.0.0.1:1/jolokia"


def run() -> Iterator[Figure]:
    """Fetch from agents that serve simulated recordings, and complete a fetched run as `casstat record` does."""
    paths = simulated_recordings.cluster(node_recordings.folder() / "cluster", NODES, TICKS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        agents = [stack.enter_context(_agent(copytree(path, Path(folder, path.name)))) for path in paths]
        hour, ten_minutes = Path(folder, "hour"), Path(folder, "run")
        fetch_s = _fetch(agents, hour, HOUR_S)
        size = sum(file.stat().st_size for file in hour.rglob("*") if file.is_file())
        _fetch(agents, ten_minutes, RUN_S)
        # Nothing is missing, so `casstat fetch --recover` only merges, plots and summarises the run.
        finish_s = _measured("fetch", "--recover", str(ten_minutes))
        if not (ten_minutes / "report.html").is_file():
            raise SystemExit("the report was not written")
    yield Figure(f"{NODES} agents, an hour: casstat fetch", fetch_s, "s", MAX_FETCH_S)
    yield Figure(f"{NODES} agents, an hour: size", size / 2**20, "MiB")
    yield Figure(f"{NODES} nodes, ten minutes: tables, plots and summary", finish_s, "s", MAX_FINISH_S)


def _fetch(agents: Sequence[str], folder: Path, seconds: int) -> float:
    begin_s = simulated_recordings.BEGIN_TIME_S + TICKS - seconds
    return _measured("fetch", *agents, "--from", str(begin_s), "--until", str(begin_s + seconds), "-o", str(folder))


def _measured(*arguments: str) -> float:
    """Run casstat and return its wall-clock time. Raises SystemExit if it fails."""
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "cli", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"casstat {arguments[0]}: exit status {done.returncode}: {done.stderr.strip()[-200:]}")
    return time.monotonic() - began_s


@contextmanager
def _agent(journal: Path) -> Iterator[str]:
    """Run an agent with a journal; yield the address of its API."""
    command = [sys.executable, "-m", "cli", "agent", "--jolokia", NO_JOLOKIA, "--source", "jolokia"]
    command += ["--listen", "127.0.0.1:0", "--journal-dir", str(journal)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            serving = next(filter(None, map(SERVING.search, process.stderr or ())))
            yield serving[1]
        finally:
            process.terminate()
