"""CPU time of a request to the agent's API, and lateness of ticks while 50 clients scrape the same process."""

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
from http import HTTPStatus
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
SCRAPE_PHASE_S = 20.0
TICK_S = 0.1
MAX_LATE_MS, MAX_CPU_MS = 10.0, 0.5
# Fewer scrapes would not disturb the ticks.
MIN_SCRAPES_PER_S = 10.0
SHORT_SWITCH_INTERVAL_S = 0.0005
HOST = "127.0.63.1"
HEADERS = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}


def run() -> Iterator[Figure]:
    """Measure with clients in other processes, so that only the server uses CPU time in this process."""
    with _server_port() as port:
        for path, encoding in (("/metrics", "gzip"), ("/metrics", "identity"), ("/api/v1/time", "identity")):
            label = f"{path}{', gzip' if encoding == 'gzip' else ''}: CPU per request"
            bound = MAX_CPU_MS if path == "/metrics" else None
            yield Figure(label, _cpu_ms(port, path, encoding), "ms", bound)
        yield Figure(f"ticks of {TICK_S:g} s, no scrapers: lateness, p99", _late_ms(SCRAPE_PHASE_S), "ms")
        default_s = sys.getswitchinterval()
        for switch_s in (default_s, SHORT_SWITCH_INTERVAL_S):
            sys.setswitchinterval(switch_s)
            with _scrapers(port) as counts:
                late_ms = _late_ms(SCRAPE_PHASE_S)
            label = f"{SCRAPERS} scrapers, switch interval {1000 * switch_s:g} ms"
            yield Figure(f"{label}: scrapes", sum(counts) / SCRAPE_PHASE_S, "/s", MIN_SCRAPES_PER_S, True)
            bound = MAX_LATE_MS if switch_s == SHORT_SWITCH_INTERVAL_S else None
            yield Figure(f"{label}: lateness, p99", late_ms, "ms", bound)
        sys.setswitchinterval(default_s)


class _StaticAgent:
    """An agent whose exposition is rendered in advance."""

    def __init__(self, folder: Path) -> None:
        self.recent = RecentTicks()
        self.journal = folder
        self.runs = self
        generator = random.Random(7)  # noqa: S311
        lines: list[str] = []
        while sum(map(len, lines)) < BODY_BYTES:
            labels = f'keyspace="ks{len(lines) % 20}",table="t{len(lines)}"'
            lines.append(f"cassandra_table_reads_total{{{labels}}} {generator.randrange(1 << 40)}\n")
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

    def all_runs(self) -> Sequence[Mapping[str, Any]]:
        return []

    def renew(self, identifier: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def begin(self, name: str, lease_s: float | None = None) -> Mapping[str, Any]:
        raise NotImplementedError

    def mark(self, identifier: str, text: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def end(self, identifier: str) -> Mapping[str, Any]:
        raise NotImplementedError


@contextmanager
def _server_port() -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(build(_StaticAgent(Path(folder))), f"{HOST}:0", None, print)
        try:
            yield server.address[1]
        finally:
            server.stop()


def _send_requests(port: int, path: str, encoding: str, count: int) -> None:
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    for _ in range(count):
        connection.request("GET", path, headers={**HEADERS, "Accept-Encoding": encoding})
        response = connection.getresponse()
        if response.status != HTTPStatus.OK or not response.read():
            raise SystemExit(f"{path}: HTTP status {response.status}")
    connection.close()


def _cpu_ms(port: int, path: str, encoding: str) -> float:
    """Return the CPU time, in ms, that this process uses per request on a single connection."""
    spawn = multiprocessing.get_context("spawn")
    for count in (10, REQUESTS):
        client = spawn.Process(target=_send_requests, args=(port, path, encoding, count))
        client.start()
        began_s = time.process_time()
        client.join()
        used_s = time.process_time() - began_s
        if client.exitcode:
            raise SystemExit("a client failed")
    return 1000 * used_s / REQUESTS


def _late_ms(seconds: float) -> float:
    """Return the 99th percentile of the lateness, in ms, of a thread that does a little work on every tick."""
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
    """Scrape continuously from `SCRAPERS` threads of another process, with one connection per scrape.

    Yields a list to which the number of scrapes is appended at the end of the block.
    """
    spawn = multiprocessing.get_context("spawn")
    pipe, child_pipe = spawn.Pipe()
    process = spawn.Process(target=_scrape, args=(port, child_pipe))
    process.start()
    pipe.recv()
    counts: list[int] = []
    yield counts
    pipe.send(None)
    counts.append(pipe.recv())
    process.join()


def _scrape(port: int, parent: Connection) -> None:
    stopped, scrapes = threading.Event(), []

    def scrape() -> None:
        while not stopped.is_set():
            _send_requests(port, "/metrics", "gzip", 1)
            scrapes.append(1)

    threads = [threading.Thread(target=scrape) for _ in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    parent.send(None)
    parent.recv()
    stopped.set()
    for thread in threads:
        thread.join()
    parent.send(len(scrapes))
