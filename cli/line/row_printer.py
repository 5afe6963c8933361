"""Prints rows as samples arrive, with a countdown, headers and averages; handles Ctrl-C and SIGTERM."""

import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from cli.errors import note
from cli.line.line_recorder import EventFile
from collector.model.rates import Summary
from collector.model.snapshot import Sample
from collector.node.metrics.separate_writes import with_separate_writes
from collector.printable import count_text, printable
from exporters.rows import printed_rows
from exporters.rows.columns import Column
from exporters.rows.table_rows import table_lines
from exporters.rows.view import View, has_news, logged, with_last_known, without_running
from exporters.rows.view import interval_s as sample_interval_s

MIN_S = 2.0
ERASE = "\r\x1b[K"
BOLD, DIM, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"
ViewForSample = Callable[[Sample], View]
"""Selects the view for a sample."""


class Countdown:
    """Context manager that shows the time left until the first row, unless the wait is shorter than MIN_S."""

    def __init__(self, wait_s: float, *, shown: bool) -> None:
        self._ends_s = time.monotonic() + wait_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="countdown", daemon=True)
        self._shown = shown and wait_s >= MIN_S

    def __enter__(self) -> "Countdown":
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop and erase the countdown."""
        if self._shown:
            self._shown = False
            self._stop.set()
            self._thread.join()
            _write(ERASE)

    def _show(self) -> None:
        while not self._stop.is_set():
            remaining_s = self._ends_s - time.monotonic()
            _write(f"{ERASE}{countdown_text(remaining_s)}")
            # Wake up when the remaining time is a whole number of seconds.
            self._stop.wait(remaining_s % 1.0 or 1.0)


def countdown_text(remaining_s: float) -> str:
    """Return the countdown text. If the first row is late, `remaining_s` is zero or negative."""
    return f"first row in {math.ceil(remaining_s)} s" if remaining_s > 0 else "waiting for the first row"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass(frozen=True)
class OutputOptions:
    """Output options.

    form       "text", "json" or "csv".
    row_limit  number of rows after which to stop; None for no limit.
    events     file for log events; if None, they are printed between the rows.
    """

    form: str
    row_limit: int | None
    header: bool
    events: EventFile | None = None


@dataclass(frozen=True)
class InitialHeader:
    """The view whose header is printed before the first sample, and the time until the first row, in seconds."""

    view: View
    wait_s: float


def print_rows(
    samples: Iterable[Sample],
    view_for: ViewForSample,
    interval_s: float,
    output: OutputOptions,
    initial: InitialHeader | None = None,
) -> None:
    """Print one row per sample, then the averages; stop at the row limit, on Ctrl-C or on SIGTERM.

    Raises BrokenPipeError if the reader closes the pipe.
    """
    summary = Summary()
    view = None
    printed = answered = ticks = 0
    printer = _TextPrinter(interval_s, output) if output.form == "text" else _DataPrinter(output)
    countdown = Countdown(initial.wait_s if initial else 0.0, shown=printer.is_screen)
    with _stopped_by_signals() as stop, ExitStack() as stack:
        if initial is not None:
            printer.begin(initial.view)
        # Entered after the header is printed, because the countdown appears below it.
        stack.enter_context(countdown)
        for sample in map(with_separate_writes, samples):
            countdown.end()
            view = view_for(sample)
            # Events are written first because printing the row raises an exception if the reader has closed the pipe.
            if output.events is not None:
                output.events.append(
                    [printed_rows.event_line(sample.node, event, sample.tick.time_s) for event in logged(sample.events)]
                )
            # A signal may arrive as soon as the reader sees the row, which must then be part of the averages.
            with stop.deferred():
                summary.add(sample)
                printed += 1
                ticks += 1 + sample.tick.missed
                answered += has_news(sample)
            printer.row(view, sample)
            if printed == output.row_limit:
                break
    if stop.by_signal and not printed:
        note(f"nothing measured yet: the first row takes at least one interval ({interval_s:g} s)")
    average = summary.sample()
    if view is not None and average is not None and printed > 1:
        printer.average(view, average, _coverage(average, ticks, printed, answered, interval_s))


def _coverage(average: Sample, ticks: int, rows: int, answered: int, interval_s: float) -> str:
    """Return text that states the time covered by the averages or, if there are no rates, the number of rows.

    If some intervals, but not all, lack data from Cassandra, the text also states how many have data.
    """
    covered_s = sample_interval_s(average)
    if covered_s is None:
        return f"average of {count_text(rows, 'row')}"
    text = f"average over {covered_s:.1f} s"
    if not answered or covered_s > (ticks - 0.5) * interval_s:
        return text
    return f"{text}: {answered} of {rows} intervals had data from Cassandra"


def view_with_devices(view: View, devices: tuple[str, str]) -> View:
    """Return the view with the names of the sampled disk and interface."""
    disk, interface = devices
    return view if (disk, interface) == (view.disk, view.interface) else replace(view, disk=disk, interface=interface)


def view_for_sample(view: View, devices: tuple[str, str], sample: Sample) -> View:
    """Return the view with the current disk and interface, marked as decayed if the sample's percentiles decay.

    A view that only ever has decaying percentiles is marked from the start, so its header never changes.
    """
    view = view_with_devices(view, devices)
    decayed = view.decayed or view.operations.is_decayed(with_last_known(sample))
    return view if decayed == view.decayed else replace(view, decayed=decayed)


class _DataPrinter:
    """Prints rows as JSON or CSV."""

    is_screen = False

    def __init__(self, output: OutputOptions) -> None:
        self._header = output.header and output.form == "csv"
        self._text = printed_rows.json_row if output.form == "json" else printed_rows.csv_row

    def begin(self, view: View) -> None:
        if self._header:
            _print(printed_rows.csv_header(view))
            self._header = False

    def row(self, view: View, sample: Sample) -> None:
        self.begin(view)
        _print(self._text(view, sample))

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        """Print nothing, because programs that read JSON or CSV compute their own averages."""


class _TextPrinter:
    def __init__(self, interval_s: float, output: OutputOptions) -> None:
        self._interval_s = interval_s
        self._header = output.header
        self._events_between = output.events is None
        self._terminal = sys.stdout.isatty()
        self.is_screen = self._terminal and os.environ.get("TERM") != "dumb"
        self._colour = self.is_screen and not os.environ.get("NO_COLOR")
        self._last_header = ""
        self._since_header = 0
        self._has_rates = False

    def begin(self, view: View) -> None:
        self._groups(view)

    def row(self, view: View, sample: Sample) -> None:
        marks = printed_rows.marks(sample, self._interval_s)
        self._has_rates = self._has_rates or has_news(sample)
        if view.source == "nodetool" and not self._has_rates:
            # On a busy machine, a report takes many intervals.
            marks = "; ".join(filter(None, (marks, "waiting for nodetool's second report")))
        width = self._print_groups(view, with_last_known(sample), "", marks, YELLOW)
        below = table_lines(sample, width) if view.tables else []
        if self._events_between:
            below += [
                f"# {time.strftime('%H:%M:%S', time.localtime(event.time_s))} {event.text}"
                for event in logged(sample.events)
            ]
        for line in below:
            _print(printable(line))
        self._since_header += 1 + len(below)

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        self._print_groups(view, without_running(sample), "Average", coverage, BOLD)

    def _print_groups(self, view: View, sample: Sample, label: str, marks: str, colour: str) -> int | None:
        """Print an interval's lines and its marks; return the terminal width (None without a terminal)."""
        groups, width = self._groups(view)
        for columns in groups[:-1]:
            self._print_header(view, columns)
            _print(printable(printed_rows.text_row(replace(view, compactions=False), columns, sample, label, width)))
        if len(groups) > 1:
            self._print_header(view, groups[-1])
        self._print_marked(printed_rows.text_row(view, groups[-1], sample, label, width), marks, colour)
        if len(groups) > 1:
            _print("")
        return width

    def _print_marked(self, text: str, marks: str, colour: str) -> None:
        """Print a row and its marks; the marks move to the next line if the terminal is too narrow."""
        text = printable(text)
        if not marks:
            _print(text)
            return
        marks = printable(f"# {marks}")
        fits = not self._terminal or len(text) + 2 + len(marks) <= shutil.get_terminal_size().columns
        _print(f"{text}{'  ' if fits else chr(10)}{self._paint(colour, marks)}")

    def _groups(self, view: View) -> tuple[list[list[Column]], int | None]:
        """Return the columns of each line in an interval, and the terminal width (None without a terminal).

        If an interval fits on one line, also prints the header whenever the columns have changed or the screen is
        full. If it needs several lines, the caller prints a header above each of them, in every interval.
        """
        size = shutil.get_terminal_size() if self._terminal else None
        width = size.columns if size else None
        groups = printed_rows.groups(view, width)
        if len(groups) > 1:
            return groups, width
        header = printed_rows.text_header(view, groups[0])
        screen_full = size is not None and self._since_header >= max(size.lines - 2, 5)
        if self._header and (header != self._last_header or screen_full):
            if header != self._last_header and (hidden := printed_rows.hidden_text(view, groups[0])):
                _print(self._paint(DIM, f"# {hidden}"))
            self._print_header(view, groups[0])
            self._last_header, self._since_header = header, 0
        return groups, width

    def _print_header(self, view: View, columns: list[Column]) -> None:
        if self._header:
            _print(self._paint(BOLD, printable(printed_rows.text_header(view, columns))))

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self._colour else text


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _Stop:
    """Raises KeyboardInterrupt on SIGINT and SIGTERM, and records which of them arrived."""

    def __init__(self) -> None:
        self.by_signal = self.by_term = False
        self._deferring = False

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal; after the first SIGTERM, further ones are ignored."""
        self.by_signal = True
        if number == signal.SIGTERM:
            # `timeout` signals both the process and its group; the second signal must not interrupt the closing of
            # files.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self.by_term = True
        if not self._deferring:
            raise KeyboardInterrupt

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let a signal that arrives within the block raise KeyboardInterrupt at its end."""
        self._deferring = True
        yield
        self._deferring = False
        if self.by_signal:
            raise KeyboardInterrupt


@contextmanager
def _stopped_by_signals() -> Iterator[_Stop]:
    """Let Ctrl-C or SIGTERM end the block but not the program."""
    stop = _Stop()
    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, stop.on_signal)}
    # A shell lets the jobs that it starts in the background ignore SIGINT.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, stop.on_signal)
    try:
        yield stop
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            # The terminal may have echoed ^C, so start the averages on a new line.
            _print("")
    finally:
        for number, handler in before.items():
            if number != signal.SIGTERM or not stop.by_term:
                signal.signal(number, handler)
