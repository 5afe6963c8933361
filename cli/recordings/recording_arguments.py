"""Recordings on the command line: how they are named, found and complained of."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import CasstatError
from cli.parameters.time_types import TimeOfDay, bounds

if TYPE_CHECKING:
    from collector.journal.tick_order import Finding, Integrity


def finding_text(file: Path, finding: "Finding") -> str:
    """Return in one line what is wrong with a file."""
    return f"{file}: byte {finding.offset}: {finding.reason}"


def integrity_text(integrity: "Integrity") -> str:
    """Return in words what is wrong with recordings; "" for nothing."""
    counts = [
        (integrity.damaged, "damaged place", "damaged places"),
        (integrity.lost, "tick lost", "ticks lost"),
        (integrity.repeated, "tick repeated or out of order", "ticks repeated or out of order"),
        (integrity.unfinished, "session ended without a footer", "sessions ended without a footer"),
        (integrity.continued, "session of which a later file is missing", "sessions of which a later file is missing"),
    ]
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)


def recorded_bounds(
    begin: float | TimeOfDay | None, end: float | TimeOfDay | None, files: Sequence[Path]
) -> tuple[float, float]:
    """Return a range of times as seconds since the epoch; a time of day is one of the recording in `files`.

    Raises CasstatError.
    """
    first_s, last_s = float("-inf"), float("inf")
    if isinstance(begin, TimeOfDay) or isinstance(end, TimeOfDay):
        from collector.cluster.recordings import sessions

        try:
            recorded, _ = sessions(files)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
        if not recorded:
            return first_s, last_s
        first_s, last_s = min(each.begin_s for each in recorded), max(each.end_s for each in recorded)
    return bounds(begin, end, first_s, last_s)
