"""Runs casstat and the load generator in subprocesses."""

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from cli.setup.demo.demo_node import Node
from collector.node.jolokia.client import HEADERS

Row = dict[str, Any]

PATIENCE_S = 120.0


def program(*arguments: str | Path) -> list[str]:
    """Return the command line that runs casstat with these arguments."""
    return [sys.executable, "-m", "cli", *map(str, arguments)]


def output(*arguments: str | Path) -> str:
    """Run casstat until it exits, which it must do with code 0 and without messages; return its output."""
    done = subprocess.run(program(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


class Casstat:
    """A running `casstat --format json`, and its rows so far."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "cli", *arguments, "--format", "json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.rows: list[Row] = []
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            with self._changed:
                self.rows.append(json.loads(text))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, holds: Callable[[list[Row]], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds for the rows so far."""
        with self._changed:
            self._changed.wait_for(lambda: holds(self.rows) or self._ended, patience_s)
            if not holds(self.rows):
                raise AssertionError(f"the condition did not hold, {self._ended=}; last rows: {self.rows[-3:]}")

    def wait_for_rows(self, more: int) -> None:
        """Wait for `more` additional rows."""
        wanted = len(self.rows) + more
        self.wait_for(lambda rows: len(rows) >= wanted)

    def end(self) -> tuple[int, str]:
        """Send SIGINT, as Ctrl-C does, and return the exit code and stderr."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(60)
        self._reader.join()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdout, self._process.stderr as stderr:
            return code, stderr.read()


@contextmanager
def casstat(*arguments: str) -> Iterator[Casstat]:
    """Run casstat until the `with` block ends; it must exit with code 0."""
    running = Casstat(*arguments)
    try:
        yield running
    finally:
        code, errors = running.end()
    assert "Traceback" not in errors, errors
    assert code == 0, errors


@contextmanager
def text_of_casstat(*arguments: str) -> Iterator[list[str]]:
    """Run casstat until the `with` block ends, and then add its output lines to the yielded list."""
    lines: list[str] = []
    with subprocess.Popen([sys.executable, "-m", "cli", *arguments], stdout=subprocess.PIPE, text=True) as running:
        try:
            yield lines
        finally:
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=60)
            lines += out.splitlines()


class Load:
    """A running load generator that counts its operations."""

    def __init__(self, node: Node, rate: float, seconds: float = 1e9, *more: str) -> None:
        command = [sys.executable, "-m", "cli.setup.demo.load_generator", node.spec.address, "--only-these"]
        command += ["--rate", str(rate), "--seconds", str(seconds), *more]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait(self) -> dict[str, int]:
        """Wait until the load ends, and return its operation counts."""
        out, _ = self._process.communicate(timeout=PATIENCE_S)
        counts: dict[str, int] = json.loads(out)
        return counts

    def end(self) -> dict[str, int]:
        """Stop the load, and return its operation counts."""
        self._process.terminate()
        return self.wait()


@contextmanager
def load(node: Node, rate: float, *more: str) -> Iterator[Load]:
    """Put the node under load until the `with` block ends."""
    running = Load(node, rate, 1e9, *more)
    try:
        yield running
    finally:
        if running._process.poll() is None:
            running.end()


def prepare(node: Node, *more: str) -> None:
    """Create the load's schema and warm up the node, unless that has been done since the node started."""
    _prepare(node, node.process(), more)


@cache
def _prepare(node: Node, _process: psutil.Process | None, more: tuple[str, ...]) -> None:
    Load(node, 500, 4, *more).wait()


def write(node: Node) -> None:
    """Write rows into the load's first table, so that there is something to flush."""
    Load(node, 500, 1).wait()


def ask(node: Node, request: dict[str, Any]) -> Any:
    """Return one value from the node's Jolokia, without using casstat's client."""
    posted = urllib.request.Request(node.spec.jolokia_url, json.dumps(request).encode(), HEADERS)  # noqa: S310 - loopback
    with urllib.request.urlopen(posted, timeout=60) as answer:  # noqa: S310
        return json.load(answer)["value"]


@contextmanager
def session(address: str) -> Iterator[Session]:
    """Return a session of the driver with one node, whose requests may take as long as a busy machine needs.

    With metadata enabled, the driver would refresh its schema metadata after each change of a table.
    """
    profile = ExecutionProfile(WhiteListRoundRobinPolicy([address]), request_timeout=PATIENCE_S)
    with Cluster(
        [address],
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=PATIENCE_S,
        control_connection_timeout=PATIENCE_S,
        schema_metadata_enabled=False,
    ) as cluster:
        yield cluster.connect()


def nodetool(node: Node, *arguments: str) -> str:
    """Run the node's nodetool and return its output."""
    result = subprocess.run([node.spec.nodetool, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return result.stdout


def bucket_counts(node: Node, scope: str) -> list[int]:
    """Return the number of client requests in each latency bucket since the node started; `scope` is Read or Write."""
    name = f"org.apache.cassandra.metrics:type=ClientRequest,scope={scope},name=Latency"
    counts: list[int] = ask(node, {"type": "exec", "mbean": name, "operation": "values()"})
    return counts


def increase(rows: list[Row], rate: str) -> float:
    """Return the total increase according to a rate column: the sum over all rows that have the rate."""
    return sum(float(row[rate] * row["interval_s"]) for row in rows if row[rate] is not None)
