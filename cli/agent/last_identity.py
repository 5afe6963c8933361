"""Stores the identity that the node last reported, so that its series keep their labels while it is down."""

import json
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path

from collector.atomic_file import replace_file
from collector.model.identity import Identity
from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import read_text

FILE = "identity.json"
MAX_CHARS = 255


class LastIdentity:
    """The node's last identity, stored in a file beside the journal; empty if the file is missing or malformed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.identity = _loaded(self._path)

    def update(self, identity: Identity) -> None:
        """Save the identity that the node now reports; after a write error, the next call tries again."""
        if identity == self.identity:
            return
        with suppress(OSError):
            replace_file(self._path, json.dumps(asdict(identity)).encode())
            self.identity = identity


def _loaded(path: Path) -> Identity:
    try:
        content = json.loads(read_text(path))
        identity = Identity(**{field.name: content[field.name] for field in fields(Identity)})
    except (SourceError, ValueError, RecursionError, TypeError, KeyError):
        return Identity()
    texts = asdict(identity).values()
    usable = all(isinstance(text, str) and text.isprintable() and len(text) <= MAX_CHARS for text in texts)
    return identity if usable else Identity()
