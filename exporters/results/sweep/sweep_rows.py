"""The results of a sweep: the values of each run, and a row for each combination of parameters.

The values of a run are its throughput, errors and latency, as the clients or the servers measured them. A row has
statistics over the runs of a combination.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Any

import msgspec

from collector.load_results.client_result import ClientResult, Latency, merged_latency
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.node.metrics.requests import COUNTED, OPERATIONS
from exporters.results.comparison.inference import critical_value
from exporters.results.summary.client_values import combined_latency, phase_operations, rate_of
from exporters.results.summary.phase_summary import failed
from exporters.rows.columns import MS, Cell, cell_number, times
from exporters.rows.merged_rows import TOTAL
from exporters.rows.operation_columns import TOTAL_RATE

CLIENT, SERVER = "client", "server"
"""Where values come from: the results of the load generators, or the servers' operations."""
VERSION = 2
"""The version of the values as JSON."""


@dataclass(frozen=True)
class RunValues:
    """The values of one run's measured phases; None stands for unknown.

    ops_per_s        completed operations per second.
    whole_ops_per_s  the same for the whole run, including the warm-up; None also if there is no warm-up.
    operations       the number of operations whose latency is known.
    attempts         the number of operations, including failed ones.
    errors           the number of failed operations.
    mean_ms          the mean latency.
    latency_kind     "response" or "service" for clients, SERVER for servers; "" if the latency is unknown.
    latency          the clients' latencies.
    buckets          the servers' latencies.
    intervals_missing  the number of intervals that nodes lack; None if it is unknown.
    remark           which nodes lack which intervals; "" if none do.
    """

    source: str
    ops_per_s: float | None
    whole_ops_per_s: float | None = None
    operations: float = 0.0
    attempts: float | None = None
    errors: float | None = None
    mean_ms: float | None = None
    latency_kind: str = ""
    latency: Latency | None = None
    buckets: Buckets | None = None
    intervals_missing: float | None = None
    remark: str = ""


def client_run_values(
    results: Sequence[ClientResult], measured: tuple[float, float], whole: tuple[float, float] | None
) -> RunValues:
    """Return the values that clients measured in the time ranges (see `client_span`)."""
    parts = phase_operations(results, *measured)
    totals = [part.total for part in parts if part.total]
    kind, latency = combined_latency(totals)
    completed, failed = (sum(total.completed for total in totals), sum(total.failed for total in totals))
    rate, whole_rate = rate_of(parts), None if whole is None else rate_of(phase_operations(results, *whole))
    mean_ms = None if latency is None else times(MS, latency.mean_s)
    if not totals:
        return RunValues(CLIENT, None, whole_rate)
    return RunValues(CLIENT, rate, whole_rate, completed, completed + failed, failed, mean_ms, kind, latency)


def server_run_values(
    measured: Mapping[str, Cell],
    buckets: Sequence[Buckets | None],
    warm_up: tuple[Mapping[str, Cell], float, float] | None,
) -> RunValues:
    """Return the values that servers measured.

    `measured` has the columns of the cluster for the measured phases (see `phase_values`), and `buckets` the histograms
    of its operations in COUNTED. `warm_up` has the columns for the warm-up, its length and that of the measured phases,
    in seconds. As Cassandra does, this counts failed operations as operations.
    """
    rate = _column_total(measured, TOTAL_RATE, "_per_s")
    whole = None
    if warm_up is not None and rate is not None:
        columns, warm_up_s, measured_s = warm_up
        before = _column_total(columns, TOTAL_RATE, "_per_s")
        whole = None if before is None else (before * warm_up_s + rate * measured_s) / (warm_up_s + measured_s)
    operations = _column_total(measured, TOTAL)
    means = [
        (count, cell_number(measured.get(f"{operation.word}_mean_ms")))
        for operation in COUNTED
        if (count := cell_number(measured.get(operation.plural)))
    ]
    occurred = [operation.is_usual or bool(measured.get(operation.plural)) for operation in COUNTED]
    known = [part for part, is_needed in zip(buckets, occurred, strict=True) if part is not None and is_needed]
    kind, mean_ms = SERVER if known else "", weighted_mean(means)
    merged = histogram.merge(known) if len(known) == sum(occurred) else None
    return RunValues(
        SERVER, rate, whole, operations or 0.0, operations, failed(measured), mean_ms, kind, buckets=merged
    )


