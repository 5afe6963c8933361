"""What YCSB prints: its summary and, with `-s`, its status lines.

A status line has the local time without a time zone, the number of operations since the run began and, with the default
`measurementtype`, the number and percentiles of each operation since the line before, in microseconds. The summary has
the totals of each operation.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, StatedTotals
from collector.load_results.command_output import OutputLine, begin_of_run_s, intervals_of, output_lines, rows_of
from collector.load_results.hdr_histogram import FAILED, RESPONSE, SERVICE
from collector.load_results.parsing import decimal, label_of, stated_latency_s
from collector.printable import count_text, one_line

_SUMMARY = re.compile(r"\s*\[(?P<name>[^\[\]]{1,80})\], ?(?P<key>[^,]{1,60}), (?P<value>[\dA-Za-z.+-]{1,40})\s*")
_BEGIN_OF_SUMMARY = re.compile(r"\s*\[OVERALL\], ?RunTime\(ms\), ")
_STATUS = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):(?P<ms>\d{3}) (?P<elapsed>\d{1,9}) sec: (?P<operations>\d{1,18}) "
    r"operations; (?P<rest>.*)"
)
_BLOCK = re.compile(
    r"\[(?P<name>[^\[\]:]{1,80}): Count=(?P<count>\d{1,18}), Max=(?P<max>\d{1,19}), Min=(?P<min>\d{1,19}), "
    r"Avg=\S{1,40}?(?P<percentiles>(?:, \d{1,3}(?:\.\d{1,9})?=\d{1,19}){0,40})\]"
)
_MEAN_BLOCK = re.compile(r"\s*\[[^\[\]]{1,80} AverageLatency\(us\)=")
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d+)?)=(\d+)")
_CLIENT = re.compile(r"YCSB Client \d")
_INTENDED = re.compile(r"measurement\.interval=intended\b")
# Local times differ from UTC by a multiple of this.
_ZONE_STEP_S, _MAX_ZONE_S = 900.0, 14 * 3600.0
# By how much the times of status lines may lie outside those of the command.
_SLACK_S = 2.0


def recognises(text: str) -> bool:
    lines = text.split("\n")
    return any(_BEGIN_OF_SUMMARY.match(line) or _STATUS.search(line) or _CLIENT.match(line) for line in lines)


def read(file: SourceFile) -> ClientResult:
    run = _LastRun()
    for line in output_lines(file.path):
        run.add(line)
    summary = Summary(run.measurements)
    run_times = _run_times(run, summary.length_s, file)
    operations = list(_operations(run, summary, run_times))
    if not operations:
        raise ClientFormatError("the last run has no operations (hint: YCSB prints its summary when it ends)")
    if run.is_intended or _INTENDED.search(" ".join(file.times.words)):
        operations = [operation.changed(ClientInterval.as_response) for operation in operations]
    notes = (*run.notes(), *run_times.notes, *summary.notes())
    result = file.result("YCSB", operations, notes, summary.stated(), estimated_clock=run_times.is_estimated)
    return result.shifted(run_times.begin_s)


FORMATS = (Format("ycsb", recognises, read, follows_output=True, clock=ResultClock.DELAYED),)


# YCSB's measurements: which operation each belongs to, and the totals that the summary states. YCSB measures failed
# operations apart from the others, as `READ-FAILED` or `READ-NOT_FOUND`. With `measurement.interval=both`, it measures
# each operation twice: `READ` has service times and `Intended-READ` response times; with `intended`, there is only
# `READ`, which has response times. With two kinds of measurement, such as `hdrhistogram+histogram`, it measures each
# operation twice, too: as `HdrREAD` and `BucketREAD`.

UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
RUN_TIME, THROUGHPUT = "RunTime(ms)", "Throughput(ops/sec)"
COMPOUND = "READ-MODIFY-WRITE"
# What is not an operation of the database, or consists of operations that are also measured by themselves.
NOT_COUNTED = {COMPOUND, "CLEANUP", "VERIFY", "THREAD_COUNT", "USED_MEM_MB", "SYS_LOAD_AVG", "GCS", "GCS_TIME"}
_OPERATIONS = {"READ", "UPDATE", "INSERT", "SCAN", "DELETE"}
# Versions before 0.2 print the return code 0.
_OK = {"OK", "BATCHED_OK", "0"}
INTENDED = "Intended-"
_LIMITS = {"Min": 0.0, "Max": 100.0}
_STATED = re.compile(
    r"(?:(?P<percentage>\d{1,3}(?:\.\d+)?)(?:th|st|nd|rd)?Percentile|(?P<limit>Min|Max))Latency\((?P<unit>ns|us|ms)\)"
)
_STATED_RAW = re.compile(r"(?:p(?P<percentage>\d{1,2}(?:\.\d+)?)|(?P<limit>Min|Max))(?P<unit>)")
_BUCKETED = "LatencyVariance"

# The keys and values of a measurement, in the order in which YCSB prints them.
Values = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Measured:
    """What a measurement measures: an operation, and the kind of its failures; None if they succeeded."""

    operation: str
    failure: str | None
    is_response: bool
    """Whether it has response times; another measurement then counts the same operations."""


def measured_by(names: Collection[str]) -> dict[str, Measured]:
    """Return what the measurements with these names measure; those that are not counted are left out."""
    plain = {
        name: re.sub(r"^Hdr(?=[A-Z])", "", name)
        for name in names
        if not (name.startswith(("Bucket", "Raw")) and re.sub("^(?:Bucket|Raw)", "Hdr", name) in names)
    }
    measured = {}
    for name, text in plain.items():
        own = text.removeprefix(INTENDED)
        operation, _, kind = own.rpartition("-")
        if own in NOT_COUNTED or operation in NOT_COUNTED:
            continue
        is_failure = operation in _OPERATIONS or operation in plain.values()
        failure = ("" if kind == "FAILED" else label_of(kind)) if is_failure else None
        measured[name] = Measured(operation if is_failure else own, failure, own != text)
    return measured


def ycsb_tag(name: str) -> str:
    """Return a tag for the histograms of the YCSB log that a comment names. Raises ValueError if it is not counted."""
    measured = measured_by([name]).get(name)
    if measured is None:
        raise ValueError(
            f"{one_line(name)} is not counted: it is no operation, or is made of operations with other logs"
        )
    if measured.failure is not None and measured.is_response:
        raise ValueError(f"{one_line(name)} has the operations of the log without {INTENDED}, which count once")
    kind = SERVICE if measured.failure is None else FAILED
    return f"{measured.operation}-{RESPONSE if measured.is_response else kind}"


@dataclass
class Total:
    """The total of an operation. `stated_s` has percentiles in seconds by whether they are response times."""

    completed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    stated_s: dict[bool, dict[float, float]] = field(default_factory=dict)

    def interval(self, end_s: float) -> ClientInterval:
        service_s, response_s = (self.stated_s.get(is_response, {}) for is_response in (False, True))
        return ClientInterval.stated(end_s, self.completed, self.errors, service_s, response_s)


class Summary:
    """The measurements that YCSB prints at its end, by name. Raises ValueError if a number is impossible."""

    def __init__(self, measurements: Mapping[str, Values]) -> None:
        self.totals: defaultdict[str, Total] = defaultdict(Total)
        self._notes: list[str] = []
        self._overall = dict(measurements.get("OVERALL", ()))
        self._compounds = _count(measurements.get(COMPOUND, ()))
        self._kinds: set[str] = set()
        counted = [
            name for name, values in measurements.items() if any(key.endswith("Operations") for key, _ in values)
        ]
        measured = measured_by(counted)
        for name, what in measured.items():
            if what.failure is not None and not what.is_response:
                self.totals[what.operation].errors[what.failure] += _count(measurements[name])
        for name, what in measured.items():
            if what.failure is None:
                self._add(what, measurements[name])

    def _add(self, what: Measured, values: Values) -> None:
        total, count = self.totals[what.operation], _count(values)
        if count:
            total.stated_s[what.is_response] = _stated_s(values)
            self._kinds |= {_BUCKETED for key, _ in values if key.startswith(_BUCKETED)}
            self._kinds |= {"series" for key, value in values if key.isdigit() and "." in value}
        if what.is_response:
            return
        returns = {key.partition("=")[2]: int(decimal(text)) for key, text in values if key.startswith("Return=")}
        # The return codes are counted with 32 bits.
        if not returns or min(returns.values()) < 0:
            total.completed = count
            return
        total.completed = sum(number for code, number in returns.items() if code in _OK)
        total.errors = Counter(
            {label_of(code): number for code, number in returns.items() if code not in _OK and number}
        )
        name, failed = what.operation.lower(), total.errors.total()
        if failed and count == total.completed + failed:
            self._notes.append(f"the latencies of {name} include those of {count_text(failed, 'failed operation')}")
        elif count != total.completed:
            self._notes.append(
                f"YCSB measured {count_text(count, 'operation')} of {name}, but states {total.completed} that succeeded"
            )

    @property
    def length_s(self) -> float | None:
        """The run's duration; None if the summary is missing."""
        return decimal(self._overall[RUN_TIME]) / 1000 if RUN_TIME in self._overall else None

    def has_only(self, operation: str) -> bool:
        """Return whether all operations are of one kind and succeeded, so that their total is that of the kind."""
        return self.totals.keys() == {operation} and not self._compounds and not self.totals[operation].errors

    def stated(self) -> Iterator[StatedTotals]:
        """Yield the number of all operations, of which YCSB counts a read-modify-write as one."""
        rate, length_ms = (decimal(self._overall.get(key, "NaN")) for key in (THROUGHPUT, RUN_TIME))
        # Failed inserts are repeated without being counted again.
        if 0 <= rate * length_ms < float("inf") and not self.totals.get("INSERT", Total()).errors:
            yield StatedTotals(attempted=round(rate * length_ms / 1000) + self._compounds)

    def notes(self) -> Iterator[str]:
        yield from self._notes
        for name, total in self.totals.items():
            if len(total.errors) > 1:
                codes = ", ".join(f"{code} {count}" for code, count in total.errors.most_common(5))
                yield f"return codes of failed operations of {name.lower()}: {codes}"
        if self._compounds:
            text = count_text(self._compounds, "read-modify-write operation")
            yield f"{text} not counted, only the reads and updates in them"
        if _BUCKETED in self._kinds:
            yield "YCSB rounds percentiles down to milliseconds with measurementtype=histogram; those below are unknown"
        elif "series" in self._kinds:
            yield "a time series or list of buckets is not imported (hint: use measurementtype=hdrhistogram and -s)"


