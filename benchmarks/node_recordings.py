"""Recordings of a real node; each is created when a benchmark first needs it."""

import atexit
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

from benchmarks.node import loaded, real_node

# Environment variable that names the folder in which recordings are kept for later runs.
FOLDER_VARIABLE = "CASSTAT_BENCH_DIR"
LOADED_S = 600
QUIET_S = 240
RATE = 300
TABLES = 3
WARM_S = 30


@lru_cache(maxsize=1)
def folder() -> Path:
    """Return the recordings folder: CASSTAT_BENCH_DIR if set, else a temporary folder that is deleted at exit."""
    if kept := os.environ.get(FOLDER_VARIABLE):
        return Path(kept)
    temporary = tempfile.TemporaryDirectory(prefix="casstat-bench-")
    atexit.register(temporary.cleanup)
    return Path(temporary.name)


def under_load() -> Path:
    """Return the recording of a node under load."""
    return _recorded("loaded", LOADED_S, RATE)


def quiet() -> Path:
    """Return the recording of a node without load."""
    return _recorded("quiet", QUIET_S, 0)


def _recorded(name: str, seconds: int, rate: float) -> Path:
    path = folder() / name
    if not path.exists():
        # The folder gets its final name once the recording is complete.
        unfinished = folder() / f".{name}-{os.getpid()}"
        with real_node(TABLES) as node, loaded(rate, TABLES) if rate else nullcontext():
            time.sleep(WARM_S)
            command = [sys.executable, "-m", "cli", "1", str(seconds), "--jolokia", node.spec.jolokia_url]
            subprocess.run([*command, "-w", str(unfinished)], check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(path)
    return path
