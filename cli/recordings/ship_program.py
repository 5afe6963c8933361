"""Ships every recording to every store, one after another."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from cli.errors import CasstatError, echo, errors_as, note
from cli.parameters.access_options import warn_of_sink
from cli.parameters.parameter_types import TimeOfDay
from cli.recordings.recording_arguments import NodeFiles, files_by_node, recorded_bounds
from collector.file_access import file_errors
from collector.printable import count_text
from collector.recording.header import MAX_SERIES, SeriesLimit
from collector.recording.writer import Position, sort_key
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper
from exporters.sinks.shipping.tick_queue import Journal, RecordingReader, file_name
from exporters.sinks.sink import Sink, SinkUrlError

SHOWN_S = 0.5


@dataclass(frozen=True)
class Order:
    """The options of `casstat ship`; see `casstat ship --help`."""

    path: Path
    urls: tuple[str, ...]
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    state: Path | None = None
    patience_s: float = 60.0
    max_series: int = MAX_SERIES
    phase: str | None = None


def ship(order: Order) -> bool:
    """Ship the recordings; return whether all stores accepted everything. Raises CasstatError."""
    recordings = _recordings(order)
    for url in order.urls:
        _sink(url).close()
    # Build the whole list first, because `all` would stop a generator at the first failure and skip the other stores.
    arrived = [_shipped(order, url, recording) for url in order.urls for recording in recordings]
    return all(arrived)


def _shipped(order: Order, url: str, recording: NodeFiles) -> bool:
    sink, files = _sink(url), recording.files
    # One state directory per node; each store has its own files in it, because stores progress independently.
    state_folder = None if order.state is None else order.state / file_name(str(files[0].resolve().parent))
    begin_s, end_s = recorded_bounds(recording.begin, recording.end, files)
    plan = Plan(
        _opened(files, order.max_series), state_folder=state_folder, cpu_share=1.0, begin_s=begin_s, end_s=end_s
    )
    patience = _Patience(order.patience_s)
    shipping = patience.shipping = Shipper(sink, plan, Runtime(patience.wait), note)
    try:
        with file_errors(order.path, CasstatError):
            while not shipping.stopped and shipping.step():
                patience.show(shipping)
    finally:
        shipping.close()
        patience.end()
        health = shipping.health()
        echo(f"{sink.name}: {_summary(shipping.ticks, health.points, health.refused_points, health.lost_ticks)}")
    if shipping.stopped:
        note(f"{sink.name}: accepted nothing for {order.patience_s:g} s: {health.reason}")
    return not shipping.stopped and not health.refused_points


class _Patience:
    """Limits the wait for a store that is not accepting anything, and shows the progress on a terminal."""

    shipping: Shipper

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._down_s: float | None = None
        self._points = 0
        self._shown_s = 0.0
        self._begun = False

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds`; return whether the store has accepted nothing for longer than allowed."""
        if not seconds:
            return False
        health, now_s = self.shipping.health(), time.monotonic()
        if health.up or health.points > self._points:
            self._down_s, self._points = None, health.points
        self._down_s = now_s if self._down_s is None and not health.up else self._down_s
        left_s = inf if self._down_s is None else self._down_s + self._longest_s - now_s
        time.sleep(max(min(seconds, left_s), 0.0))
        return seconds > left_s

    def show(self, shipping: Shipper) -> None:
        """Show the progress on a terminal, at most every SHOWN_S seconds."""
        now_s = time.monotonic()
        if sys.stderr.isatty() and now_s - self._shown_s >= SHOWN_S:
            self._shown_s, self._begun = now_s, True
            click.echo(
                f"\r{count_text(shipping.ticks, 'tick')}, {count_text(shipping.health().points, 'point')}",
                err=True,
                nl=False,
            )

    def end(self) -> None:
        if self._begun:
            click.echo(err=True)


def _summary(ticks: int, points: int, refused: int, lost: int) -> str:
    rest = [f"{count_text(refused, 'point')} refused"] if refused else []
    rest += [f"{count_text(lost, 'tick')} missing from the recording"] if lost else []
    return ", ".join([f"shipped {count_text(ticks, 'tick')}, {count_text(points, 'point')}", *rest])


def _opened(files: list[Path], max_series: int) -> Callable[[Position | None], Journal]:
    def opened(start: Position | None) -> Journal:
        names = [file.name for file in files]
        limit = SeriesLimit(max_series, str(files[0].parent))
        if start is None:
            return RecordingReader(files, limit)
        if start.file in names:
            return RecordingReader(files[names.index(start.file) :], limit)
        return RecordingReader((file for file in files if sort_key(file) >= sort_key(Path(start.file))), limit)

    return opened


def _recordings(order: Order) -> list[NodeFiles]:
    """Return the recording of each node. Raises CasstatError and click.UsageError."""
    recordings = files_by_node(order.path, order.phase, order.begin, order.end)
    with file_errors(order.path, CasstatError):
        for recording in recordings.values():
            for file in recording.files:
                file.open("rb").close()
    if not recordings:
        raise CasstatError(f"{order.path}: no recording found")
    return list(recordings.values())


def _sink(url: str) -> Sink[Any]:
    warn_of_sink(url)
    with errors_as(partial(click.BadParameter, param_hint="--to"), SinkUrlError):
        return sink_of(url)
