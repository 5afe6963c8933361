"""Checkpoints: the last tick that a sink's store has received, in a small file per sink, replaced atomically."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from collector.file_access import replace_file
from collector.model.snapshot import Identity
from collector.printable import one_line
from collector.recording.writer import Position

MAX_BYTES = 1 << 16
LAST_S = 1e11
ODD = re.compile(r"[^A-Za-z0-9.-]+")


class CheckpointError(Exception):
    """A checkpoint file is malformed; the message is one line."""


@dataclass(frozen=True)
class Checkpoint:
    """The last tick that the store has received.

    time_s, session  identify the tick.
    position         where to resume reading, far enough back for correct rates in the following ticks.
    identity         the node's identity at that tick.
    sink_state       the state of the sink after that tick; empty for most sinks.
    """

    time_s: float
    session: str
    position: Position
    identity: Identity
    sink_state: Mapping[str, Any] = field(default_factory=dict)


def checkpoint_path(folder: Path, sink: str) -> Path:
    """Return the path of a sink's checkpoint file in a directory."""
    return folder / f"{file_name(sink)}.checkpoint.json"


def upload_checkpoint(state: Path, store: str, node: str) -> Path:
    """Return the path of the checkpoint of a node's uploads to a store."""
    return state / f"{file_name(f'{store}/{node}')}.upload.json"


def file_name(sink: str) -> str:
    """Return a file name that is different for every sink."""
    return f"{ODD.sub('_', sink)[:100]}-{crc32(sink.encode()):08x}"


def load(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file, or None if the file does not exist. Raises OSError and CheckpointError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        checkpoint = _parsed(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: malformed checkpoint ({one_line(type(error).__name__)})") from None
    return checkpoint


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically. Raises OSError."""
    replace_file(path, json.dumps(asdict(checkpoint)).encode())


def _parsed(content: Any) -> Checkpoint:
    position, identity = Position(**content["position"]), Identity(**content["identity"])
    time_s, session = content["time_s"], content["session"]
    if not all(isinstance(text, str) for text in (session, position.file, *content["identity"].values())):
        raise TypeError("a name is not text")
    if type(time_s) not in (int, float) or not 0 <= time_s <= LAST_S:
        raise ValueError("time out of range")
    if type(content["position"]["offset"]) is not int or position.offset < 0 or "/" in position.file:
        raise ValueError("invalid position")
    sink_state = content.get("sink_state", {})
    if not isinstance(sink_state, dict):
        raise TypeError("the sink's state is not an object")
    return Checkpoint(time_s, session, position, identity, sink_state)
