"""Run `casstat top` with 1,000 simulated agents in a terminal, and measure its CPU time and memory.

It shows data centres and racks, since there are more nodes than lines. The agents run in a process of their own. The
history reaches its maximum size after about four minutes.
"""

import fcntl
import os
import pty
import re
import resource
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import psutil

from benchmarks.node import cpu_s
from benchmarks.simulated_agents import PORT, addresses

NODES, COLUMNS, LINES = 1000, 200, 60
WARM_S, ROUNDS, ROUND_S = 30.0, 10, 30.0
MAX_CORES, MAX_MIB = 0.5, 300.0
# Each agent has a socket that listens, and one or two connections.
FILES = 8 * NODES
COUNTED = re.compile(rb"(\d+) of %d nodes" % NODES)


class Screen:
    """A pseudo-terminal."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def read_for(self, seconds: float) -> bytes:
        """Read what the program writes for some time; without a reader, it would have to wait."""
        output, end_s = bytearray(), time.monotonic() + seconds
        while (remaining_s := end_s - time.monotonic()) > 0:
            if select.select([self._master], [], [], remaining_s)[0]:
                output += os.read(self._master, 1 << 16)
        return bytes(output)


def main() -> int:
    """Print the CPU time and memory of each round, and return the exit code."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, most_files), most_files))
    screen = Screen()
    with ExitStack() as stack:
        agents = stack.enter_context(_agents())
        stack.callback(agents.kill)
        state = stack.enter_context(TemporaryDirectory(prefix="casstat-"))
        command = [sys.executable, "-m", "cli", "top", "--seed", f"{addresses(1)[0]}:{PORT}"]
        environ = {**os.environ, "XDG_STATE_HOME": state, "TERM": "xterm-256color"}
        top = stack.enter_context(
            subprocess.Popen(command, env=environ, stdin=screen.slave, stdout=screen.slave, stderr=screen.slave)
        )
        stack.callback(top.kill)
        process = psutil.Process(top.pid)
        screen.read_for(WARM_S)
        cores = []
        fewest = NODES
        for _ in range(ROUNDS):
            began_s, before_s = time.monotonic(), cpu_s(process)
            counts = [int(count) for count in COUNTED.findall(screen.read_for(ROUND_S))]
            if top.poll() is not None:
                raise SystemExit("casstat top ended during the measurement")
            cores.append((cpu_s(process) - before_s) / (time.monotonic() - began_s))
            mib = process.memory_info().rss / 2**20
            fewest = min([fewest, *counts]) if counts else 0
            print(f"{cores[-1]:.3f} cores, {mib:.0f} MiB, at least {fewest} of {NODES} nodes counted", flush=True)
    mean = sum(cores) / len(cores)
    print(f"mean: {mean:.3f} cores (allowed: {MAX_CORES}), {mib:.0f} MiB (allowed: {MAX_MIB:.0f})")
    return int(mean > MAX_CORES or mib > MAX_MIB or fewest < NODES)


def _agents() -> "subprocess.Popen[str]":
    """Start the agents and wait until they serve. Raises SystemExit if they cannot."""
    command = [sys.executable, "-m", "benchmarks.simulated_agents", str(NODES)]
    agents = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert agents.stdout is not None
    if agents.stdout.readline() != "serving\n":
        raise SystemExit("the simulated agents did not start")
    return agents


if __name__ == "__main__":
    sys.exit(main())
