"""Recordings of a real node, made when the first benchmark asks for them."""

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

# A folder in which recordings are kept, and used again by the next run.
KEPT = "CASSTAT_BENCH_DIR"
LOADED_S = 600
QUIET_S = 240
RATE = 300
TABLES = 3
WARM_S = 30


@lru_cache(maxsize=1)
def folder() -> Path:
    """Return where recordings are: where the environment says, else in a folder that goes when the program ends."""
    if kept := os.environ.get(KEPT):
        return Path(kept)
    own = tempfile.TemporaryDirectory(prefix="casstat-bench-")
    atexit.register(own.cleanup)
    return Path(own.name)


def under_load() -> Path:
    """Return the recording of a node under load."""
    return _recorded("loaded", LOADED_S, RATE)


def quiet() -> Path:
    """Return the recording of a node of which nobody wants anything."""
    return _recorded("quiet", QUIET_S, 0)


def _recorded(name: str, seconds: int, rate: float) -> Path:
    path = folder() / name
    if not path.exists():
        # What is whole has its name.
        unfinished = folder() / f".{name}-{os.getpid()}"
        with real_node(TABLES) as node, loaded(rate, TABLES) if rate else nullcontext():
            time.sleep(WARM_S)
            command = [sys.executable, "-m", "cli", "1", str(seconds), "--jolokia", node.spec.jolokia_url]
            subprocess.run([*command, "-w", str(unfinished)], check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(path)
    return path
