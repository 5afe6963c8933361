"""Records a node's snapshots in its journal, and its events in a file.

Write errors never stop the program; lost events are counted and reported.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from cli.errors import CasstatError, errors_as
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.node.host import timekeeping
from collector.node.host.host_source import identity_of
from collector.node.node_sampler import NodeSampler
from collector.node.selection import Selection
from collector.printable import count_text, one_line
from collector.recording.header import Header
from collector.recording.writer import Journal, JournalError, Limits

MODE = 0o666


class EventFile:
    """Appends event lines to a file. Lines that cannot be written, for example because the disk is full, are lost.

    Reports the first failed write of an outage and, after the recovery, the number of lost lines.
    """

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        """Open the file for appending; messages go to `report`. Raises CasstatError if the file cannot be written."""
        self._name = one_line(path)
        self._report = report
        self._lost = 0
        self._failing = False
        try:
            self._descriptor: int | None = _open_for_append(path)
        except OSError as error:
            raise CasstatError(f"{self._name}: cannot write events: {error.strerror}") from None
        # The unwritten rest of a partial line; it must be written before the next line.
        self._pending = _missing_line_feed(self._descriptor)

    def append(self, lines: Sequence[str]) -> None:
        """Write lines immediately, each followed by a line feed. Lines that cannot be written are lost and counted."""
        if self._descriptor is None or not lines:
            return
        encoded = [f"{line}\n".encode(errors="replace") for line in lines]
        written, reason = self._write(self._descriptor, self._current_pending(self._descriptor), encoded)
        if reason:
            self._lost += self._count_lost(encoded, written)
            if not self._failing:
                self._report(f"{self._name}: {reason}: events will be lost until the file is writable again")
        elif self._failing:
            self._report(f"{self._name}: writing again; {count_text(self._lost, 'event')} lost")
            self._lost = 0
        self._failing = bool(reason)

    def close(self) -> None:
        """Close the file. If the last write failed, report the number of events lost in this outage."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = None
        if self._lost:
            self._report(f"{self._name}: {count_text(self._lost, 'event')} lost")

    def _current_pending(self, descriptor: int) -> bytes:
        """Return the unwritten rest of the partial line, or b"" if the file has been emptied in the meantime."""
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            self._pending = b""
        return self._pending

    def _write(self, descriptor: int, pending: bytes, encoded: list[bytes]) -> tuple[int, str]:
        """Write `pending` and `encoded`; return the number of bytes of `encoded` that were written, and the error text.

        The number is negative if even `pending` was not written completely.
        """
        remaining = memoryview(pending + b"".join(encoded))
        total = len(remaining)
        try:
            while remaining:
                remaining = remaining[os.write(descriptor, remaining) :]
        except OSError as error:
            written = total - len(remaining) - len(pending)
            self._pending = pending[written:] if written < 0 else b""
            return written, error.strerror or "write failed"
        self._pending = b""
        return total - len(pending), ""

    def _count_lost(self, encoded: list[bytes], written: int) -> int:
        """Return the number of lines that were not even partly written; the rest of a partial line becomes pending."""
        for index, line in enumerate(encoded):
            if written <= 0:
                return len(encoded) - index
            if written < len(line):
                self._pending = line[written:]
            written -= len(line)
        return 0


def _open_for_append(path: Path) -> int:
    """Return a non-blocking descriptor for appending. Raises OSError."""
    flags = os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # Checking the last byte requires read access.
        descriptor = os.open(path, flags | os.O_RDWR, MODE)
    except PermissionError:
        descriptor = os.open(path, flags | os.O_WRONLY, MODE)
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
        os.close(descriptor)
        raise OSError(0, "neither a regular file nor a terminal")
    return descriptor


def _missing_line_feed(descriptor: int) -> bytes:
    r"""Return b"\n" if the file ends with a partial line from an earlier writer; b"" if not, or if it is unreadable."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return b""
    with contextlib.suppress(OSError):
        return b"" if os.pread(descriptor, 1, status.st_size - 1) == b"\n" else b"\n"
    return b""


def journal_limits(total_bytes: int | None, sync: str) -> Limits:
    """Return the limits of a node's journal; if `total_bytes` is None, the default size applies."""
    return replace(Limits(), sync=sync, **({} if total_bytes is None else {"total_bytes": total_bytes}))


def open_journal(
    sampler: NodeSampler,
    folder: Path,
    limits: Limits,
    selection: Selection,
    interval_s: float,
    report: Callable[[str], None],
) -> Journal:
    """Return a journal in `folder` for the sampler's snapshots. Raises CasstatError if it cannot be opened."""
    answered_before = sampler.answered
    session = f"{time.time():.3f} {os.getpid()}"
    names = selection.metrics
    metrics = tuple(metric for name, metric in sorted(CATALOGUE.items()) if names is None or name in names)

    def identity() -> object:
        return sampler.host, sampler.facts.jvm, sampler.facts.origin

    def header() -> Header:
        disk, interface = sampler.devices
        boot, network = identity_of(sampler.host)
        return Header(
            writer=version("casstat"),
            session=session,
            interval_s=interval_s,
            zone=time.localtime().tm_gmtoff,
            boot=boot,
            network=network,
            process=f"{sampler.facts.jvm} {sampler.facts.origin}" if sampler.facts.jvm else "",
            error_s=_clock_error_s(),
            way=sampler.kind,
            sources=tuple(sampler.node_sources),
            paced=sampler.paced,
            met=answered_before,
            disk=disk,
            interface=interface,
            metrics=metrics,
        )

    with errors_as(CasstatError, JournalError):
        return Journal(folder, header, limits, report, identity)


def recorded(snapshots: Iterable[Snapshot], journal: Journal) -> Iterator[Snapshot]:
    """Append each snapshot to the journal, then yield it."""
    for snapshot in snapshots:
        journal.append(snapshot)
        yield snapshot


def _clock_error_s() -> float | None:
    try:
        state = timekeeping.clock_state()
    except (OSError, AttributeError):
        return None
    return state.max_error_s if state.synchronised else None