def weighted_mean(pairs: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the mean of values with their weights; None if a value is unknown or there are none."""
    weight = sum(weight for weight, _ in pairs)
    if not weight or any(value is None for _, value in pairs):
        return None
    return sum(weight * value for weight, value in pairs if value is not None) / weight


def _column_total(columns: Mapping[str, Cell], name: str, end: str = "") -> float | None:
    """Return a total over operations; None if the part of reads or of writes, `reads` plus `end`, is unknown."""
    parts = [cell_number(columns.get(f"{operation.plural}{end}")) for operation in OPERATIONS if operation.is_usual]
    return None if None in parts else cell_number(columns.get(name))


def content_of_values(values: RunValues) -> dict[str, Any]:
    """Return the values as content for JSON, which has no infinity: the last bucket's bound is left out."""
    content = {"version": VERSION, **asdict(replace(values, latency=None, buckets=None))}
    if values.latency is not None:
        content["latency"] = {
            "counts": list(values.latency.counts.items()),
            "stated_s": list(values.latency.stated_s.items()),
        }
    if values.buckets is not None:
        content["buckets"] = {
            "upper_bounds": list(values.buckets.upper_bounds[:-1]),
            "counts": list(values.buckets.counts),
            "low": values.buckets.low,
        }
    return content


def values_of_content(content: Any) -> RunValues:
    """Return the values in decoded JSON. Raises ValueError if it is malformed or of another version."""
    try:
        if content["version"] != VERSION or content["source"] not in (CLIENT, SERVER):
            raise ValueError("another version")
        if (latency := content.get("latency")) is not None:
            content = {**content, "latency": {name: dict(pairs) for name, pairs in latency.items()}}
        if (buckets := content.get("buckets")) is not None:
            content = {**content, "buckets": {**buckets, "upper_bounds": [*buckets["upper_bounds"], inf]}}
        values = msgspec.convert(content, RunValues, strict=False)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"malformed: {error}") from None
    if values.buckets is not None and len(values.buckets.upper_bounds) != len(values.buckets.counts):
        raise ValueError("the numbers of bounds and counts differ")
    return values


PERCENTAGES = (50.0, 95.0, 99.0)
LEVEL = 0.05
NOT_CONVERGED_SHARE = 0.03
"""If the throughput of the whole run differs from that after the warm-up by a larger share, it has not converged."""
ERROR_TOLERANCE = 0.001
"""How far the error share of the best combination may be above the lowest error share."""
NO_CLIENT_RESULT = "the run has no client result"
NO_INTERVAL = "no complete interval was measured"
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)


@dataclass(frozen=True)
class ThroughputUnit:
    """What the throughput counts: operations, or items of operations such as the rows of a batch.

    name    its name in texts.
    header  the header of the throughput in tables for people.
    column  the column of the throughput in files.
    """

    name: str
    header: str
    column: str

    @property
    def axis_label(self) -> str:
        return f"throughput, {self.name}"


IN_OPERATIONS = ThroughputUnit("operations/s", "ops/s", "ops_per_s")
IN_ITEMS = ThroughputUnit("items/s", "items/s", "items_per_s")


Outcome = RunValues | str
"""How a run of a sweep ended: its values, or the reason why it has none."""


