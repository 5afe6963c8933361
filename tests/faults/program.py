"""Runs the real program in a subprocess, and reads its rows as they are printed."""

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any

from tests.faults.fake_node import FakeNode

Row = dict[str, Any]
PATIENCE_S = 60.0
# What a busy machine may add to the duration of a block.
MARGIN_S = 60.0


def environment(**environ: str) -> dict[str, str]:
    """Return the current environment without the variables that change casstat's output, but with `environ` added."""
    removed = ("CASSTAT_", "NO_COLOR", "COLUMNS", "LINES", "PYTHONUNBUFFERED", "PYTHONWARNINGS")
    return {**{key: value for key, value in os.environ.items() if not key.startswith(removed)}, **environ}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli", *arguments]


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the program until it exits, with `environ` added to its environment."""
    return subprocess.run(
        command(*arguments), env=environment(**environ), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


class Program:
    """A running `casstat ARGUMENTS`. It is killed when the `with` block ends."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self._process = subprocess.Popen(
            command(*arguments),
            env=environment(**environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._errors: queue.Queue[str] = queue.Queue()
        self._threads = [
            _follow(self._process.stdout, self._lines),
            _follow(self._process.stderr, self._errors),
        ]

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._end()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def line(self) -> str:
        """Wait for the next line on stdout and return it."""
        try:
            return self._lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError(f"no line printed; stderr: {_all(self._errors)}") from None

    def message(self) -> str:
        """Wait for the next line on stderr and return it; `end` returns only the lines after it."""
        try:
            return self._errors.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise AssertionError("no message printed") from None

    def row(self) -> Row:
        row: Row = json.loads(self.line())
        return row

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def pause(self, seconds: float) -> None:
        """Suspend the process for `seconds`, like Ctrl-Z followed by `fg`."""
        self.send(signal.SIGSTOP)
        threading.Event().wait(seconds)
        self.send(signal.SIGCONT)

    def unread_lines(self) -> list[str]:
        """Return the lines that have not been read yet; the program must have ended."""
        return _all(self._lines)

    def end(self, number: signal.Signals | None = signal.SIGINT) -> tuple[int, str]:
        """Send a signal, if any, wait for the process to exit, and return the exit code and stderr."""
        if number is not None:
            self.send(number)
        self._end()
        return self._process.returncode, "".join(_all(self._errors))

    def _end(self) -> None:
        self._process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _follow(stream: IO[str] | None, lines: "queue.Queue[str]") -> threading.Thread:
    def follow() -> None:
        with contextlib.suppress(ValueError):
            for line in stream or ():
                lines.put(line)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    return thread


def _all(lines: "queue.Queue[str]") -> list[str]:
    return [lines.get_nowait() for _ in range(lines.qsize())]


class Load:
    """Makes a fake node do reads, and counts both these reads and the reads in the program's rows."""

    def __init__(self, program: Program, node: FakeNode, per_row: int = 100) -> None:
        self.rows: list[Row] = []
        self.reads_done = 0
        self.program = program
        self._node = node
        self._per_row = per_row

    def next(self, *, busy: bool = True) -> Row:
        """Return the next row; if `busy`, make the node do some reads afterwards."""
        row = self.program.row()
        self.rows.append(row)
        if busy:
            self._node.do_reads(self._per_row)
            self.reads_done += self._per_row
        return row

    def until(self, fits: Callable[[Row], bool], *, busy: bool = True) -> Row:
        """Return the first new row for which `fits` returns true."""
        ends_s = time.monotonic() + PATIENCE_S
        while not fits(row := self.next(busy=busy)):
            assert time.monotonic() < ends_s, f"no such row among {self.rows[-10:]}"
        return row

    def settle(self) -> None:
        """Wait for a row of a later tick, so that the rows contain all reads."""
        now_s = time.time()
        self.until(lambda row: row["time"] > now_s and has_reads(row), busy=False)

    def reads_reported(self) -> float:
        """Return the total number of reads in all rows."""
        return sum(increase(self.rows))

    def check(self) -> None:
        """Assert that each read is in exactly one row, and that no row has more reads than were done."""
        assert abs(self.reads_reported() - self.reads_done) < 1e-3 * self.reads_done + 1
        assert max(increase(self.rows), default=0) <= self.reads_done + 1


def increase(rows: list[Row]) -> list[float]:
    """Return the number of reads in each row that has a rate."""
    return [row["reads_per_s"] * row["interval_s"] for row in rows if row["reads_per_s"] is not None]


def has_reads(row: Row) -> bool:
    return row["reads_per_s"] is not None


def lacks_reads(row: Row) -> bool:
    return row["reads_per_s"] is None


def event_kinds(row: Row) -> set[str]:
    return {event["kind"] for event in row["events"]}


def is_missed_tick(text: str) -> bool:
    """Return whether an event of a row states missed ticks, which a busy machine can always cause."""
    return re.fullmatch(r"\d+ ticks? missed", text) is not None


def event_texts(row: Row) -> str:
    return "; ".join(event["text"] for event in row["events"])


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Assert that the block takes at most `seconds`, plus a margin for a busy machine."""
    began_s = time.monotonic()
    yield
    assert time.monotonic() - began_s < seconds + MARGIN_S


def is_one_line(message: str) -> bool:
    """Return whether a message is one printable line of at most 500 characters."""
    return message.isprintable() and 0 < len(message) <= 500


def is_clean(errors: str) -> bool:
    """Return whether stderr contains only casstat's messages, one per line."""
    return all(line.startswith("casstat: ") and is_one_line(line) for line in errors.split("\n")[:-1]) and (
        errors == "" or errors.endswith("\n")
    )
