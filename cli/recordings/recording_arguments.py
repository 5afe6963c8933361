"""Recordings on the command line: findings as text, and time ranges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import CasstatError
from cli.parameters.time_types import TimeOfDay, bounds

if TYPE_CHECKING:
    from collector.journal.tick_order import Finding, Integrity


def finding_text(file: Path, finding: "Finding") -> str:
    """Return the one-line text of a finding in a file."""
    return f"{file}: byte {finding.offset}: {finding.reason}"


def integrity_text(integrity: "Integrity") -> str:
    """Return the counts of all defects as text; "" for none."""
    counts = [
        (integrity.damaged, "damaged place", "damaged places"),
        (integrity.lost, "tick lost", "ticks lost"),
        (integrity.repeated, "tick repeated or out of order", "ticks repeated or out of order"),
        (integrity.unfinished, "session without a footer", "sessions without a footer"),
        (integrity.continued, "session without its last file", "sessions without their last file"),
    ]
    return ", ".join(f"{count} {singular if count == 1 else plural}" for count, singular, plural in counts if count)


def recorded_bounds(
    begin: float | TimeOfDay | None, end: float | TimeOfDay | None, files: Sequence[Path]
) -> tuple[float, float]:
    """Return a time range in seconds since the epoch; a time of day refers to the recording in `files`.

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
        first_s, last_s = min(session.begin_s for session in recorded), max(session.end_s for session in recorded)
    return bounds(begin, end, first_s, last_s)
