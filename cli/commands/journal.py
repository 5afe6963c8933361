"""Say what is inside a recording, and what of it is damaged."""

import json
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.main import CasstatError

if TYPE_CHECKING:
    from collector.journal.info import Info

PATHS = click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Say what is inside a recording, and what of it is damaged.

    A recording is a folder that `casstat -w DIR` has written, or one of its files; `zstdcat FILE | jq` shows its
    lines.
    """


@command.command()
@PATHS
def check(paths: tuple[Path, ...]) -> None:
    """Read all of it; name every place that is damaged. The exit code is 1 when there is one."""
    found = _info(paths)
    for path, damage in found.damaged:
        click.echo(f"{path}: byte {damage.offset}: {damage.reason}")
    click.echo(f"{found.ticks} ticks, {len(found.damaged)} damaged places, {found.missed} ticks missed")
    if found.damaged:
        sys.exit(1)


@command.command()
@PATHS
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="How to print.  [text]")
def info(paths: tuple[Path, ...], output: str) -> None:
    """Print how much there is, of which node and time, and how many bits each value takes."""
    found = _info(paths)
    bits = found.bits_per_point
    figures = {
        "nodes": sorted(found.nodes),
        "begin": found.begin_s,
        "end": found.end_s,
        "ticks": found.ticks,
        "missed": found.missed,
        "series": len(found.series),
        "points": found.points,
        "histograms": found.histograms,
        "bytes": found.bytes,
        "bits_per_point": None if bits is None else round(bits, 3),
        "damaged": len(found.damaged),
    }
    if output == "json":
        click.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        click.echo(f"{name:15} {_shown(name, value)}")


def _shown(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name in ("begin", "end") and isinstance(value, float | int):
        return datetime.fromtimestamp(value, timezone.utc).astimezone().isoformat()
    return ", ".join(value) if isinstance(value, list) else str(value)


def _info(paths: Iterable[Path]) -> "Info":
    from collector.journal.info import info as read_info
    from collector.journal.info import journal_files

    try:
        return read_info(file for path in paths for file in journal_files(path))
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
