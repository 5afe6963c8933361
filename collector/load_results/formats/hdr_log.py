"""HdrHistogram's interval log, as cassandra-stress, NoSQLBench, latte, scylla-bench, YCSB and others write it.

The format is that of HdrHistogram's HistogramLogProcessor. A log does not state the unit of its values. Most load
generators for Cassandra use nanoseconds, which are assumed; YCSB uses microseconds. `hdr_histogram.py` states which
histograms of a log are counted.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from collector.load_results import client_result
from collector.load_results import hdr_histogram as hdr
from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, ResultClock, SourceFile
from collector.load_results.client_result import MAX_COUNTS, ClientInterval, ClientResult, Latency, Operation
from collector.load_results.formats.ycsb import ycsb_tag
from collector.load_results.hdr_histogram import FAILED, RESPONSE, SERVICE, SUCCEEDED
from collector.load_results.operation_times import SECONDS_PER_DAY, require_near
from collector.load_results.parsing import GrowingLines, label_of, read_lines

NAME = "hdr-log"
UNITS_NS = {"ns": 1, "us": 1000, "ms": 1_000_000}
# Timestamps that precede the log's start by more than this are relative to it, as in HdrHistogram's reader.
YEAR_S = 365.0 * 86400
# In a log without a header, times from this one on (in 2001) are seconds since the epoch.
MIN_ABSOLUTE_S = 1e9
# Times are rounded to milliseconds, so intervals without a gap may seem to have one.
MIN_GAP_S = 0.01
MAX_TAGS = 500
_NUMBER = r"\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?"
_BASE_TIME = re.compile(rf"#\[BaseTime: ({_NUMBER})")
_START_TIME = re.compile(rf"#\[StartTime: ({_NUMBER})")
_UNIT = re.compile(r"#UNITS: .*\bvalues in the histogram = (nano|micro|milli)seconds")
_LOGGING_FOR = re.compile(r"#\[Logging for: (.+)\]")
_INTERVAL = re.compile(
    rf"(?:Tag=(?P<tag>[^,]*),)?(?P<begin_s>{_NUMBER}),(?P<length_s>{_NUMBER}),[^,]*,(?P<histogram>[^\s,]+)"
)
_BEGIN = re.compile(r'^(#\[|"StartTimestamp"|(Tag=[^,\n]*,)?[\d.]+,[\d.]+,[^,\n]*,HIST)', re.MULTILINE)

Span = tuple[float, float]
Histograms = dict[Span, Counter[int]]
# The histograms of an interval by kind.
Group = tuple[Span, dict[str, Counter[int]]]
Key = TypeVar("Key")


def recognises(text: str) -> bool:
    return ",HIST" in text and bool(_BEGIN.search(text))


def read(file: SourceFile) -> ClientResult:
    log = _Log(file)
    notes = read_lines(file.path, log.add)
    if not log.by_tag:
        raise ClientFormatError("the log has no intervals")
    operations = log.operations(is_complete=not notes)
    failed = sum(operation.summary.failed for operation in operations if operation.summary)
    notes += client_result.failed_note(failed) if log.has_latencies_of_failed else []
    return file.result(log.tool, operations, [*notes, *log.notes()], estimated_clock=log.is_estimated)


def growing(_head: bytes, options: Mapping[str, str]) -> GrowingLines:
    # Only totals are taken, so the time at which the log starts is not needed.
    log = _Log(SourceFile(NAME, Path(), CommandTimes(0.0, 0.0), options))
    return GrowingLines(log.add, log.take)


FORMATS = (Format(NAME, recognises, read, growing, {"unit": tuple(UNITS_NS), "metric": ()}, clock=ResultClock.EITHER),)


class _Log:
    """The histograms of a log by tag and interval."""

    def __init__(self, file: SourceFile) -> None:
        self.by_tag: defaultdict[str, Histograms] = defaultdict(dict)
        self.is_estimated = False
        self.tool = "HdrHistogram log"
        self.has_latencies_of_failed = False
        self._file = file
        self._unit = file.options.get("unit", "")
        self._notes: list[str] = []
        self._measurement = ""
        self._stated_base_s: float | None = None
        self._deduced_base_s: float | None = None
        self._start_s: float | None = None
        # When the last interval of the log begins.
        self._last_s = 0.0
        self._totals: Counter[str] = Counter()
        self._count = 0
        self._width_s = 1.0

    def add(self, line: str) -> None:
        line = line.strip()
        if match := _BASE_TIME.match(line):
            self._stated_base_s = float(match[1])
        elif match := _START_TIME.match(line):
            # Logs that were concatenated have several starts.
            self._start_s, self._deduced_base_s = float(match[1]), None
        elif match := _UNIT.match(line):
            # Later versions of NoSQLBench state the unit (HistoIntervalLogger).
            self._unit = self._unit or {"nano": "ns", "micro": "us", "milli": "ms"}[match[1]]
        elif match := _LOGGING_FOR.match(line):
            self.tool, self._measurement = "YCSB", match[1]
        elif line and not line.startswith(("#", '"')):
            self._add_interval(line)

    def _add_interval(self, line: str) -> None:
        match = _INTERVAL.fullmatch(line)
        if match is None:
            raise ValueError("not an interval")
        begin_s = self._absolute_s(float(match["begin_s"]))
        interval = begin_s, begin_s + float(match["length_s"])
        tag = match["tag"] or (ycsb_tag(self._measurement) if self._measurement else "")
        counts = hdr.decoded(match["histogram"])
        if tag not in self.by_tag and len(self.by_tag) >= MAX_TAGS:
            raise ValueError(f"the log has more than {MAX_TAGS} tags (hint: log fewer metrics)")
        # Logs of several threads may have the same interval more than once.
        histogram = self.by_tag[tag].setdefault(interval, Counter())
        histogram.update({value * self._unit_ns: count for value, count in counts.items()})
        self._last_s = begin_s
        self._totals[tag] += sum(counts.values())
        self._count += 1 + len(counts)
        while self._count > 2 * MAX_COUNTS and self._width_s < SECONDS_PER_DAY:
            # Memory does not grow with the log.
            self._width_s *= 2
            self._join_intervals()

    def _join_intervals(self) -> None:
        """Join intervals that begin within the same `_width_s` seconds; all tags then have the same intervals."""
        joined: dict[float, Span] = {}
        for span in (span for histograms in self.by_tag.values() for span in histograms):
            known = joined.setdefault(span[0] // self._width_s, span)
            joined[span[0] // self._width_s] = min(known[0], span[0]), max(known[1], span[1])
        for tag, histograms in self.by_tag.items():
            self.by_tag[tag] = _sum({joined[span[0] // self._width_s]: counts} for span, counts in histograms.items())
        self._count = self._counted()

    def _counted(self) -> int:
        return sum(1 + len(counts) for spans in self.by_tag.values() for counts in spans.values())

    @property
    def _unit_ns(self) -> int:
        return UNITS_NS[self._unit or ("us" if self.tool == "YCSB" else "ns")]

    def _absolute_s(self, time_s: float) -> float:
        """Return a time in seconds since the epoch, as HdrHistogram's reader does."""
        if self._stated_base_s is not None:
            return self._stated_base_s + time_s
        if self._deduced_base_s is None:
            self._deduced_base_s = self._base_of(time_s)
        return self._deduced_base_s + time_s

    def _base_of(self, time_s: float) -> float:
        """Return the offset to add to the times of a log that does not state one, given its first time."""
        if self._start_s is not None:
            return self._start_s if time_s < self._start_s - YEAR_S else 0.0
        if time_s >= MIN_ABSOLUTE_S:
            return 0.0
        self.is_estimated = True
        return self._file.times.begin_s

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each operation since the last call, and forget it.

        An interval is part of it when a later one has begun: then all its histograms are known, and which of them are
        counted, and how many operations failed, depends on all of them.
        """
        taken: dict[str, Histograms] = {}
        for tag, histograms in self.by_tag.items():
            spans = [span for span in histograms if _middle_s(span) < self._last_s]
            taken[tag] = {span: histograms.pop(span) for span in spans}
        self._count = self._counted()
        if not any(taken.values()):
            return ()
        operations = (Operation(name, total=_total(kinds)) for name, kinds in self._operations(taken).items())
        return tuple(operation for operation in operations if operation.total)

    def operations(self, *, is_complete: bool) -> tuple[Operation, ...]:
        """Return the operations; after an incomplete log's last interval, nothing is known about an operation."""
        if self._width_s > 1:
            self._join_intervals()
        # The number of operations of each tag by interval, in the order of the intervals.
        series = {tag: [counts.total() for _, counts in sorted(spans.items())] for tag, spans in self.by_tag.items()}
        hdr.require_distinct(series, self._file)
        operations = self._operations(self.by_tag)
        spans = [span for kinds in operations.values() for histograms in kinds.values() for span in histograms]
        begin_s, end_s = min(begin_s for begin_s, _ in spans), max(end_s for _, end_s in spans)
        require_near(begin_s, end_s)
        return tuple(
            Operation(name, tuple(_without_gaps(_intervals(kinds), begin_s, end_s if is_complete else begin_s)))
            for name, kinds in operations.items()
        )

    def _operations(self, by_tag: Mapping[str, Histograms]) -> dict[str, dict[str, Histograms]]:
        """Return the histograms that are counted by operation and kind; all tags of the log decide which these are.

        Raises ClientFormatError.
        """
        parts, self._notes = hdr.chosen(self._totals, self._file)
        operations: defaultdict[str, dict[str, Histograms]] = defaultdict(dict)
        for tag, part in parts.items():
            self.has_latencies_of_failed |= part.kind == SUCCEEDED
            kinds = operations[label_of(part.operation).lower()]
            kinds[part.kind] = _sum([kinds[part.kind], by_tag[tag]]) if part.kind in kinds else by_tag[tag]
        return dict(sorted(operations.items()))

    def notes(self) -> list[str]:
        notes = list(self._notes)
        if self._width_s > 1:
            notes.append(client_result.joined_note(self._width_s))
        if not self._unit:
            unit = "microseconds, the unit of YCSB," if self.tool == "YCSB" else "nanoseconds"
            notes.append(
                f"the file does not state the unit of its latencies: {unit} assumed (hint: {NAME},unit=us:FILE)"
            )
        return notes


