"""What the node was called when it last said so: kept, so that its series go on when it is down as the agent starts."""

import contextlib
from pathlib import Path

FILE = "node"
LONGEST = 255


class KnownNode:
    """The name in a file beside the journal."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.name = ""
        with contextlib.suppress(OSError, ValueError):
            name = self._path.read_text(encoding="utf-8")[: LONGEST + 1].strip()
            self.name = name if name.isprintable() and len(name) <= LONGEST else ""

    def told(self, name: str) -> None:
        """Take what the node says its name is; without room on the disk it is asked again next time."""
        if name == self.name:
            return
        self.name = name
        with contextlib.suppress(OSError):
            beside = self._path.with_name(f".{FILE}.new")
            beside.write_text(name, encoding="utf-8")
            beside.replace(self._path)
