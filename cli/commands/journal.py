"""Inspect recordings and check them for damage

A recording is a directory written by `casstat -w DIR`, or one of its files. `zstdcat FILE | jq` shows a file's
records.
"""

import json
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError, echo
from cli.parameters.parameter_types import format_option
from cli.parameters.recording_options import read_limits
from cli.recordings.recording_arguments import finding_text, unfinished_text
from collector.file_access import file_errors
from collector.printable import count_text

if TYPE_CHECKING:
    from collector.recording.journal_files import Summary

GROUP = "analyse"

PATHS = click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)

command = click.Group(help=__doc__)


@command.command()
@PATHS
@read_limits
def check(paths: tuple[Path, ...], max_series: int) -> None:
    """Check recordings for damaged, lost and repeated ticks

    A recording is complete if its last file ends with a footer, and open while a recorder is writing it. The exit
    code is 0 if every recording is complete or open and has no defects, else 1. Only the recorder's user and root
    can see that a recording is open.
    """
    summary = _info(paths, max_series)
    for path, finding in summary.findings:
        echo(finding_text(path, finding))
    for folder in summary.unfinished:
        echo(f"{folder}: {unfinished_text(folder)}")
    for folder in summary.continued:
        echo(f"{folder}: a later file is missing: the last file states that the recording continues in another one")
    integrity = summary.integrity
    counts = [
        count_text(summary.ticks, "tick"),
        count_text(integrity.damaged, "damaged section"),
        f"{count_text(integrity.lost, 'tick')} lost",
        f"{count_text(integrity.repeated, 'tick')} repeated",
        f"{count_text(summary.missed, 'tick')} missed",
    ]
    echo(f"{', '.join(counts)}: {summary.state}")
    if not summary.is_sound:
        sys.exit(1)


@command.command()
@PATHS
@format_option()
@read_limits
def info(paths: tuple[Path, ...], output: str, max_series: int) -> None:
    """Print the nodes, time range, size and state of recordings"""
    summary = _info(paths, max_series)
    bits = summary.bits_per_point
    figures = {
        "nodes": sorted(summary.nodes),
        "begin": summary.begin_s,
        "end": summary.end_s,
        "ticks": summary.ticks,
        "missed": summary.missed,
        "series": len(summary.series),
        "points": summary.points,
        "histograms": summary.histograms,
        "bytes": summary.bytes,
        "bits_per_point": None if bits is None else round(bits, 3),
        "damaged": summary.integrity.damaged,
        "lost": summary.integrity.lost,
        "repeated": summary.integrity.repeated,
        "state": summary.state,
    }
    if output == "json":
        echo(json.dumps(figures))
        return
    for name, value in figures.items():
        echo(f"{name:15} {_text_of(name, value)}")


def _text_of(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name in ("begin", "end") and isinstance(value, float | int):
        return datetime.fromtimestamp(value, timezone.utc).astimezone().isoformat()
    return ", ".join(value) if isinstance(value, list) else str(value)


def _info(paths: Iterable[Path], max_series: int) -> "Summary":
    from collector.recording.journal_files import info as read_info

    with file_errors("the recordings", CasstatError):
        return read_info(paths, max_series)
