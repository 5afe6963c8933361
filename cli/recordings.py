"""Recordings on the command line: how they are named, found and complained of."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.journal.frames import Damage


def damage_text(file: Path, damage: "Damage") -> str:
    """Return in one line what of a file cannot be read."""
    return f"{file}: byte {damage.offset}: {damage.reason}: what follows is left out up to the next full line"
