"""Compare the CPU time of an agent that pushes with remote write and of one that is scraped every second.

Both sample the same real node every second and write their journals. They run at the same time, because the speed of a
virtual machine varies. The receiver discards what it gets.
"""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.node import cpu_s, loaded, real_node
from benchmarks.null_store import null_store

TABLES, RATE = 10, 200.0
ROUNDS, START_S, WARM_S, ROUND_S, SCRAPE_S = 5, 30.0, 20.0, 40.0, 1.0
SCRAPED, PUSHING, STORE_PORT = "127.0.0.1:28182", "127.0.0.1:28184", 28183
MAX_RATIO = 1.3


def main() -> int:
    """Measure both agents, print their CPU time, and return the exit code."""
    push = ("--to", f"prometheus+http://127.0.0.1:{STORE_PORT}/api/v1/write")
    with (
        TemporaryDirectory(prefix="casstat-") as folder,
        real_node(TABLES) as node,
        loaded(RATE, TABLES),
        null_store(STORE_PORT),
        _agent(node.spec.jolokia_url, SCRAPED, Path(folder, "scraped")) as scraped,
        _agent(node.spec.jolokia_url, PUSHING, Path(folder, "pushing"), *push) as pushing,
    ):
        _scrape_for(WARM_S)
        agents, cores = (scraped, pushing), []
        for _ in range(ROUNDS):
            before_s, began_s = [cpu_s(agent) for agent in agents], time.monotonic()
            _scrape_for(ROUND_S)
            elapsed_s = time.monotonic() - began_s
            if any(agent.status() == psutil.STATUS_ZOMBIE for agent in agents):
                raise SystemExit("an agent ended during the measurement")
            cores.append([(cpu_s(agent) - before) / elapsed_s for agent, before in zip(agents, before_s, strict=True)])
            print("scraped every second: {:.4f} cores; pushing: {:.4f} cores".format(*cores[-1]), flush=True)
    ratio = sum(of_pushing for _, of_pushing in cores) / sum(of_scraped for of_scraped, _ in cores)
    print(f"pushing takes {ratio:.2f} times the CPU time of being scraped (allowed: {MAX_RATIO})")
    return int(ratio > MAX_RATIO)


@contextmanager
def _agent(jolokia_url: str, listen: str, journal: Path, *options: str) -> Iterator[psutil.Process]:
    """Run an agent, and yield its process once it serves its page."""
    words = ["--jolokia", jolokia_url, "--listen", listen, "--journal-dir", str(journal), *options]
    command = [sys.executable, "-m", "cli", "agent", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            _wait_until_serving(listen)
            yield psutil.Process(agent.pid)
        finally:
            agent.terminate()


def _wait_until_serving(listen: str) -> None:
    """Wait until an agent that has just been started serves its page. Raises OSError if it does not in time."""
    end_s = time.monotonic() + START_S
    while True:
        try:
            return _scrape(listen)
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)


def _scrape_for(seconds: float) -> None:
    """Scrape one of the agents every second."""
    end_s = time.monotonic() + seconds
    while (remaining_s := end_s - time.monotonic()) > 0:
        time.sleep(min(SCRAPE_S, remaining_s))
        _scrape(SCRAPED)


def _scrape(listen: str) -> None:
    """Read an agent's page as Prometheus does. Raises OSError."""
    request = urllib.request.Request(f"http://{listen}/metrics", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - loopback
        response.read()


if __name__ == "__main__":
    sys.exit(main())
