"""Nodes with ten minutes of history for tests of `casstat fetch`, and helpers that run it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from collector.recording.journal_files import journal_files
from collector.recording.reader import Integrity, TickOrder, entries, read
from tests.collector.merge.recorded_nodes import busy, record
from tests.faults.recording_agent import serving

# The default number of ticks in a node's journal, one per second.
TICKS = 600


@dataclass(frozen=True)
class RecordedNode:
    """A node whose agent has recorded one tick per second since `begin_s`.

    address  the address of its agent.
    journal  the directory of its journal.
    """

    address: str
    journal: Path
    begin_s: float

    def period(self, first: float, last: float) -> tuple[str, ...]:
        """Return the options for a period, in seconds since the node's first tick."""
        return "--from", str(self.begin_s + first), "--until", str(self.begin_s + last)

    @property
    def whole_period(self) -> tuple[str, ...]:
        """The options for the period from the node's first tick until now."""
        return "--from", str(self.begin_s)

    @property
    def file(self) -> Path:
        """The journal's only file."""
        (file,) = journal_files(self.journal)
        return file


@contextmanager
def serving_history(
    folder: Path, name: str, ticks: int = TICKS, begin_s: float | None = None
) -> Iterator[RecordedNode]:
    """Serve the API of an agent with `ticks` ticks, one per second from `begin_s` on, by default TICKS seconds ago."""
    begin_s = float(int(time.time()) - TICKS) if begin_s is None else begin_s
    record(folder, busy(name, ticks, begin_s=begin_s))
    with serving(folder, name) as served:
        yield RecordedNode(served.address, folder, begin_s)


def fetch(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run `casstat fetch`; return its exit status, stdout and stderr."""
    code = main(["fetch", *map(str, arguments)])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def ticks_of(folder: Path) -> list[float]:
    """Return the times of the ticks in the journals below a directory; the journals must be intact."""
    files = list(journal_files(folder))
    order = TickOrder()
    for file in files:
        list(order.filtered(read(file)))
    assert order.integrity() == Integrity()
    return [entry.snapshot.tick.time_s for file in files for entry in entries(read(file))]
