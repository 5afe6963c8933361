"""Two files of one load generator have the same operations; two load generators do not, however similar they are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from collector.load_results.client_format import CommandTimes
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.load_results.result_checks import have_same_operations
from tests.collector.load_results.captured import content_of, read_content
from tests.every import every


def result(
    begin_s: float = 100.0, number: int = 20, completed: int = 100, ms: float = 5.0, **other: str
) -> ClientResult:
    latency = Latency({round(ms * 1e6): completed})
    intervals = tuple(
        ClientInterval(begin_s + second, begin_s + second + 1, completed, service=latency) for second in range(number)
    )
    return ClientResult(other.get("format", "a"), "tool", "file", (Operation(other.get("name", "read"), intervals),))


def several() -> ClientResult:
    read, write = result().operations[0], result(completed=70, ms=2, name="write").operations[0]
    failed = tuple(replace(interval, errors={"NOT_FOUND": 3}) for interval in read.intervals)
    return replace(result(), operations=(replace(read, intervals=failed), write))


def responses(**other: Any) -> ClientResult:
    of = result(**other)
    intervals = tuple(
        replace(interval, response=interval.service, service=None, begin_s=interval.begin_s + 0.004)
        for interval in of.operations[0].intervals
    )
    return replace(of, operations=(replace(of.operations[0], intervals=intervals),))


def summarised(of: ClientResult, **stated_s: float) -> ClientResult:
    """Return a result of another format with only a total and percentiles, under another name."""
    total = of.operations[0].summary
    assert total is not None
    latency = Latency(stated_s={float(name[1:]): value_s for name, value_s in stated_s.items()}) if stated_s else None
    return replace(of, format="b", operations=(Operation("", (), replace(total, service=latency)),))


@every(
    ("other", "is_same"),
    [
        (result(), True),
        # Load generators that run side by side.
        (result(100.5), False),
        (result(100.001), False),
        (result(ms=5.1), False),
        (result(completed=101), False),
        (result(name="write"), False),
        # The same operations in another format.
        (result(100.4, format="b"), True),
        (result(101.5, format="b"), False),
        (result(format="b", completed=90), False),
        (result(format="b", ms=5.1), True),
        (result(format="b", ms=6.0), False),
        (result(format="b", number=15), False),
        (summarised(result(), p50=0.005, p99=0.00501), True),
        (summarised(result(), p50=0.005, p99=0.008), False),
        # Without latencies, the numbers must be equal.
        (summarised(result()), True),
        (summarised(result(completed=99)), False),
        (replace(result(), operations=()), False),
        # A log of one of several operations.
        (replace(several(), format="b"), True),
        (several(), False),
        # A log of response times beside one of service times.
        (responses(), True),
        (responses(completed=99), False),
        (responses(name="write"), False),
    ],
)
def test_results(other: ClientResult, is_same: bool) -> None:
    assert have_same_operations(result(), other) == have_same_operations(other, result()) == is_same


def test_a_file_that_ends_earlier_may_lack_the_operations_of_that_time() -> None:
    # Locust writes its two files at different times, and neither when it ends.
    assert have_same_operations(result(), summarised(result(number=19), p50=0.005))
    assert not have_same_operations(result(), summarised(result(completed=94), p50=0.005))


def test_the_position_of_a_result_without_times_of_day_is_an_estimate() -> None:
    assert have_same_operations(result(), replace(result(104.0, format="b"), estimated_clock=True))


def test_percentiles_with_few_values_above_them_are_not_compared(tmp_path: Path) -> None:
    begin_s = int(content_of("ab-gnuplot.tsv").split(b"\t")[6])
    times = CommandTimes(begin_s - 1.0, begin_s + 6.0)
    printed = read_content(tmp_path / "ab.log", content_of("ab.log"), times)
    rows = read_content(tmp_path / "ab.tsv", content_of("ab-gnuplot.tsv"), times)
    # ab's 99th percentile of 300 values is the next higher one.
    assert have_same_operations(printed, rows)
    assert not have_same_operations(printed, read_content(tmp_path / "file", content_of("ab-time.log"), times))