@dataclass(frozen=True)
class SweepRow:
    """The results of one combination of parameters; None stands for unknown.

    parameters       the value of each parameter.
    runs             the number of runs that the values cover.
    failed, missing  the numbers of runs that failed and of those that have not ended.
    problem          why the first failed run failed; "" if none did.
    ops_per_s        the mean throughput of the runs, in operations/s.
    low, high        its 95% confidence interval; None if there are fewer than two runs.
    whole_ops_per_s  the mean throughput including the warm-up, in operations/s.
    mean_ms, p50_ms, p95_ms, p99_ms
                     the latency of the operations of all runs.
    is_only_stated   whether percentiles are unknown because the load generator states only those of each run.
    errors           the number of failed operations in all runs.
    error_share      failed operations as a share of all operations.
    is_best          whether this is the best combination (see `with_best`).
    items_per_op     the number of items per operation; 1 if operations are counted.
    intervals_missing  the number of intervals that nodes lack in all runs.
    remark           which nodes lack intervals in the first run in which any do; "" if none do.
    """

    parameters: Mapping[str, str]
    runs: int = 0
    failed: int = 0
    missing: int = 0
    problem: str = ""
    ops_per_s: float | None = None
    low: float | None = None
    high: float | None = None
    whole_ops_per_s: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    is_only_stated: bool = False
    errors: float | None = None
    error_share: float | None = None
    is_best: bool = False
    items_per_op: float = 1.0
    intervals_missing: float | None = None
    remark: str = ""

    @property
    def throughput(self) -> float | None:
        """The mean throughput of the runs, in the table's unit."""
        return self._in_unit(self.ops_per_s)

    @property
    def throughput_low(self) -> float | None:
        """The lower limit of the throughput's confidence interval, in the table's unit."""
        return self._in_unit(self.low)

    @property
    def throughput_high(self) -> float | None:
        """The upper limit of the throughput's confidence interval, in the table's unit."""
        return self._in_unit(self.high)

    @property
    def whole_throughput(self) -> float | None:
        """The mean throughput including the warm-up, in the table's unit."""
        return self._in_unit(self.whole_ops_per_s)

    @property
    def has_converged(self) -> bool | None:
        """Whether the throughput with and without the warm-up is about the same; None if one of them is unknown."""
        if not self.ops_per_s or self.whole_ops_per_s is None:
            return None
        return abs(self.whole_ops_per_s / self.ops_per_s - 1) <= NOT_CONVERGED_SHARE

    def latency_ms(self, percentile: str) -> float | None:
        """Return a percentile of the latency: p50, p95 or p99."""
        value: float | None = getattr(self, f"{percentile}_ms")
        return value

    def _in_unit(self, ops_per_s: float | None) -> float | None:
        return None if ops_per_s is None else ops_per_s * self.items_per_op


@dataclass(frozen=True)
class SweepTable:
    """The results of a sweep.

    source        CLIENT or SERVER: who measured the values.
    latency_kind  "response", "service" or SERVER; "" if it is unknown or not the same in all rows.
    items_per_op  the parameter whose value is the number of items per operation; "" if operations are counted.
    """

    name: str
    parameters: tuple[str, ...]
    repeats: int
    source: str
    latency_kind: str
    rows: tuple[SweepRow, ...]
    items_per_op: str = ""

    @property
    def unit(self) -> ThroughputUnit:
        """The unit of the rows' throughput."""
        return IN_ITEMS if self.items_per_op else IN_OPERATIONS

    @property
    def best(self) -> SweepRow | None:
        return next((row for row in self.rows if row.is_best), None)


def number_of(value: str) -> float | None:
    """Return the number that a value states as an integer or a decimal; None if it is something else."""
    return float(value) if _NUMBER.fullmatch(value) else None


def sweep_table(
    name: str,
    combinations: Sequence[Mapping[str, str]],
    outcomes: Sequence[Sequence[Outcome]],
    repeats: int,
    items_per_op: str = "",
) -> SweepTable:
    """Return the results of a sweep; `outcomes` are the runs of each combination that have ended.

    The values are those of the clients if any run has a client result. `items_per_op` is the parameter whose value is
    the number of items per operation; "" if operations are counted.
    """
    values = [outcome for of_row in outcomes for outcome in of_row if not isinstance(outcome, str)]
    source = CLIENT if any(value.source == CLIENT for value in values) else SERVER
    kinds = {value.latency_kind for value in values if value.source == source and value.latency_kind}
    rows = [
        replace(
            _row(combination, [_judged(outcome, source) for outcome in of_row], repeats),
            items_per_op=float(combination[items_per_op]) if items_per_op else 1.0,
        )
        for combination, of_row in zip(combinations, outcomes, strict=True)
    ]
    parameters = tuple(combinations[0]) if combinations else ()
    kind = kinds.pop() if len(kinds) == 1 else ""
    return SweepTable(name, parameters, repeats, source, kind, with_best(rows, source), items_per_op)


