"""HdrHistogram's interval log, as cassandra-stress (`-log hdrfile=FILE`), NoSQLBench and others write it.

The format is that of HdrHistogram's HistogramLogProcessor. The log does not state the unit of its values; nanoseconds,
which load generators for Cassandra use, are assumed. cassandra-stress tags each histogram with the operation and what
was measured: `-st` service time, `-rt` response time, `-wt` waiting time. Values without such a tag are assumed to be
service times.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from collector.clients.client_format import ClientFormatError, CommandTimes, GrowingResult
from collector.clients.client_latency import Latency
from collector.clients.client_result import ClientInterval, ClientResult, Operation
from collector.clients.operation_times import MAX_INTERVALS, SECONDS_PER_DAY
from collector.clients.parsing.growing_lines import GrowingLines
from collector.clients.parsing.hdr_histogram import HdrError, decoded
from collector.clients.parsing.labels import label_of

NAME = "hdr-log"
UNITS_NS = {"ns": 1, "us": 1000, "ms": 1_000_000}
OPTIONS: Mapping[str, tuple[str, ...]] = {"unit": tuple(UNITS_NS)}
MAX_LINE_CHARS = 8 << 20
# Timestamps that precede the log's start by more than this are relative to it, as in HdrHistogram's reader.
YEAR_S = 365.0 * 86400
# In a log without a header, times from this one on (in 2001) are seconds since the epoch.
MIN_ABSOLUTE_S = 1e9
# Times are rounded to milliseconds, so intervals without a gap may seem to have one.
MIN_GAP_S = 0.01
_BASE_TIME = re.compile(r"#\[BaseTime: ([\d.]+)")
_START_TIME = re.compile(r"#\[StartTime: ([\d.]+)")
_INTERVAL = re.compile(
    r"(?:Tag=(?P<tag>[^,]*),)?(?P<begin_s>[\d.]+),(?P<length_s>[\d.]+),(?P<max>[\d.]+),(?P<histogram>\S+)"
)
_TAG = re.compile(r"(?P<name>.*?)-(?P<kind>[swr]t)")


def recognises(head: str) -> bool:
    return bool(re.search(r'^(#\[|"StartTimestamp"|(Tag=[^,]*,)?[\d.]+,[\d.]+,[\d.]+,HIST)', head)) and ",HIST" in head


def read(path: Path, times: CommandTimes, options: Mapping[str, str] | None = None) -> ClientResult:
    log = _Log(times, options or {})
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_CHARS):
            number += 1
            try:
                log.add(line.decode(errors="replace").strip())
            except (HdrError, ValueError, OverflowError) as error:
                is_last = not line.endswith(b"\n")
                if not is_last:
                    raise ClientFormatError(f"line {number}: {error}") from None
                log.notes.append(f"the last line is incomplete and is ignored: {error}")
    if not log.latencies:
        raise ClientFormatError("the log has no intervals")
    notes = tuple(log.notes)
    if not (options or {}).get("unit"):
        notes += (
            "the file does not state the unit of its latencies: nanoseconds assumed (hint: hdr-log,unit=us:FILE)",
        )
    return ClientResult(NAME, "HdrHistogram log", path.name, log.operations(), log.is_estimated, notes)


def growing(head: bytes, options: Mapping[str, str] | None = None) -> GrowingResult:
    del head  # Only totals are taken, so the time at which the log starts is not needed.
    log = _Log(CommandTimes(0.0, 0.0), options or {})
    return GrowingLines(log.add, log.take, MAX_LINE_CHARS)


class _Log:
    """The histograms of a log by operation, interval and kind ("rt", "st" or "wt")."""

    def __init__(self, times: CommandTimes, options: Mapping[str, str]) -> None:
        self._unit_ns = UNITS_NS[options.get("unit", "ns")]
        self.latencies: defaultdict[str, dict[tuple[float, float], dict[str, Counter[int]]]] = defaultdict(dict)
        self.notes: list[str] = []
        self.is_estimated = False
        self._command = times
        self._stated_base_s: float | None = None
        self._deduced_base_s: float | None = None
        self._start_s: float | None = None

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        if match := _BASE_TIME.match(line):
            self._stated_base_s = float(match[1])
        elif match := _START_TIME.match(line):
            # Logs that were concatenated have several starts.
            self._start_s, self._deduced_base_s = float(match[1]), None
        elif line and not line.startswith(("#", '"')):
            self._add_interval(line)

    def _add_interval(self, line: str) -> None:
        match = _INTERVAL.fullmatch(line)
        if match is None:
            raise ValueError("not an interval")
        tag = _TAG.fullmatch(match["tag"] or "")
        name, kind = (tag["name"], tag["kind"]) if tag else (match["tag"] or "", "st")
        begin_s = self._absolute_s(float(match["begin_s"]))
        interval = begin_s, begin_s + float(match["length_s"])
        counts = {value * self._unit_ns: count for value, count in decoded(match["histogram"]).items()}
        # Logs of several threads may have the same interval more than once.
        self.latencies[label_of(name).lower()].setdefault(interval, {}).setdefault(kind, Counter()).update(counts)

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
        return self._command.begin_s

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each operation since the last call, and forget it.

        The lines of one interval may be added before and after a call, so a total may lack response or service times.
        """
        operations = tuple(Operation(name, total=_total(of_name)) for name, of_name in sorted(self.latencies.items()))
        self.latencies.clear()
        return operations

    def operations(self) -> tuple[Operation, ...]:
        spans = [span for of_name in self.latencies.values() for span in of_name]
        begin_s, end_s = min(begin_s for begin_s, _ in spans), max(end_s for _, end_s in spans)
        if end_s - begin_s > MAX_INTERVALS:
            days = (end_s - begin_s) / SECONDS_PER_DAY
            raise ClientFormatError(
                f"the intervals are up to {days:.0f} days apart (hint: check the times in the file)"
            )
        # In an incomplete log, nothing is known about an operation after its last interval.
        known_until_s = begin_s if self.notes else end_s
        return tuple(
            Operation(name, tuple(_without_gaps(_intervals(of_name), begin_s, known_until_s)))
            for name, of_name in sorted(self.latencies.items())
        )


