"""The form of the generic CSV with one row per operation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from collector.load_results.client_latency import NS_PER_S
from collector.load_results.client_result import ClientInterval, Operation
from collector.load_results.generic.decimal_marks import DecimalMarks
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing.field_values import latency_ns

UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3}
LATENCY = re.compile(r"(?P<kind>latency|response)_(?P<unit>s|ms|us)")
COLUMNS = ("operation", "error")
# Some programs write one of these as the error of an operation that succeeded.
_NOT_ERRORS = ("0", "false")


class OperationRows:
    """Operations by the second in which they ended. Raises ValueError if columns are missing."""

    def __init__(self, columns: Sequence[str], numbers: DecimalMarks) -> None:
        self._numbers = numbers
        self._latencies: dict[str, tuple[str, int]] = {}
        for column in columns:
            if match := LATENCY.fullmatch(column):
                if match["kind"] in self._latencies:
                    raise ValueError(f"more than one column {match['kind']}_…")
                self._latencies[match["kind"]] = column, UNITS_NS[match["unit"]]
        if not self._latencies:
            raise ValueError("missing column: latency_ms, latency_us, latency_s or response_ms")
        self.known = {*COLUMNS, *(column for column, _ in self._latencies.values())}
        self._times = {kind: OperationTimes() for kind in self._latencies}

    def add(self, row: Mapping[str, str], end_s: float) -> None:
        """Add an operation. Raises ValueError."""
        error = row.get("error", "")
        if error.lower() in _NOT_ERRORS:
            raise ValueError(f"the column error is {error} (hint: leave it empty for operations that succeeded)")
        name = row.get("operation", "")
        if error:
            for times in self._times.values():
                times.add_error(name, end_s, error)
            return
        durations_ns = {
            kind: latency_ns(self._numbers.number(row[column]), unit_ns)
            for kind, (column, unit_ns) in self._latencies.items()
        }
        longest_s = max(durations_ns.values()) / NS_PER_S
        for kind, duration_ns in durations_ns.items():
            # All kinds must have the same intervals, so their times must be the same.
            self._times[kind].add_time(end_s, longest_s)
            self._times[kind].add_counts(name, int(end_s), {duration_ns: 1})

    def notes(self) -> list[str]:
        return next(iter(self._times.values())).notes("row")

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations by name. Raises ClientFormatError."""
        # All kinds have the same operations and intervals; OperationTimes returns every latency as a service time.
        kinds = {kind: times.operations() for kind, times in self._times.items()}
        if "response" not in kinds:
            return kinds["latency"]
        services = kinds.get("latency")
        return tuple(
            replace(response, intervals=_with_response(response, services[index] if services else None))
            for index, response in enumerate(kinds["response"])
        )


def _with_response(responses: Operation, services: Operation | None) -> tuple[ClientInterval, ...]:
    """Return the intervals of an operation with the latencies of `responses` as response times."""
    return tuple(
        replace(interval, response=interval.service, service=services.intervals[index].service if services else None)
        for index, interval in enumerate(responses.intervals)
    )
