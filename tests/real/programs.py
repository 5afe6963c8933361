"""casstat and the load as programs of their own, as people run them."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psutil

from cli.demo.demo_node import Node

Row = dict[str, Any]

PATIENCE_S = 120.0


class Casstat:
    """A running `casstat --format json`; its rows as they come."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "cli", *arguments, "--format", "json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.rows: list[Row] = []
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            with self._news:
                self.rows.append(json.loads(text))
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def wait_for(self, what: Callable[[list[Row]], bool], patience_s: float = PATIENCE_S) -> None:
        """Return when `what` holds of the rows so far."""
        with self._news:
            self._news.wait_for(lambda: what(self.rows) or self._ended, patience_s)
            if not what(self.rows):
                raise AssertionError(f"not seen, {self._ended=}; the last rows: {self.rows[-3:]}")

    def wait_for_rows(self, more: int) -> None:
        """Return when `more` further rows have come."""
        wanted = len(self.rows) + more
        self.wait_for(lambda rows: len(rows) >= wanted)

    def end(self) -> tuple[int, str]:
        """End it as Ctrl-C does; return its exit code and what it said on stderr."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(30)
        self._reader.join()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with self._process.stdout, self._process.stderr as stderr:
            return code, stderr.read()


@contextmanager
def casstat(*arguments: str) -> Iterator[Casstat]:
    """Run casstat while the block runs."""
    running = Casstat(*arguments)
    try:
        yield running
    finally:
        code, said = running.end()
    assert "Traceback" not in said, said
    assert code == 0, said


@contextmanager
def text_of_casstat(*arguments: str) -> Iterator[list[str]]:
    """Run casstat while the block runs; afterwards the list holds the lines that it printed."""
    lines: list[str] = []
    with subprocess.Popen([sys.executable, "-m", "cli", *arguments], stdout=subprocess.PIPE, text=True) as running:
        try:
            yield lines
        finally:
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=30)
            lines += out.splitlines()


class Load:
    """A running load; what it counted once it has ended."""

    def __init__(self, node: Node, rate: float, seconds: float = 1e9, *more: str) -> None:
        command = [sys.executable, "-m", "cli.demo.load_generator", node.spec.address, "--only-these"]
        command += ["--rate", str(rate), "--seconds", str(seconds), *more]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait(self) -> dict[str, int]:
        """Wait until its time is over; return what it counted."""
        out, _ = self._process.communicate(timeout=PATIENCE_S)
        counts: dict[str, int] = json.loads(out)
        return counts

    def end(self) -> dict[str, int]:
        """Stop it now; return what it counted."""
        self._process.terminate()
        return self.wait()


@contextmanager
def load(node: Node, rate: float, *more: str) -> Iterator[Load]:
    """Load the node while the block runs."""
    running = Load(node, rate, 1e9, *more)
    try:
        yield running
    finally:
        if running._process.poll() is None:
            running.end()


def prepare(node: Node, *more: str) -> None:
    """Create the load's schema, and warm the node up: once in the life of its process."""
    _prepare(node, node.process(), more)


@cache
def _prepare(node: Node, _process: psutil.Process | None, more: tuple[str, ...]) -> None:
    Load(node, 500, 4, *more).wait()


def write(node: Node) -> None:
    """Leave something in the load's first table that can be flushed."""
    Load(node, 500, 1).wait()


def ask(node: Node, request: dict[str, Any]) -> Any:
    """Ask the node's Jolokia for one value, by other means than casstat's own."""
    posted = urllib.request.Request(node.spec.jolokia_url, json.dumps(request).encode())  # noqa: S310 - loopback
    with urllib.request.urlopen(posted, timeout=20) as answer:  # noqa: S310
        return json.load(answer)["value"]


def nodetool(node: Node, *arguments: str) -> str:
    """Return what the node's own nodetool prints."""
    done = subprocess.run([node.spec.nodetool, *arguments], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def bucket_counts(node: Node, scope: str) -> list[int]:
    """Return the cumulative bucket counts of the node's client requests."""
    name = f"org.apache.cassandra.metrics:type=ClientRequest,scope={scope},name=Latency"
    counts: list[int] = ask(node, {"type": "exec", "mbean": name, "operation": "values()"})
    return counts


def eventually(what: Callable[[], bool], patience_s: float = 30.0) -> None:
    """Return when `what()` holds."""
    ends_s = time.monotonic() + patience_s
    while not what():
        if time.monotonic() > ends_s:
            raise AssertionError(f"not so within {patience_s} s")
        time.sleep(0.05)


def increase(rows: list[Row], rate: str) -> float:
    """Return what the rows' rates add up to."""
    return sum(float(row[rate] * row["interval_s"]) for row in rows if row[rate] is not None)
