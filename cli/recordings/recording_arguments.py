"""Helpers for commands that take recordings: findings as text, time ranges, and name checks."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError
from cli.line.line_program import missing_recorded_message
from cli.parameters.parameter_types import TimeOfDay, bounds
from collector.printable import count_text

if TYPE_CHECKING:
    from collector.recording.reader import Finding, Integrity


def finding_text(file: Path, finding: "Finding") -> str:
    """Return a one-line description of a finding in a file."""
    return f"{file}: byte {finding.offset}: {finding.reason}"


def integrity_text(integrity: "Integrity") -> str:
    """Return the number of defects of each kind as text; "" if there are none."""
    counts = [
        (integrity.damaged, "damaged section", "damaged sections"),
        (integrity.lost, "tick lost", "ticks lost"),
        (integrity.repeated, "tick repeated or out of order", "ticks repeated or out of order"),
        (integrity.unfinished, "session without a footer", "sessions without a footer"),
        (integrity.continued, "session without its last file", "sessions without their last file"),
    ]
    return ", ".join(count_text(*count) for count in counts if count[0])


def unfinished_text(folder: Path) -> str:
    """Return the message for a directory that has a session without a footer and is not known to be in use."""
    from collector.recording.files import LockState, lock_state
    from collector.recording.writer import LOCK

    if lock_state(folder) is not LockState.UNKNOWN:
        return "no footer: the recorder was killed, or the file was truncated"
    lock = folder / LOCK
    try:
        users = " or ".join(dict.fromkeys((lock.owner(), "root")))
    except (OSError, KeyError):
        users = "root"
    return (
        f"no footer: cannot tell whether a recorder is still writing: no permission to open {lock} "
        f"(hint: run this command as {users})"
    )


def recorded_bounds(
    begin: float | TimeOfDay | None, end: float | TimeOfDay | None, files: Sequence[Path]
) -> tuple[float, float]:
    """Return a time range in seconds since the epoch; a time of day is resolved within the recording in `files`.

    Raises CasstatError.
    """
    first_s, last_s = float("-inf"), float("inf")
    if isinstance(begin, TimeOfDay) or isinstance(end, TimeOfDay):
        from collector.merge.recordings import sessions

        try:
            recorded, _ = sessions(files)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
        if not recorded:
            return first_s, last_s
        first_s, last_s = min(session.begin_s for session in recorded), max(session.end_s for session in recorded)
    return bounds(begin, end, first_s, last_s)


def check_names(keyspace: str, table: str, files: Iterable[Path], max_series: int) -> None:
    """Raise CasstatError unless one of the files contains the keyspace and the table; an empty name is not checked.

    Also raises click.UsageError if a table is given without a keyspace, and TooManySeriesError if there are more than
    `max_series` series.
    """
    if table and not keyspace:
        raise click.UsageError("--table needs --keyspace")
    if not keyspace:
        return
    from collector.recording.files import recorded_tables
    from collector.recording.header import SeriesLimit

    existing: set[tuple[str, str]] = set()
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(file.parent, []).append(file)
    for folder, of_folder in by_folder.items():
        try:
            for name in recorded_tables(of_folder, SeriesLimit(max_series, str(folder))):
                if fnmatchcase(name[0], keyspace) and (fnmatchcase(name[1], table) if table else True):
                    return
                existing.add(name)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
    raise CasstatError(missing_recorded_message(keyspace, table, existing))
