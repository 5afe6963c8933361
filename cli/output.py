"""Printing rows as they come: headers, averages, closed pipes and Ctrl-C."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from cli.event_file import EventFile
from collector.model import Sample
from collector.rates import Summary
from exporters import line, table
from exporters.columns import Column
from exporters.events import event_line
from exporters.tables import table_lines
from exporters.view import View, has_news, interval_s, logged, with_held, without_running

BOLD, YELLOW, PLAIN = "\x1b[1m", "\x1b[33m", "\x1b[0m"


@dataclass(frozen=True)
class Output:
    """How to print: "text", "json" or "csv", after how many rows to end (None: never), and whether with a header.

    events  where what the node's log tells is written; None for between the rows.
    """

    form: str
    rows: int | None
    header: bool
    events: EventFile | None = None


Show = Callable[[Sample], View]
"""What to show of a sample."""


def print_rows(samples: Iterable[Sample], show: Show, tick_s: float, output: Output) -> None:
    """Print a row for every sample; end after the last one, on Ctrl-C, or when nobody reads on."""
    whole = Summary()
    view = None
    printed = with_news = ticks = 0
    printer = _Text(tick_s, output) if output.form == "text" else _Lines(output)
    with _ended_by_signals():
        for sample in samples:
            view = show(sample)
            # Before the row, with which all may end: nobody reads on, or Ctrl-C.
            if output.events is not None:
                output.events.append([event_line(sample.node, each, sample.tick.time_s) for each in logged(sample)])
            printer.row(view, sample)
            whole.add(sample)
            printed += 1
            ticks += 1 + sample.tick.missed
            with_news += has_news(sample)
            if printed == output.rows:
                break
    average = whole.sample()
    if view is not None and average is not None and printed > 1:
        printer.average(view, average, _coverage(average, ticks, printed, with_news, tick_s))


def _coverage(average: Sample, ticks: int, rows: int, with_news: int, tick_s: float) -> str:
    """Return how long the averages cover, and of how many rows where Cassandra answered for a part of the run only."""
    covered_s = interval_s(average) or 0.0
    text = f"average over {covered_s:.1f} s"
    if not with_news or covered_s > (ticks - 0.5) * tick_s:
        return text
    return f"{text}: {with_news} of {rows} intervals had data from Cassandra"


def shown(view: View, devices: tuple[str, str], sample: Sample) -> View:
    """Return the view with the disk and interface that are now watched, and whether its percentiles are decayed."""
    disk, interface = devices
    decayed = view.operations.is_decayed(with_held(sample))
    if (disk, interface, decayed) == (view.disk, view.interface, view.decayed):
        return view
    return replace(view, disk=disk, interface=interface, decayed=decayed)


class _Lines:
    """Rows of JSON or CSV."""

    def __init__(self, output: Output) -> None:
        self._header = output.header and output.form == "csv"
        self._text = table.json_row if output.form == "json" else table.csv_row

    def row(self, view: View, sample: Sample) -> None:
        if self._header:
            _print(table.csv_header(view))
            self._header = False
        _print(self._text(view, sample))

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        """Print nothing: a program can compute the averages it wants."""


class _Text:
    """Rows for people."""

    def __init__(self, interval_s: float, output: Output) -> None:
        self._interval_s = interval_s
        self._header = output.header
        self._events_between = output.events is None
        self._terminal = sys.stdout.isatty()
        self._colour = self._terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._last_header = ""
        self._since_header = 0

    def row(self, view: View, sample: Sample) -> None:
        columns, width = self._columns(view)
        text = line.row(view, columns, with_held(sample), width=width)
        self._print_marked(text, line.marks(sample, self._interval_s), YELLOW)
        below = table_lines(sample, width) if view.tables else []
        if self._events_between:
            below += [f"# {time.strftime('%H:%M:%S', time.localtime(e.time_s))} {e.text}" for e in logged(sample)]
        for each in below:
            _print(each)
        self._since_header += 1 + len(below)

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        columns, width = self._columns(view)
        text = line.row(view, columns, without_running(sample), "Average", width)
        self._print_marked(text, coverage, BOLD)

    def _print_marked(self, text: str, marks: str, colour: str) -> None:
        """Print a row and what is to be said of it: in a line of its own where the terminal has no room beside."""
        if not marks:
            _print(text)
            return
        marks = f"# {marks}"
        fits = not self._terminal or len(text) + 2 + len(marks) <= shutil.get_terminal_size().columns
        _print(f"{text}{'  ' if fits else chr(10)}{self._paint(colour, marks)}")

    def _columns(self, view: View) -> tuple[list[Column], int | None]:
        """Return the columns that fit, and into what; print a header when it is time for one or they have changed."""
        size = shutil.get_terminal_size() if self._terminal else None
        width = size.columns if size else None
        columns = line.fitting(view, width)
        header = line.header(view, columns)
        screen_full = size is not None and self._since_header >= max(size.lines - 2, 5)
        if self._header and (header != self._last_header or screen_full):
            _print(self._paint(BOLD, header))
            self._last_header, self._since_header = header, 0
        return columns, width

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self._colour else text


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the block, and nothing more."""

    def on_term(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, on_term)
    try:
        yield
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            # What the terminal echoed for Ctrl-C shall not stand before the averages.
            _print("")
    finally:
        signal.signal(signal.SIGTERM, before)
