"""Generates a mixed read and write load at a fixed rate, and counts its operations as a reference for measurements.

As a program, it runs for `--seconds`, or until SIGTERM or Ctrl-C. It prints its counts as a JSON object at the end and,
with `--counts`, also writes them to a file every second. With `--results`, it writes each operation to a file.
"""

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy, WhiteListRoundRobinPolicy
from prometheus_client import start_http_server

from exporters.metrics_page.load_series import READ, WRITE, LoadSeries

CLIENT = "demo"
HEADER = "time_s,operation,response_ms,error\n"
KEYS = 10_000
PAYLOAD_BYTES = 200
STEP_S = 0.01
COUNTS_EVERY_S = 1.0
MAX_IN_FLIGHT = 256
SCHEMA_TIMEOUT_S = 120.0


def load_series(cluster: str) -> LoadSeries:
    """Return the series of the load's operations, without any so far, with the cluster's name as a label."""
    series = LoadSeries(cluster)
    series.begin(CLIENT, (READ, WRITE))
    return series


class LoadResults:
    """Writes a row for each operation. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._file.write(HEADER)
        # Responses arrive in several threads.
        self._lock = threading.Lock()

    def done(self, operation: str, response_s: float) -> None:
        """Add an operation that succeeded; `response_s` is the time since it was due."""
        self._write(f"{operation.lower()},{1000 * response_s:.3f},")

    def failed(self, operation: str, error: BaseException) -> None:
        self._write(f"{operation.lower()},,{type(error).__name__}")

    def _write(self, fields: str) -> None:
        with self._lock:
            self._file.write(f"{time.time():.6f},{fields}\n")

    def close(self) -> None:
        self._file.close()


@dataclass
class Counts:
    """Operations so far: acknowledged reads and writes, and failures."""

    reads: int = 0
    writes: int = 0
    errors: int = 0


class Load:
    """Reads and writes single partitions at a fixed rate, with at most MAX_IN_FLIGHT outstanding operations."""

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        keyspace: str = "demo",
        tables: int = 1,
        only_these: bool = False,
        payload_bytes: int = PAYLOAD_BYTES,
    ) -> None:
        self._payload_bytes = payload_bytes
        self._contacts = len(addresses)
        policy = WhiteListRoundRobinPolicy(list(addresses)) if only_these else RoundRobinPolicy()
        profile = ExecutionProfile(policy, consistency_level=ConsistencyLevel.LOCAL_ONE, request_timeout=10)
        self._cluster = Cluster(
            list(addresses),
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            max_schema_agreement_wait=SCHEMA_TIMEOUT_S,
        )
        self._session = self._cluster.connect()
        self.counts = Counts()
        self.series: LoadSeries | None = None
        self.results: LoadResults | None = None
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_IN_FLIGHT)
        self._prepare_with_retries(keyspace, tables)

    def _prepare_with_retries(self, keyspace: str, tables: int) -> None:
        """Create the tables; retry while new nodes disagree on the schema."""
        ends_s = time.monotonic() + SCHEMA_TIMEOUT_S
        while True:
            try:
                self._prepare(keyspace, tables)
                return
            except (DriverException, NoHostAvailable):
                if time.monotonic() > ends_s:
                    raise
                time.sleep(1)

    def _prepare(self, keyspace: str, tables: int) -> None:

        def run(statement: str) -> None:
            # New nodes may take a while to agree on a schema.
            self._session.execute(statement, timeout=SCHEMA_TIMEOUT_S)

        # A new node may not know all its peers yet, so also consider the number of contact addresses.
        copies = min(3, max(self._contacts, len(self._cluster.metadata.all_hosts())))
        replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
        run(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")
        self._statements = []
        for number in range(tables):
            table = f"{keyspace}.t{number:03d}"
            run(f"CREATE TABLE IF NOT EXISTS {table} (k int PRIMARY KEY, v blob)")
            read = self._session.prepare(f"SELECT v FROM {table} WHERE k = ?")  # noqa: S608 - names from options, not from users
            write = self._session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")  # noqa: S608
            self._statements.append((read, write))

    def run(self, rate: float, seconds: float, stop: threading.Event, *, reads: float = 0.5) -> None:
        """Run `rate` operations per second for `seconds` seconds or until `stop` is set; then wait for all responses.

        `reads` is the fraction of reads. Late operations are sent as soon as possible to keep the mean rate.
        """
        began_s = time.monotonic()
        started = 0
        while not stop.is_set() and (elapsed_s := time.monotonic() - began_s) < seconds:
            if started < int(rate * elapsed_s):
                started += 1
                self._send(random.random() < reads, began_s + started / rate)  # noqa: S311 - not for cryptography
            else:
                stop.wait(STEP_S)
        for _ in range(MAX_IN_FLIGHT):
            self._slots.acquire()
        self._slots.release(MAX_IN_FLIGHT)

    @property
    def cluster_name(self) -> str:
        return str(self._cluster.metadata.cluster_name)

    def _send(self, is_read: bool, due_s: float) -> None:
        """Send one operation; `due_s` is its intended start, before any wait for a free slot."""
        read, write = random.choice(self._statements)  # noqa: S311
        key = random.randrange(KEYS)  # noqa: S311
        self._slots.acquire()
        if is_read:
            future = self._session.execute_async(read, (key,))
        else:
            future = self._session.execute_async(write, (key, random.randbytes(self._payload_bytes)))  # noqa: S311
        operation = "Read" if is_read else "Write"
        future.add_callbacks(lambda _: self._done(operation, due_s), lambda error: self._failed(operation, error))

    def _done(self, operation: str, due_s: float) -> None:
        response_s = time.monotonic() - due_s
        if self.series is not None:
            self.series.completed(CLIENT, operation, response_s)
        if self.results is not None:
            self.results.done(operation, response_s)
        self._count("reads" if operation == "Read" else "writes")

    def _failed(self, operation: str, error: BaseException) -> None:
        if self.series is not None:
            self.series.failed(CLIENT, operation)
        if self.results is not None:
            self.results.failed(operation, error)
        self._count("errors")

    def _count(self, field: str) -> None:
        with self._lock:
            setattr(self.counts, field, getattr(self.counts, field) + 1)
        self._slots.release()

    def close(self) -> None:
        self._cluster.shutdown()


def write_counts(path: Path, counts: Counts) -> None:
    """Atomically replace the file at `path` with the counts as a JSON object."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(counts)) + "\n")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the load with the options from the command line."""
    parser = argparse.ArgumentParser(description="generate load on Cassandra nodes at a fixed rate")
    parser.add_argument("addresses", nargs="+")
    parser.add_argument("--rate", type=float, default=500, help="operations per second [500]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="duration in seconds [unlimited]")
    parser.add_argument("--tables", type=int, default=1, help="number of tables [1]")
    parser.add_argument("--keyspace", default="demo")
    parser.add_argument("--payload", type=int, default=PAYLOAD_BYTES, help=f"bytes per row [{PAYLOAD_BYTES}]")
    parser.add_argument("--counts", type=Path, help="file for the counts, replaced every second")
    parser.add_argument("--results", type=Path, help="file for the operations, as a CSV that casstat imports")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="address to serve metrics for Prometheus on [none]")
    parser.add_argument("--only-these", action="store_true", help="send operations only to these addresses")
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    load = Load(
        options.addresses,
        keyspace=options.keyspace,
        tables=options.tables,
        only_these=options.only_these,
        payload_bytes=options.payload,
    )
    if options.metrics:
        load.series = load_series(load.cluster_name)
        host, _, port = options.metrics.rpartition(":")
        start_http_server(int(port), host, load.series.registry)
    if options.results:
        try:
            load.results = LoadResults(options.results)
        except OSError as error:
            load.close()
            sys.exit(f"{options.results}: {error.strerror}")
    runner: Any = threading.Thread(target=load.run, args=(options.rate, options.seconds, stop))
    runner.start()
    try:
        while runner.is_alive():
            runner.join(COUNTS_EVERY_S)
            if options.counts:
                write_counts(options.counts, load.counts)
    except OSError as error:
        sys.exit(f"{error.filename or options.counts}: {error.strerror}")
    finally:
        stop.set()
        runner.join()
        load.close()
        if load.results is not None:
            load.results.close()
    print(json.dumps(asdict(load.counts)))


if __name__ == "__main__":
    main()
