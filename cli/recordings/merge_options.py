"""The options that `casstat merge` and other merging commands share."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import click

from cli.parameters.parameter_types import Duration, TimeOfDay, name_of, range_options, with_options
from cli.parameters.recording_options import RecordingPath
from collector.recording.header import MAX_SERIES
from collector.runs.run import MAX_OFFSET_S

MIN_S, MAX_S = 0.001, 86400.0


@dataclass(frozen=True)
class MergeSettings:
    """Merge options.

    phase   the phase of a run to which the time range is limited.
    points  the maximum number of intervals; ignored if `interval` is set. If both are None, the default interval
            applies.
    """

    paths: tuple[Path, ...]
    interval: float | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    nodes: str = ""
    clocks: tuple[tuple[str, float], ...] = ()
    keyspace: str = ""
    table: str = ""
    phase: str | None = None
    points: int | None = None
    max_series: int = MAX_SERIES


def _clock(text: str) -> tuple[str, float]:
    """Return the node, and the seconds by which its clock is ahead, in NODE=SECONDS. Raises ValueError."""
    node, _, number = text.rpartition("=")
    try:
        seconds = float(number)
    except ValueError:
        seconds = nan
    # Reject NaN, and offsets of more than a century, which must be typos.
    if not abs(seconds) <= MAX_OFFSET_S:
        raise ValueError(f"'{text}': expected NODE=SECONDS, with at most {MAX_OFFSET_S:.0f} seconds")
    return node, seconds


def merge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all merging commands share."""
    options = [
        click.argument("paths", type=RecordingPath(), nargs=-1, required=True),
        click.option(
            "-i",
            "--interval",
            type=Duration(MIN_S, MAX_S),
            help="Interval between rows."
            "  [merge: 5s; plot: chosen to give at most 300 points; the recording's if longer]",
        ),
        range_options,
        click.option(
            "--nodes",
            default="",
            metavar="NAMES",
            help="Nodes to include, comma-separated (patterns with * and ? allowed).  [all]",
        ),
        click.option(
            "--clock",
            "clocks",
            type=_clock,
            multiple=True,
            metavar="NODE=SECONDS",
            help="Seconds by which NODE's clock is ahead (repeatable).",
        ),
        click.option("--phase", metavar="NAME", help="Use only this phase of a run."),
        click.option(
            "-k",
            "--keyspace",
            metavar="NAME",
            callback=name_of,
            help="Show this keyspace's local reads and writes instead of the whole node's.",
        ),
        click.option(
            "-c",
            "--table",
            metavar="NAME",
            callback=name_of,
            help="Show this table instead of the whole keyspace (requires --keyspace).",
        ),
    ]
    return with_options(options, command)
