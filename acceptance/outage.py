"""Agents of a real cluster that push to a server through an outage of two minutes and a SIGKILL of an agent."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

NODES = ("127.0.186.1", "127.0.186.2", "127.0.186.3")
# The times with the server, without it, and after its return.
BEFORE_S, OUTAGE_S, AFTER_S = 40.0, 120.0, 60.0
PATIENCE_S = 90.0
CASSTAT = (sys.executable, "-m", "cli")


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """Run a demo cluster of three nodes under load."""
    command = [*CASSTAT, "demo", "up", "--nodes", str(len(NODES)), "--load", "200", "--heap", "400M"]
    subprocess.run([*command, "--address", NODES[0], "--dir", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run([*CASSTAT, "demo", "down", "--dir", str(folder)], check=True)


def agents_through_an_outage(
    journals: Mapping[str, Path],
    url: str,
    server: Callable[[], AbstractContextManager[None]],
    environ: Mapping[str, str],
) -> float:
    """Run an agent per node that pushes to `url`, which `server` serves; return a time at which the server was down.

    Raises SystemExit if an agent fails.
    """
    with ExitStack() as stack:
        running = stack.enter_context(ExitStack())
        running.enter_context(server())
        agents = {node: _started(node, journal, url, environ) for node, journal in journals.items()}
        time.sleep(BEFORE_S)
        running.close()
        time.sleep(OUTAGE_S / 2)
        down_s = time.time()
        agents[NODES[0]].send_signal(signal.SIGKILL)
        agents[NODES[0]].wait()
        agents[NODES[0]] = _started(NODES[0], journals[NODES[0]], url, environ)
        time.sleep(OUTAGE_S / 2)
        running.enter_context(server())
        time.sleep(AFTER_S)
        for agent in agents.values():
            agent.terminate()
        codes = [agent.wait(PATIENCE_S) for agent in agents.values()]
    if any(codes):
        raise SystemExit(f"agents ended with {codes}")
    return down_s


def _started(node: str, journal: Path, url: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    words = ("--jolokia", f"http://{node}:8778/jolokia", "--listen", f"{node}:17199", "--to", url)
    return subprocess.Popen([*CASSTAT, "agent", "--journal-dir", str(journal), *words], env=dict(environ))
