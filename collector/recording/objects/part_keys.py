"""The keys of journal parts in object storage: NODE/FILE/OFFSET-TIME.

A part is a part of a journal's file that begins with a frame, so that `zstd -d` decompresses it. Its key contains its
offset in the file in bytes and the time of its first tick in milliseconds since the epoch.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from collector.recording.objects.object_store import StoredObject
from collector.recording.writer import SUFFIX, sort_key

KEY = re.compile(
    rf"(?:(?P<node>[^/]+)/)?(?P<file>[^/]+{re.escape(SUFFIX)})/(?P<offset>\d{{12}})-(?P<begin_ms>\d{{1,15}})\.zst"
)
MS = 1000


@dataclass(frozen=True)
class Part:
    """A part in object storage.

    node     the directory of the node; "" if the URL is that of one node.
    file     the name of the journal's file.
    offset   its position in the file in bytes.
    begin_s  the time of its first tick; 0 if it is unknown.
    """

    node: str
    file: str
    offset: int
    begin_s: float
    stored: StoredObject


def part_key(file: str, offset: int, begin_s: float) -> str:
    """Return the key of a part, relative to its node."""
    return f"{file}/{offset:012d}-{round(max(begin_s, 0.0) * MS):013d}.zst"


def parts_of(objects: Iterable[StoredObject]) -> dict[tuple[str, str], list[Part]]:
    """Return the parts among objects by node and file, both in order, each file's by offset.

    Of several parts at the same offset, only the largest is returned.
    """
    by_file: dict[tuple[str, str], dict[int, Part]] = {}
    for stored in objects:
        if match := KEY.fullmatch(stored.key):
            part = Part(match["node"] or "", match["file"], int(match["offset"]), int(match["begin_ms"]) / MS, stored)
            parts = by_file.setdefault((part.node, part.file), {})
            other = parts.get(part.offset)
            if other is None or other.stored.size_bytes < stored.size_bytes:
                parts[part.offset] = part
    names = sorted(by_file, key=lambda name: (name[0], sort_key(Path(name[1]))))
    return {name: [by_file[name][offset] for offset in sorted(by_file[name])] for name in names}