def _sum(series: Iterable[Mapping[Key, Counter[int]]]) -> dict[Key, Counter[int]]:
    total: defaultdict[Key, Counter[int]] = defaultdict(Counter)
    for counts_by_key in series:
        for key, counts in counts_by_key.items():
            total[key].update(counts)
    return dict(total)


def _without_gaps(intervals: Iterable[ClientInterval], begin_s: float, end_s: float) -> Iterator[ClientInterval]:
    """Yield the intervals and, between `begin_s` and `end_s`, those that the log omits because nothing completed."""
    for interval in intervals:
        if interval.begin_s - begin_s > MIN_GAP_S:
            yield ClientInterval(begin_s, interval.begin_s, 0)
        yield interval
        begin_s = interval.end_s
    if end_s - begin_s > MIN_GAP_S:
        yield ClientInterval(begin_s, end_s, 0)


def _intervals(kinds: Mapping[str, Histograms]) -> Iterator[ClientInterval]:
    """Yield the intervals of an operation, which are those of its first kind of latencies if it has several."""
    groups = _with_length(_same_intervals(kinds))
    attempted = [_completed(counts) for _, counts in groups]
    # Most logs do not state what succeeded, and an incomplete one lacks the last histogram of some kinds.
    succeeded = [
        counts[SUCCEEDED].total() if SUCCEEDED in counts else number
        for (_, counts), number in zip(groups, attempted, strict=True)
    ]
    for (span, counts), failed in zip(groups, hdr.failed_in(attempted, succeeded), strict=True):
        yield _interval(span, counts, failed)


