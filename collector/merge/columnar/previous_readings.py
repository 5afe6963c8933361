"""For the series of a block, the time since their previous readings; see `collector.model.rates`."""

from collections.abc import Sequence

import numpy as np

from collector.merge.columnar.column_selection import Selection
from collector.merge.columnar.decode import Block
from collector.merge.columnar.last_readings import LastReading
from collector.merge.columns import Bools, Floats, Ints
from collector.recording.codec import CodingError


class PreviousReadings:
    """For each line and series, the time since the previous reading, and whether no reset has occurred since then.

    Most series of a source appear on the same lines and were last read at the same time. They form a group, and the
    results are computed once per group. Each matrix below has one column per group.

    group_of   for each series, the number of its group.
    last       the line of the latest reading so far; -1 if there is none in the block.
    at         the completion time.
    origins    the origin, an index into `names`.
    elapsed    the time since the previous reading.
    continues  whether there is a previous reading without a reset since then.
    """

    def __init__(self, block: Block, carried: Sequence[LastReading | None], present: Bools) -> None:
        self.names = list(dict.fromkeys(["", *(last_reading.origin for last_reading in carried if last_reading)]))
        self.group_of = _groups(block, carried, present)
        representatives = np.unique(self.group_of, return_index=True)[1].tolist()
        self._sources = [block.series[column_index][0] for column_index in representatives]
        carried = [carried[column_index] for column_index in representatives]
        present = present[:, representatives]
        lines, number = present.shape
        self.at, self.origins = self._readings(block)
        rows = np.where(present, np.arange(lines)[:, None], -1)
        self.last = np.maximum.accumulate(rows, axis=0)
        before = np.vstack([np.full((1, number), -1), self.last[:-1]])
        first_at = np.asarray([last_reading.at_s if last_reading else np.nan for last_reading in carried], np.float64)
        first_origin = np.asarray(
            [self.names.index(last_reading.origin) if last_reading else 0 for last_reading in carried], np.int64
        )
        column = np.arange(number)
        at_before = np.where(before >= 0, self.at[before, column], first_at)
        if np.isnan(self.at[present]).any():
            raise CodingError("series without a source")
        known = present & ~np.isnan(at_before)
        origin_before = np.where(before >= 0, self.origins[before, column], first_origin)
        same = (self.origins == origin_before) | (self.origins == 0) | (origin_before == 0)
        self.restarted: dict[int, list[str]] = {}
        self.ended: list[tuple[int, int]] = []
        if (known & ~same).any():
            self._restarts(known, same, before, origin_before)
        with np.errstate(invalid="ignore"):
            self.elapsed: Floats = self.at - at_before
            self.continues: Bools = known & same & (self.elapsed > 0)

    def covered(self, is_counter: Bools, selected: Selection, valid: Bools) -> dict[str, Floats]:
        """Return the time that each line's rates cover, for each source with counters; 0 for a line without rates.

        It is the minimum over the source's counters, as in `collector.model.rates`. `valid` has the lines on which the
        selected counters have a rate; a counter that is not selected has one wherever its group continues.
        """
        covered: dict[str, Floats] = {}
        for group, source in enumerate(self._sources):
            own = (self.group_of == group) & is_counter
            if not own.any():
                continue
            numbers = selected.number_of[own]
            has_rate = self.continues[:, group] if (numbers < 0).any() else valid[:, numbers].any(axis=1)
            elapsed = np.where(has_rate, self.elapsed[:, group], np.inf)
            covered[source] = np.minimum(covered[source], elapsed) if source in covered else elapsed
        return {source: np.where(np.isinf(elapsed), 0.0, elapsed) for source, elapsed in covered.items()}

    def _readings(self, block: Block) -> tuple[Floats, Ints]:
        """Return the completion time and origin for each line and group."""
        shape = len(block.ticks), len(self._sources)
        at, origins = np.full(shape, np.nan), np.zeros(shape, np.int64)
        for source, times_s in block.completion_times().items():
            at[:, self._columns_of(source)] = times_s[:, None]
        for line, source, origin in block.origins:
            if origin not in self.names:
                self.names.append(origin)
            origins[line:, self._columns_of(source)] = self.names.index(origin)
        return at, origins

    def _columns_of(self, source: str) -> list[int]:
        return [column for column, other in enumerate(self._sources) if other == source]

    def _restarts(self, known: Bools, same: Bools, before: Ints, origin_before: Ints) -> None:
        """Find the restarts, and discard readings from before each restart."""
        lines, columns = np.nonzero(known & ~same)
        for line, column in zip(lines.tolist(), columns.tolist(), strict=True):
            if not known[line, column]:
                continue
            source = self._sources[column]
            self.restarted.setdefault(line, [])
            if source not in self.restarted[line]:
                self.restarted[line].append(source)
            origin = int(origin_before[line, column])
            if (line, origin) not in self.ended:
                self.ended.append((line, origin))
                later = (np.arange(len(known)) > line)[:, None] & (before <= line) & (origin_before == origin)
                known &= ~later


def _groups(block: Block, carried: Sequence[LastReading | None], present: Bools) -> Ints:
    """Return each series' group; groups are numbered in the order of their first series."""
    # Bits of rows are packed several times as fast as those of columns.
    patterns = np.packbits(np.ascontiguousarray(present.T), axis=1)
    numbers: dict[tuple[str, bytes, float | None, str], int] = {}
    groups = []
    for (source, _), last, pattern in zip(block.series, carried, patterns, strict=True):
        at_s, origin = (None, "") if last is None else (last.at_s, last.origin)
        groups.append(numbers.setdefault((source, pattern.tobytes(), at_s, origin), len(numbers)))
    return np.asarray(groups, np.int64)
