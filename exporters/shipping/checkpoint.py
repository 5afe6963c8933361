"""Up to where a sink has everything: a small file for each sink, replaced whole."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from collector.atomic_file import replace_file
from collector.journal.writer import Position
from collector.model.identity import Identity
from collector.printable import one_line

LARGEST_BYTES = 1 << 16
LAST_S = 1e11
ODD = re.compile(r"[^A-Za-z0-9.-]+")


class CheckpointError(Exception):
    """A checkpoint is there but says nothing sensible; the message says so in one line."""


@dataclass(frozen=True)
class Checkpoint:
    """The last tick that the store has.

    time_s, session  which one it is.
    position         where reading must begin so that the rates after it are right.
    identity         who the node was known to be.
    """

    time_s: float
    session: str
    position: Position
    identity: Identity


def checkpoint_path(folder: Path, sink: str) -> Path:
    """Return the file of a sink's checkpoint in a folder."""
    return folder / f"{file_name(sink)}.checkpoint.json"


def file_name(sink: str) -> str:
    """Return a sink's name fit for a file, unlike that of every other sink."""
    return f"{ODD.sub('_', sink)[:100]}-{crc32(sink.encode()):08x}"


def load(path: Path) -> Checkpoint | None:
    """Return what a file says; None when there is none. Raises OSError and CheckpointError."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES)
    except FileNotFoundError:
        return None
    try:
        found = _of(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: is no checkpoint ({one_line(type(error).__name__)})") from None
    return found


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace what a file says: whole or not at all. Raises OSError."""
    replace_file(path, json.dumps(asdict(checkpoint)).encode())


def _of(said: Any) -> Checkpoint:
    position, identity = Position(**said["position"]), Identity(**said["identity"])
    time_s, session = said["time_s"], said["session"]
    if not all(isinstance(text, str) for text in (session, position.file, *said["identity"].values())):
        raise TypeError("a number for a name")
    if type(time_s) not in (int, float) or not 0 <= time_s <= LAST_S:
        raise ValueError("a time that cannot be")
    if type(said["position"]["offset"]) is not int or position.offset < 0 or "/" in position.file:
        raise ValueError("a place that cannot be")
    return Checkpoint(time_s, session, position, identity)
