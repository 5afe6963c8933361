"""Recordings on the command line: how they are named, found and complained of."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.main import CasstatError
from cli.times import TimeOfDay, bounds

if TYPE_CHECKING:
    from collector.journal.frames import Damage


def damage_text(file: Path, damage: "Damage") -> str:
    """Return in one line what of a file cannot be read."""
    return f"{file}: byte {damage.offset}: {damage.reason}: what follows is left out up to the next full line"


def recorded_bounds(
    begin: float | TimeOfDay | None, end: float | TimeOfDay | None, files: Sequence[Path]
) -> tuple[float, float]:
    """Return a range of times as seconds since the epoch; a time of day is one of the recording in `files`.

    Raises CasstatError.
    """
    first_s, last_s = float("-inf"), float("inf")
    if isinstance(begin, TimeOfDay) or isinstance(end, TimeOfDay):
        from collector.merging.recordings import sessions

        try:
            recorded, _ = sessions(files)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
        if not recorded:
            return first_s, last_s
        first_s, last_s = min(each.begin_s for each in recorded), max(each.end_s for each in recorded)
    return bounds(begin, end, first_s, last_s)