def _same_intervals(kinds: Mapping[str, Histograms]) -> list[Group]:
    """Return the spans in order, each with the histograms of all kinds that are of the same interval.

    NoSQLBench reads its histograms one after the other, so their times differ slightly.
    """
    groups: list[Group] = []
    for kind in sorted(kinds, key=hdr.KINDS.index):
        alone, position = [], 0
        for span in sorted(kinds[kind]):
            while position < len(groups) and _middle_s(groups[position][0]) < span[0]:
                position += 1
            same, counts = groups[position] if position < len(groups) else (span, {})
            if counts and (same == span or same[0] < _middle_s(span) < same[1]):
                counts[kind] = kinds[kind][span]
                position += 1
            else:
                alone.append((span, {kind: kinds[kind][span]}))
        groups = sorted([*groups, *alone], key=itemgetter(0))
    return groups


def _middle_s(span: Span) -> float:
    return (span[0] + span[1]) / 2


def _with_length(groups: Iterable[Group]) -> list[Group]:
    """Return intervals, each with its histograms, and with those of no length before and at its end."""
    joined: list[Group] = []
    empty: list[Group] = []
    for span, counts in groups:
        if span[0] < span[1]:
            joined.append((span, _with(counts, empty)))
            empty = []
        elif joined and span[0] <= joined[-1][0][1]:
            joined[-1] = joined[-1][0], _with(joined[-1][1], [(span, counts)])
        else:
            empty.append((span, counts))
    if not joined:
        return [((empty[0][0][0], empty[-1][0][1]), _with({}, empty))] if empty else []
    return [*joined[:-1], (joined[-1][0], _with(joined[-1][1], empty))]


def _with(counts: dict[str, Counter[int]], empty: Sequence[Group]) -> dict[str, Counter[int]]:
    return _sum([counts, *(further for _, further in empty)]) if empty else counts


def _total(kinds: Mapping[str, Histograms]) -> ClientInterval | None:
    spans = [span for histograms in kinds.values() for span in histograms]
    if not spans:
        return None
    span = min(begin_s for begin_s, _ in spans), max(end_s for _, end_s in spans)
    counts = _sum({kind: histogram} for kind, histograms in kinds.items() for histogram in histograms.values())
    attempted = _completed(counts)
    failed = max(attempted - counts[SUCCEEDED].total(), 0) if counts.get(SUCCEEDED) else 0
    return _interval(span, counts, failed)


def _completed(counts: Mapping[str, Counter[int]]) -> int:
    """Return the number of operations with latencies."""
    return sum((counts.get(SERVICE) or counts.get(RESPONSE) or Counter()).values())


def _interval(span: Span, counts: Mapping[str, Counter[int]], failed: int) -> ClientInterval:
    """Return an interval; `failed` is how many of its operations with latencies are known to have failed."""
    lost = sum(counts.get(FAILED, {}).values()) + failed
    response, service = (Latency(dict(counts[kind])) if counts.get(kind) else None for kind in (RESPONSE, SERVICE))
    return ClientInterval(*span, _completed(counts) - failed, {"": lost} if lost else {}, response, service)
