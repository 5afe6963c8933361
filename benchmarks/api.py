"""What the agent's API costs: CPU of a request, and what 50 scrapers at once do to ticks in the same process."""

import gzip
import http.client
import math
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from exporters.api.app import build
from exporters.api.server import Server
from exporters.recent_ticks import RecentTicks

BODY_BYTES = 300_000
REQUESTS = 3000
SCRAPERS = 50
SCRAPED_S = 20.0
TICK_S = 0.1
MOST_LATE_MS, MOST_CPU_MS = 10.0, 0.5
SWITCH_S = 0.0005
HOST = "127.0.63.1"
HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}


def run() -> Iterator[Figure]:
    """Ask from other processes, so that only the server's own CPU counts."""
    with _served() as port:
        for path, encoding in (("/metrics", "gzip"), ("/metrics", "identity"), ("/api/v1/time", "identity")):
            what = f"{path}{', gzipped' if encoding == 'gzip' else ''}: CPU of a request"
            bound = MOST_CPU_MS if path == "/metrics" else None
            yield Figure(what, _cpu_ms(port, path, encoding), "ms", bound)
        yield Figure(f"ticks of {TICK_S:g} s alone: lateness, 99th percentile", _late_ms(SCRAPED_S), "ms")
        usual_s = sys.getswitchinterval()
        for switch_s in (usual_s, SWITCH_S):
            sys.setswitchinterval(switch_s)
            with _scrapers(port) as counts:
                late_ms = _late_ms(SCRAPED_S)
            what = f"{SCRAPERS} scrapers at once, threads switched after {1000 * switch_s:g} ms"
            yield Figure(f"{what}: scrapes", sum(counts) / SCRAPED_S, "/s")
            bound = MOST_LATE_MS if switch_s == SWITCH_S else None
            yield Figure(f"{what}: lateness, p99", late_ms, "ms", bound)
        sys.setswitchinterval(usual_s)


class _Ready:
    """An agent whose exposition is made already."""

    def __init__(self, folder: Path) -> None:
        self.recent = RecentTicks()
        self.journal = folder
        chance = random.Random(7)  # noqa: S311
        lines: list[str] = []
        while sum(map(len, lines)) < BODY_BYTES:
            labels = f'keyspace="ks{len(lines) % 20}",table="t{len(lines)}"'
            lines.append(f"cassandra_table_reads_total{{{labels}}} {chance.randrange(1 << 40)}\n")
        body = "".join(lines).encode()
        self._bodies = {False: body, True: gzip.compress(body, 1)}

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        return self._bodies[compressed]

    def node(self) -> Mapping[str, Any]:
        return {}

    def unready(self) -> str:
        return ""

    def unhealthy(self) -> str:
        return ""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        return []

    def begin_run(self, name: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def mark_run(self, run: str, text: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def end_run(self, run: str) -> Mapping[str, Any]:
        raise NotImplementedError


@contextmanager
def _served() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(build(_Ready(Path(folder))), f"{HOST}:0", None, print)
        try:
            yield server.address[1]
        finally:
            server.stop()


def _ask(port: int, path: str, encoding: str, count: int) -> None:
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    for _ in range(count):
        connection.request("GET", path, headers={**HEADERS, "Accept-Encoding": encoding})
        connection.getresponse().read()
    connection.close()


def _cpu_ms(port: int, path: str, encoding: str) -> float:
    """Return this process' CPU for each of many requests over one connection."""
    spawn = multiprocessing.get_context("spawn")
    for count in (10, REQUESTS):
        client = spawn.Process(target=_ask, args=(port, path, encoding, count))
        client.start()
        began_s = time.process_time()
        client.join()
        spent_s = time.process_time() - began_s
    return 1000 * spent_s / REQUESTS


def _late_ms(seconds: float) -> float:
    """Return the 99th percentile of how late a thread is that does a little every tick."""
    late: list[float] = []

    def tick() -> None:
        due_s = time.monotonic() + TICK_S
        for _ in range(int(seconds / TICK_S)):
            time.sleep(max(due_s - time.monotonic(), 0))
            late.append(1000 * (time.monotonic() - due_s))
            sum(range(20_000))
            due_s += TICK_S

    thread = threading.Thread(target=tick)
    thread.start()
    thread.join()
    return sorted(late)[math.ceil(0.99 * len(late)) - 1]


@contextmanager
def _scrapers(port: int) -> Iterator[list[int]]:
    """Have 50 ask again and again, each on a connection of its own, all of them in another process."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_scrape, args=(port, theirs))
    process.start()
    ours.recv()
    counts: list[int] = []
    yield counts
    ours.send(None)
    counts.append(ours.recv())
    process.join()


def _scrape(port: int, told: Connection) -> None:
    ends, count = threading.Event(), []

    def scrape() -> None:
        while not ends.is_set():
            _ask(port, "/metrics", "gzip", 1)
            count.append(1)

    threads = [threading.Thread(target=scrape) for _ in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    told.send(None)
    told.recv()
    ends.set()
    for thread in threads:
        thread.join()
    told.send(len(count))
