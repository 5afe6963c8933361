"""A mixed load of known rate: it counts what it did, so that others can be checked against it.

Run as a program it loads nodes until it is told to stop (SIGTERM) or `--seconds` have passed, keeps its
counts in a file and prints them as one JSON object at the end.
"""

import argparse
import json
import random
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import RoundRobinPolicy, WhiteListRoundRobinPolicy

if TYPE_CHECKING:
    from cli.demo.load_metrics import LoadMetrics

KEYS = 10_000
PAYLOAD_BYTES = 200
STEP_S = 0.01
COUNTS_EVERY_S = 1.0
SCHEMA_TIMEOUT_S = 120.0


@dataclass
class Counts:
    """What the load did so far: operations the cluster acknowledged, and those that failed."""

    reads: int = 0
    writes: int = 0
    errors: int = 0


class Load:
    """Reads and writes single partitions at a steady rate; never more than `in_flight` at once."""

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
        self.metrics: LoadMetrics | None = None
        self._lock = threading.Lock()
        self._room = threading.Semaphore(256)
        self._prepare_patiently(keyspace, tables)

    def _prepare_patiently(self, keyspace: str, tables: int) -> None:
        """Prepare again while nodes that have only just started do not agree on the schema yet."""
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
            # Nodes that have only just started take their time to agree on a schema.
            self._session.execute(statement, timeout=SCHEMA_TIMEOUT_S)

        # A node that has only just started may not know the others yet.
        copies = min(3, max(self._contacts, len(self._cluster.metadata.all_hosts())))
        replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
        run(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")
        self._statements = []
        for number in range(tables):
            table = f"{keyspace}.t{number:03d}"
            run(f"CREATE TABLE IF NOT EXISTS {table} (k int PRIMARY KEY, v blob)")
            read = self._session.prepare(f"SELECT v FROM {table} WHERE k = ?")  # noqa: S608 - our own names
            write = self._session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")  # noqa: S608
            self._statements.append((read, write))

    def run(self, rate: float, seconds: float, stop: threading.Event, *, reads: float = 0.5) -> None:
        """Do `rate` operations a second for `seconds`, the share `reads` of them reads; wait for the last answer.

        Work that could not be started in time is made up for at once: the mean rate holds.
        """
        began = time.monotonic()
        started = 0
        while not stop.is_set() and (now := time.monotonic() - began) < seconds:
            while started < int(rate * now) and not stop.is_set():
                started += 1
                self._one(random.random() < reads, began + started / rate)  # noqa: S311 - a load, no secret
            stop.wait(STEP_S)
        for _ in range(256):
            self._room.acquire()
        self._room.release(256)

    @property
    def cluster_name(self) -> str:
        """What the cluster calls itself."""
        return str(self._cluster.metadata.cluster_name)

    def _one(self, is_read: bool, due_s: float) -> None:
        """Do one operation; `due_s` is when it should have been sent: it may have had to wait for room."""
        read, write = random.choice(self._statements)  # noqa: S311
        key = random.randrange(KEYS)  # noqa: S311
        self._room.acquire()
        if is_read:
            future = self._session.execute_async(read, (key,))
        else:
            future = self._session.execute_async(write, (key, random.randbytes(self._payload_bytes)))  # noqa: S311
        operation = "Read" if is_read else "Write"
        future.add_callbacks(lambda _: self._done(operation, due_s), lambda _: self._failed(operation))

    def _done(self, operation: str, due_s: float) -> None:
        if self.metrics is not None:
            self.metrics.done(operation, time.monotonic() - due_s)
        self._count("reads" if operation == "Read" else "writes")

    def _failed(self, operation: str) -> None:
        if self.metrics is not None:
            self.metrics.failed(operation)
        self._count("errors")

    def _count(self, what: str) -> None:
        with self._lock:
            setattr(self.counts, what, getattr(self.counts, what) + 1)
        self._room.release()

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.shutdown()


def write_counts(path: Path, counts: Counts) -> None:
    """Replace the file at `path` by the counts as one JSON object."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(counts)) + "\n")
    temporary.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Load the nodes given on the command line."""
    parser = argparse.ArgumentParser(description="load Cassandra nodes at a known rate")
    parser.add_argument("addresses", nargs="+")
    parser.add_argument("--rate", type=float, default=500, help="operations a second [500]")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long [until told to stop]")
    parser.add_argument("--tables", type=int, default=1, help="how many tables [1]")
    parser.add_argument("--keyspace", default="demo")
    parser.add_argument("--payload", type=int, default=PAYLOAD_BYTES, help=f"bytes in a row [{PAYLOAD_BYTES}]")
    parser.add_argument("--counts", type=Path, help="file that always holds the counts so far")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve what its clients see to Prometheus there")
    parser.add_argument("--only-these", action="store_true", help="send to no other node of the cluster")
    options = parser.parse_args(arguments)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    load = Load(
        options.addresses,
        keyspace=options.keyspace,
        tables=options.tables,
        only_these=options.only_these,
        payload_bytes=options.payload,
    )
    if options.metrics:
        from cli.demo.load_metrics import LoadMetrics

        load.metrics = LoadMetrics(load.cluster_name)
        load.metrics.serve(options.metrics)
    runner: Any = threading.Thread(target=load.run, args=(options.rate, options.seconds, stop))
    runner.start()
    while runner.is_alive():
        runner.join(COUNTS_EVERY_S)
        if options.counts:
            write_counts(options.counts, load.counts)
    load.close()
    print(json.dumps(asdict(load.counts)))


if __name__ == "__main__":
    main()