def _count(values: Values) -> int:
    count = next((decimal(text) for key, text in values if key in ("Operations", "Total Operations")), 0.0)
    if not 0 <= count < 1e18:
        raise ValueError(f"not a number of operations: {count:g}")
    return int(count)


def _stated_s(values: Values) -> dict[float, float]:
    is_bucketed = any(key.startswith(_BUCKETED) for key, _ in values)
    stated_s = {}
    for key, text in values:
        match = _STATED.fullmatch(key) or _STATED_RAW.fullmatch(key)
        if match is None:
            continue
        value, percentage = decimal(text), _LIMITS.get(match["limit"] or "")
        if percentage is None:
            percentage = float(match["percentage"])
            # Old versions state percentiles in milliseconds, rounded down, too.
            if not value and (is_bucketed or match["unit"] == "ms"):
                continue
        if percentage <= 100:
            stated_s[percentage] = stated_latency_s(value, UNITS_S[match["unit"] or "us"])
    return stated_s


@dataclass(frozen=True)
class _Status:
    """A status line. `time_s` is the local time as if it were UTC; `blocks` has counts and percentiles by name."""

    time_s: float
    elapsed_s: int
    operations: int
    blocks: dict[str, tuple[int, dict[float, int]]] = field(default_factory=dict)


class _LastRun:
    """The last run of a log: its status lines, and the keys and values of its summary by measurement."""

    def __init__(self) -> None:
        self.statuses: list[_Status] = []
        self.measurements: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self.is_intended = False
        self._earlier = 0
        self._printed: set[tuple[float, int]] = set()
        self._is_cut = self._is_repeated = False

    def add(self, line: OutputLine) -> None:
        status, summary = _STATUS.search(line.text), _SUMMARY.fullmatch(line.text)
        if (status or summary) and not line.is_whole:
            self._is_cut = True
        elif status:
            self._add_status(status)
        elif summary:
            if _BEGIN_OF_SUMMARY.match(line.text) and self.measurements:
                self._begin()
            self.measurements[summary["name"]].append((summary["key"], summary["value"]))
        elif line.text.startswith("Command line: "):
            self._begin()
            self.is_intended = bool(_INTENDED.search(line.text))
        elif self.statuses and (_BLOCK.search(line.text) or _MEAN_BLOCK.match(line.text)):
            # With two kinds of measurement, a status has several lines.
            self._add_blocks(line.text)

    def _begin(self) -> None:
        self._earlier += bool(self.statuses or self.measurements)
        self.statuses.clear()
        self.measurements.clear()
        self.is_intended = False
        self._printed.clear()

    def _add_status(self, match: re.Match[str]) -> None:
        try:
            second_s = datetime.strptime(match["time"] + "+0000", "%Y-%m-%d %H:%M:%S%z").timestamp()
        except ValueError:
            return
        status = _Status(second_s + int(match["ms"]) / 1000, int(match["elapsed"]), int(match["operations"]))
        # With time series, YCSB prints each line to both of its streams, and either may be read later than the other.
        self._is_repeated = (status.time_s, status.operations) in self._printed
        if self._is_repeated:
            return
        if self._is_of_another_run(status):
            self._begin()
        self._printed.add((status.time_s, status.operations))
        self.statuses.append(status)
        self._add_blocks(match["rest"])

    def _is_of_another_run(self, status: _Status) -> bool:
        """Return whether a status is not of the current run; its last one may be read after parts of the summary."""
        if not self.statuses:
            return bool(self.measurements)
        last = self.statuses[-1]
        return status.operations < last.operations or status.elapsed_s < last.elapsed_s

    def _add_blocks(self, text: str) -> None:
        for match in _BLOCK.finditer(text) if not self._is_repeated else ():
            stated = {float(key): int(value) for key, value in _PERCENTILE.findall(match["percentiles"])}
            stated |= {0.0: int(match["min"]), 100.0: int(match["max"])}
            self.statuses[-1].blocks.setdefault(match["name"], (int(match["count"]), stated))

    def notes(self) -> Iterator[str]:
        if self._earlier:
            yield f"{count_text(self._earlier, 'earlier run')} ignored; only the last one is imported"
        if RUN_TIME not in dict(self.measurements.get("OVERALL", ())):
            yield "the totals of the run are missing (hint: YCSB prints them, or writes its exportfile, when it ends)"
        if self._is_cut:
            yield "the output ends in the middle of a line, which is ignored"


