"""What a module in `formats` defines, and how a result's format is recognised.

A module describes one format: NAME, `recognises`, and `read`. Adding a format means adding a module.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from collector.clients import formats
from collector.clients.client_result import ClientResult

HEAD_BYTES = 1 << 16


class ClientFormatError(ValueError):
    """A file is not a readable result; the message is one line without the path."""


@dataclass(frozen=True)
class CommandTimes:
    """When the load generator was started and when it ended, in seconds since the epoch on the run's clock."""

    begin_s: float
    end_s: float


class ClientFormat(Protocol):
    """A module that reads one format."""

    NAME: str

    def recognises(self, head: str) -> bool:
        """Return whether a file that begins with the text `head` (at most HEAD_BYTES of it) is in this format."""

    def read(self, path: Path, times: CommandTimes) -> ClientResult:
        """Read a file. `times` places a result without times of day. Raises ClientFormatError and OSError."""


def client_formats() -> Mapping[str, ClientFormat]:
    """Return all formats by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__) if not module.ispkg)
    modules = [cast("ClientFormat", importlib.import_module(f"{formats.__name__}.{name}")) for name in names]
    return {module.NAME: module for module in modules}


def recognised_format(path: Path) -> ClientFormat:
    """Return the format of a file. Raises ClientFormatError if none or several recognise it, and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode(errors="replace").removeprefix("\ufeff")
    if not head.strip():
        raise ClientFormatError("empty")
    known = client_formats()
    matching = [candidate for candidate in known.values() if candidate.recognises(head)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise ClientFormatError(f"not the result of a known load generator (known formats: {', '.join(known)})")
    names = ", ".join(candidate.NAME for candidate in matching)
    raise ClientFormatError(f"may be in several formats: {names} (hint: name one, as FORMAT:FILE)")
