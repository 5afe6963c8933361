"""Printing rows as they come: headers, averages, closed pipes and Ctrl-C."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from cli.errors import note
from cli.line.countdown import Countdown
from cli.line.event_file import EventFile
from collector.model.rates import Summary
from collector.model.sample import Sample
from collector.printable import printable
from exporters.line import json_csv, text_row
from exporters.line.columns import Column
from exporters.line.event_text import event_line
from exporters.line.table_rows import table_lines
from exporters.line.view import View, has_news, interval_s, logged, with_held, without_running

BOLD, DIM, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"


@dataclass(frozen=True)
class RowPrinter:
    """How to print: "text", "json" or "csv", after how many rows to end (None: never), and whether with a header.

    events  where what the node's log tells is written; None for between the rows.
    """

    form: str
    rows: int | None
    header: bool
    events: EventFile | None = None


Show = Callable[[Sample], View]
"""What to show of a sample."""


@dataclass(frozen=True)
class Beginning:
    """What is printed before the first sample: the header of a view, and how long its first row will take."""

    view: View
    wait_s: float


def print_rows(
    samples: Iterable[Sample], show: Show, tick_s: float, output: RowPrinter, beginning: Beginning | None = None
) -> None:
    """Print a row for every sample; end after the last one, on Ctrl-C, or when nobody reads on."""
    whole = Summary()
    view = None
    printed = with_news = ticks = 0
    printer = _Text(tick_s, output) if output.form == "text" else _Lines(output)
    countdown = Countdown(beginning.wait_s if beginning else 0.0, shown=printer.is_screen)
    with _ended_by_signals() as ending, ExitStack() as stack:
        if beginning is not None:
            printer.begin(beginning.view)
        # In the line below the header.
        stack.enter_context(countdown)
        for sample in samples:
            countdown.end()
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
    if ending.by_signal and not printed:
        note(f"nothing measured yet: the first row takes a whole interval ({tick_s:g} s)")
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


def with_devices(view: View, devices: tuple[str, str]) -> View:
    """Return the view with the disk and interface that are watched."""
    disk, interface = devices
    return view if (disk, interface) == (view.disk, view.interface) else replace(view, disk=disk, interface=interface)


def shown(view: View, devices: tuple[str, str], sample: Sample) -> View:
    """Return the view with the disk and interface that are now watched, and whether its percentiles are decayed.

    Where they always are, the view says so itself, so that its header is the same before the first values.
    """
    view = with_devices(view, devices)
    decayed = view.decayed or view.operations.is_decayed(with_held(sample))
    return view if decayed == view.decayed else replace(view, decayed=decayed)


class _Lines:
    """Rows of JSON or CSV."""

    is_screen = False

    def __init__(self, output: RowPrinter) -> None:
        self._header = output.header and output.form == "csv"
        self._text = json_csv.json_row if output.form == "json" else json_csv.csv_row

    def begin(self, view: View) -> None:
        if self._header:
            _print(json_csv.csv_header(view))
            self._header = False

    def row(self, view: View, sample: Sample) -> None:
        self.begin(view)
        _print(self._text(view, sample))

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        """Print nothing: a program can compute the averages it wants."""


class _Text:
    """Rows for people."""

    def __init__(self, interval_s: float, output: RowPrinter) -> None:
        self._interval_s = interval_s
        self._header = output.header
        self._events_between = output.events is None
        self._terminal = sys.stdout.isatty()
        self.is_screen = self._terminal and os.environ.get("TERM") != "dumb"
        self._colour = self.is_screen and not os.environ.get("NO_COLOR")
        self._last_header = ""
        self._since_header = 0

    def begin(self, view: View) -> None:
        self._groups(view)

    def row(self, view: View, sample: Sample) -> None:
        width = self._print_groups(view, with_held(sample), "", text_row.marks(sample, self._interval_s), YELLOW)
        below = table_lines(sample, width) if view.tables else []
        if self._events_between:
            below += [f"# {time.strftime('%H:%M:%S', time.localtime(e.time_s))} {e.text}" for e in logged(sample)]
        for each in below:
            _print(printable(each))
        self._since_header += 1 + len(below)

    def average(self, view: View, sample: Sample, coverage: str) -> None:
        self._print_groups(view, without_running(sample), "Average", coverage, BOLD)

    def _print_groups(self, view: View, sample: Sample, label: str, marks: str, colour: str) -> int | None:
        """Print the lines of an interval, the marks beside the last; return the terminal's width."""
        groups, width = self._groups(view)
        for columns in groups[:-1]:
            self._print_header(view, columns)
            _print(printable(text_row.row(replace(view, compactions=False), columns, sample, label, width)))
        if len(groups) > 1:
            self._print_header(view, groups[-1])
        self._print_marked(text_row.row(view, groups[-1], sample, label, width), marks, colour)
        if len(groups) > 1:
            _print("")
        return width

    def _print_marked(self, text: str, marks: str, colour: str) -> None:
        """Print a row and what is to be said of it: in a line of its own where the terminal has no room beside."""
        text = printable(text)
        if not marks:
            _print(text)
            return
        marks = printable(f"# {marks}")
        fits = not self._terminal or len(text) + 2 + len(marks) <= shutil.get_terminal_size().columns
        _print(f"{text}{'  ' if fits else chr(10)}{self._paint(colour, marks)}")

    def _groups(self, view: View) -> tuple[list[list[Column]], int | None]:
        """Return the columns of each line of an interval, and the width that they fit into.

        Print a header when it is time for one or the columns have changed; groups get theirs in every interval.
        """
        size = shutil.get_terminal_size() if self._terminal else None
        width = size.columns if size else None
        groups = text_row.groups(view, width)
        if len(groups) > 1:
            return groups, width
        header = text_row.header(view, groups[0])
        screen_full = size is not None and self._since_header >= max(size.lines - 2, 5)
        if self._header and (header != self._last_header or screen_full):
            if header != self._last_header and (hidden := text_row.hidden_text(view, groups[0])):
                _print(self._paint(DIM, f"# {hidden}"))
            self._print_header(view, groups[0])
            self._last_header, self._since_header = header, 0
        return groups, width

    def _print_header(self, view: View, columns: list[Column]) -> None:
        if self._header:
            _print(self._paint(BOLD, printable(text_row.header(view, columns))))

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{PLAIN}" if self._colour else text


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass
class _Ending:
    """Whether a signal ended the rows."""

    by_signal: bool = False


@contextmanager
def _ended_by_signals() -> Iterator[_Ending]:
    """Let Ctrl-C and SIGTERM end the block, and nothing more."""
    ending = _Ending()

    def on_term(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, on_term)
    try:
        yield ending
    except KeyboardInterrupt:
        ending.by_signal = True
        if sys.stdout.isatty():
            # What the terminal echoed for Ctrl-C shall not stand before the averages.
            _print("")
    finally:
        signal.signal(signal.SIGTERM, before)