def _without_gaps(intervals: Iterator[ClientInterval], begin_s: float, end_s: float) -> Iterator[ClientInterval]:
    """Yield the intervals and, between `begin_s` and `end_s`, those that the log omits because nothing completed."""
    for interval in intervals:
        if interval.begin_s - begin_s > MIN_GAP_S:
            yield ClientInterval(begin_s, interval.begin_s, 0)
        yield interval
        begin_s = interval.end_s
    if end_s - begin_s > MIN_GAP_S:
        yield ClientInterval(begin_s, end_s, 0)


def _intervals(spans: dict[tuple[float, float], dict[str, Counter[int]]]) -> Iterator[ClientInterval]:
    for (begin_s, end_s), kinds in sorted(spans.items()):
        response, service = kinds.get("rt"), kinds.get("st")
        completed = sum((service or response or Counter()).values())
        yield ClientInterval(begin_s, end_s, completed, {}, _latency(response), _latency(service))


def _total(spans: dict[tuple[float, float], dict[str, Counter[int]]]) -> ClientInterval:
    totals: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for kinds in spans.values():
        for kind, counts in kinds.items():
            totals[kind].update(counts)
    begin_s, end_s = min(spans)[0], max(spans)[1]
    completed = sum((totals["st"] or totals["rt"]).values())
    return ClientInterval(begin_s, end_s, completed, {}, _latency(totals["rt"]), _latency(totals["st"]))


def _latency(counts: Counter[int] | None) -> Latency | None:
    return Latency(dict(counts)) if counts else None
