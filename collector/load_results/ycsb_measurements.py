"""YCSB's measurements: which operation each belongs to, and the totals that the summary states.

YCSB measures failed operations apart from the others, as `READ-FAILED` or `READ-NOT_FOUND`. With
`measurement.interval=both`, it measures each operation twice: `READ` has service times and `Intended-READ` response
times; with `intended`, `READ` has response times. With two kinds of measurement, such as `hdrhistogram+histogram`, it
measures each operation twice, too: as `HdrREAD` and `BucketREAD`.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from collector.load_results.client_result import StatedTotals
from collector.load_results.parsing.field_values import decimal
from collector.load_results.parsing.labels import label_of
from collector.load_results.parsing.printed_rows import stated_latency_s
from collector.printable import count_text

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
    repeats: bool
    """Whether another measurement counts the same operations."""


def measured_by(names: Collection[str], *, is_intended: bool) -> dict[str, Measured]:
    """Return what the measurements with these names measure; those that are not counted are left out.

    `is_intended` states whether measurements without a prefix have response times.
    """
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
        repeats = own != text
        measured[name] = Measured(
            operation if is_failure else own,
            ("" if kind == "FAILED" else label_of(kind)) if is_failure else None,
            repeats or is_intended,
            repeats,
        )
    return measured


@dataclass
class Total:
    """The total of an operation. `stated_s` has percentiles in seconds by whether they are response times."""

    completed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    stated_s: dict[bool, dict[float, float]] = field(default_factory=dict)


class Summary:
    """The measurements that YCSB prints at its end, by name. Raises ValueError if a number is impossible."""

    def __init__(self, measurements: Mapping[str, Values], *, is_intended: bool) -> None:
        self.totals: dict[str, Total] = {}
        self._notes: list[str] = []
        self._overall = dict(measurements.get("OVERALL", ()))
        self._compounds = _count(measurements.get(COMPOUND, ()))
        self._kinds: set[str] = set()
        counted = [
            name for name, values in measurements.items() if any(key.endswith("Operations") for key, _ in values)
        ]
        measured = measured_by(counted, is_intended=is_intended)
        for name, what in measured.items():
            if what.failure is not None and not what.repeats:
                self._total(what.operation).errors[what.failure] += _count(measurements[name])
        for name, what in measured.items():
            if what.failure is None:
                self._add(what, measurements[name])

    def _total(self, operation: str) -> Total:
        return self.totals.setdefault(operation, Total())

    def _add(self, what: Measured, values: Values) -> None:
        total, count = self._total(what.operation), _count(values)
        if count:
            total.stated_s[what.is_response] = _stated_s(values)
            self._kinds |= {_BUCKETED for key, _ in values if key.startswith(_BUCKETED)}
            self._kinds |= {"series" for key, value in values if key.isdigit() and "." in value}
        if what.repeats:
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
    """Return the percentiles of a measurement. Raises ValueError."""
    is_bucketed = any(key.startswith(_BUCKETED) for key, _ in values)
    return dict(_percentiles(values, leave_out_zero=is_bucketed))


def _percentiles(values: Values, *, leave_out_zero: bool) -> Iterable[tuple[float, float]]:
    for key, text in values:
        match = _STATED.fullmatch(key) or _STATED_RAW.fullmatch(key)
        if match is None:
            continue
        value, percentage = decimal(text), _LIMITS.get(match["limit"] or "", -1.0)
        if percentage < 0:
            # Old versions state percentiles in milliseconds, rounded down, too.
            if (leave_out_zero or match["unit"] == "ms") and not value:
                continue
            percentage = float(match["percentage"])
        if percentage <= 100:
            yield percentage, stated_latency_s(value, UNITS_S[match["unit"] or "us"])