def with_best(rows: Sequence[SweepRow], source: str = CLIENT) -> tuple[SweepRow, ...]:
    """Return the rows with a mark on the best one: the highest throughput without more errors than others.

    Only rows count whose error share is at most ERROR_TOLERANCE above the lowest one. If no error share is known, all
    rows with a throughput count. A throughput of SERVER is only a lower bound if nodes lack intervals, so it cannot be
    compared with others.
    """
    measured = [row for row in rows if row.throughput is not None and not (source == SERVER and row.intervals_missing)]
    shares = [row.error_share for row in measured if row.error_share is not None]
    if shares:
        highest = min(shares) + ERROR_TOLERANCE
        measured = [row for row in measured if row.error_share is not None and row.error_share <= highest]
    best = max(measured, key=lambda row: row.throughput or 0.0, default=None)
    return tuple(replace(row, is_best=row is best) for row in rows)


def confidence_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95% confidence interval of the mean of rates (Student's t); None if there are fewer than two values.

    Its lower limit is at least 0, because rates cannot be negative.
    """
    if len(values) < 2:
        return None
    margin = critical_value(LEVEL, len(values) - 1) * stdev(values) / sqrt(len(values))
    mean = fmean(values)
    return max(0.0, mean - margin), mean + margin


def _judged(outcome: Outcome, source: str) -> Outcome:
    """Return the outcome; a run whose throughput is unknown has failed."""
    if isinstance(outcome, str):
        return outcome
    if outcome.ops_per_s is None:
        return NO_INTERVAL
    return outcome if outcome.source == source else NO_CLIENT_RESULT


def _row(parameters: Mapping[str, str], outcomes: Sequence[Outcome], repeats: int) -> SweepRow:
    runs = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    problems = [outcome for outcome in outcomes if isinstance(outcome, str)]
    missing = max(0, repeats - len(outcomes))
    row = SweepRow(parameters, len(runs), len(problems), missing, problems[0] if problems else "")
    if not runs:
        return row
    rates = [run.ops_per_s for run in runs if run.ops_per_s is not None]
    wholes = [run.whole_ops_per_s for run in runs if run.whole_ops_per_s is not None]
    low, high = confidence_interval(rates) or (None, None)
    errors, attempts = (_total([getattr(run, name) for run in runs]) for name in ("errors", "attempts"))
    p50_ms, p95_ms, p99_ms = _percentiles_ms(runs)
    return replace(
        row,
        ops_per_s=fmean(rates),
        low=low,
        high=high,
        whole_ops_per_s=fmean(wholes) if len(wholes) == len(runs) else None,
        mean_ms=weighted_mean([(run.operations, run.mean_ms) for run in runs if run.operations]),
        p50_ms=p50_ms,
        p95_ms=p95_ms,
        p99_ms=p99_ms,
        is_only_stated=len(runs) > 1 and any(run.latency is not None and not run.latency.counts for run in runs),
        errors=errors,
        error_share=errors / attempts if errors is not None and attempts else None,
        intervals_missing=_total([run.intervals_missing for run in runs]),
        remark=next((run.remark for run in runs if run.remark), ""),
    )


def _total(values: Sequence[float | None]) -> float | None:
    return None if any(value is None for value in values) else sum(value for value in values if value is not None)


def _percentiles_ms(runs: Sequence[RunValues]) -> Sequence[float | None]:
    """Return the percentiles of the operations of all runs, from the sums of their histograms.

    They are unknown if the runs have latencies of different kinds. Percentiles that are only stated are known for a
    single run.
    """
    unknown = (None,) * len(PERCENTAGES)
    active = [run for run in runs if run.operations]
    kinds = Counter(run.latency_kind for run in active)
    if len(kinds) != 1:
        return unknown
    if SERVER in kinds:
        parts = [run.buckets for run in active if run.buckets is not None]
        if not parts or len(parts) < len(active):
            return unknown
        merged = histogram.merge(parts)
        seconds: Sequence[float | None] = [histogram.quantile(merged, share / 100) for share in PERCENTAGES]
    else:
        latencies = [run.latency for run in active]
        latency = latencies[0] if len(latencies) == 1 else merged_latency(latencies)
        if latency is None:
            return unknown
        seconds = latency.percentiles_s(PERCENTAGES)
    return [None if value_s is None else value_s * MS for value_s in seconds]