@dataclass(frozen=True)
class _RunTimes:
    """When a run began, how long it was, and the time of each status line since its begin, in seconds."""

    begin_s: float
    length_s: float
    offsets_s: tuple[float, ...] = ()
    is_estimated: bool = True
    notes: tuple[str, ...] = ()


def _run_times(run: _LastRun, stated_s: float | None, file: SourceFile) -> _RunTimes:
    """Place a run whose summary states its length, or not. Raises ValueError."""
    if stated_s is not None and not 0 <= stated_s < float("inf"):
        raise ValueError("impossible duration of the run")
    if not run.statuses:
        length_s = stated_s or 0.0
        return _RunTimes(begin_of_run_s(file, length_s), length_s)
    times_s = _continuous_times_s(run.statuses)
    last_s = times_s[-1]
    # The elapsed time is rounded down, so the run began at the earliest of these times.
    first_s = min(time_s - status.elapsed_s for time_s, status in zip(times_s, run.statuses, strict=True))
    if stated_s is not None:
        first_s = min(first_s, last_s - stated_s)
    zone_s = _zone_s(first_s, last_s, file.times)
    notes: tuple[str, ...] = ()
    if zone_s is None:
        text = datetime.fromtimestamp(last_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        notes = (f"the last status line is of {text}, when the command did not run; the result is placed at its end",)
    begin_s = first_s - zone_s if zone_s is not None else file.times.end_s - (last_s - first_s)
    offsets_s = tuple(time_s - first_s for time_s in times_s)
    return _RunTimes(begin_s, stated_s or last_s - first_s, offsets_s, zone_s is None, notes)


def _continuous_times_s(statuses: Sequence[_Status]) -> list[float]:
    """Return the times of status lines as if daylight saving time had not begun or ended between them."""
    begin_s = statuses[0].time_s - statuses[0].elapsed_s
    return [
        status.time_s - round((status.time_s - status.elapsed_s - begin_s) / _ZONE_STEP_S) * _ZONE_STEP_S
        for status in statuses
    ]


def _zone_s(first_s: float, last_s: float, times: CommandTimes) -> float | None:
    """Return the difference from UTC with which local times are within those of the command; None if there is none."""
    local = datetime.fromtimestamp(times.end_s, timezone.utc).astimezone().utcoffset()
    nearest_s = round((last_s - times.end_s) / _ZONE_STEP_S) * _ZONE_STEP_S
    for zone_s in (local.total_seconds() if local else 0.0, nearest_s):
        begin_s, end_s = first_s - zone_s, last_s - zone_s
        if times.begin_s - _SLACK_S <= begin_s and end_s <= times.end_s + _SLACK_S and abs(zone_s) <= _MAX_ZONE_S:
            return zone_s
    return None


def _operations(run: _LastRun, summary: Summary, run_times: _RunTimes) -> Iterator[Operation]:
    """Yield the operations, whose times count from the beginning of the run."""
    blocks = dict.fromkeys(name for status in run.statuses for name in status.blocks)
    measured = measured_by(blocks)
    names = sorted({*summary.totals, *(what.operation for what in measured.values())})
    offsets_s = run_times.offsets_s
    together: tuple[ClientInterval, ...] = ()
    if not measured and all(map(summary.has_only, names)):
        # The status lines have the number of all operations only, whether or not they succeeded.
        together = intervals_of(rows_of(offsets_s, [status.operations for status in run.statuses]))
    for name in names or [""] * bool(run.statuses):
        total = summary.totals.get(name, Total())
        own = {original: what for original, what in measured.items() if what.operation == name}
        pairs = zip(run.statuses, offsets_s, strict=True) if own else ()
        rows = [_row(status, offset_s, own, total) for status, offset_s in pairs]
        has_total = summary.length_s is not None and name in summary.totals
        interval = total.interval(run_times.length_s) if has_total else None
        yield Operation(label_of(name.lower()), together or intervals_of(rows), interval)


def _row(status: _Status, offset_s: float, measured: dict[str, Measured], total: Total) -> ClientInterval:
    """Return what a status line states about one operation."""
    # The lines do not state the return code of failed operations; it is known if the summary has only one.
    code = next(iter(total.errors)) if len(total.errors) == 1 else ""
    row = Total()
    for name, what in measured.items():
        count, stated = status.blocks.get(name, (0, {}))
        if what.failure is not None:
            row.errors[what.failure or code] += 0 if what.is_response else count
            continue
        row.completed += 0 if what.is_response else count
        if count:
            row.stated_s[what.is_response] = {key: stated_latency_s(value, 1e-6) for key, value in stated.items()}
    return row.interval(offset_s)
