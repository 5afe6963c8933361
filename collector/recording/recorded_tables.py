"""The keyspaces and tables in a recording."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from collector.node.metrics.tables import KEYSPACE_OPERATIONS, REMAINDERS
from collector.recording.frames import Damage
from collector.recording.read_limits import SeriesLimit
from collector.recording.reader import read_lines
from collector.recording.record_lines import parsed
from collector.recording.validation import MALFORMED, texts_of

TABLE_OPERATIONS = REMAINDERS[KEYSPACE_OPERATIONS]


def recorded_tables(files: Iterable[Path], limit: SeriesLimit) -> Iterator[tuple[str, str]]:
    """Yield (keyspace, "") for each keyspace and (keyspace, table) for each table with recorded operations.

    The same pair may be yielded several times. Only records with new series are parsed, and damage is skipped. Raises
    OSError, TooManySeriesError.
    """
    for file in files:
        for line in read_lines(file):
            if not isinstance(line, Damage) and b'"s":' in line:
                yield from _tables_of(_content(line), limit)


def _content(line: bytes) -> Mapping[str, Any]:
    try:
        return parsed(line)
    except MALFORMED:
        return {}


def _tables_of(content: Mapping[str, Any], limit: SeriesLimit) -> list[tuple[str, str]]:
    try:
        series = [texts_of(names) for names in content.get("s", ())]
    except MALFORMED:
        return []
    limit.take(series)
    tables: list[tuple[str, str]] = []
    for _, name, *labels in (names for names in series if len(names) > 2):
        if name == KEYSPACE_OPERATIONS:
            tables.append((labels[0], ""))
        elif name == TABLE_OPERATIONS and len(labels) > 1:
            tables += [(labels[0], ""), (labels[0], labels[1])]
    return tables
