"""A load generator that achieves exactly its rate has exactly this rate, whenever it and the phase begin and end."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_format import CommandTimes, FormatChoice
from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.load_results.format_registry import read_file
from collector.load_results.load_span import LoadTimes, with_stall, with_true_edges
from collector.load_results.operation_times import OperationTimes
from exporters.results.comparison.amounts import ALL, client_bins
from exporters.results.summary.client_values import client_points, client_span, client_values
from exporters.results.sweep.sweep_rows import client_run_values
from tests.every import every

T_S = 1_795_000_000.0
RATES = st.floats(2.5, 400.0)
FRACTIONS = st.floats(0.0, 0.999)
Load = Callable[[float, float, float], ClientResult]


def result(*operations: Operation) -> ClientResult:
    return ClientResult("test", "test", "file", operations)


def single_operations(rate: float, begin_s: float, length_s: float) -> ClientResult:
    """Return the result of a load with single operations; reads and writes alternate."""
    times, duration_s = OperationTimes(), 0.4 / rate
    for index in range(int(rate * length_s)):
        end_s = begin_s + index / rate + duration_s
        times.add("read" if index % 2 else "write", end_s, round(duration_s * 1e9))
    return result(*times.operations())


def nominal_seconds(rate: float, begin_s: float, length_s: float) -> ClientResult:
    """Return the result of a load by whole seconds, as if the load had filled the first and the last one."""
    intervals = []
    for second in range(int(begin_s), int(begin_s + length_s) + 1):
        number = round(1000 * rate * max(min(second + 1, begin_s + length_s) - max(second, begin_s), 0.0))
        # A row without operations would be a second in which the load stalled.
        if number:
            intervals.append(ClientInterval(float(second), second + 1.0, number))
    return result(with_true_edges(Operation("", tuple(intervals))))


def rate_in(results: Sequence[ClientResult], begin_s: float, end_s: float) -> float:
    """Return the rate in a phase, on which everything that states it must agree."""
    rate = client_values(results, begin_s, end_s)["client_ops_per_s"]
    assert isinstance(rate, int | float)
    assert client_run_values(results, (begin_s, end_s), None).ops_per_s == pytest.approx(rate, abs=0.001)
    bins = client_bins(results, "service", begin_s, end_s, 1.0)[ALL]
    assert bins.completed.sum() / bins.lengths_s.sum() == pytest.approx(rate, abs=0.001)
    return rate


@given(RATES, FRACTIONS, FRACTIONS, st.integers(8, 40), st.booleans())
def test_a_constant_rate_of_single_operations(
    rate: float, begin: float, end: float, length_s: int, has_warm_up: bool
) -> None:
    begin_s, load_s = T_S + begin, length_s + end
    load = single_operations(rate, begin_s, load_s)
    phase_begin_s = begin_s + (2.7 if has_warm_up else -1.5)
    # The load generator needs 2 s to exit.
    assert rate_in([load], phase_begin_s, begin_s + load_s + 2) == pytest.approx(rate, rel=0.002)


@given(RATES, FRACTIONS, FRACTIONS, st.integers(8, 40), st.booleans())
def test_a_constant_rate_by_seconds_of_which_the_first_and_the_last_are_partly_empty(
    rate: float, begin: float, end: float, length_s: int, has_warm_up: bool
) -> None:
    begin_s, load_s = T_S + begin, length_s + end
    load = nominal_seconds(rate, begin_s, load_s)
    phase_begin_s = begin_s + (2.7 if has_warm_up else -1.5)
    measured = rate_in([load], phase_begin_s, begin_s + load_s + 2)
    assert measured == pytest.approx(1000 * rate, rel=0.002)


@given(st.sampled_from([single_operations, nominal_seconds]), FRACTIONS, FRACTIONS, st.integers(12, 40))
def test_rates_of_clients_that_begin_and_end_at_slightly_different_times_add_up(
    load: Load, first: float, second: float, length_s: int
) -> None:
    scale = 1 if load is single_operations else 1000
    results = [load(100.0, T_S + fraction, length_s + 0.3 * fraction) for fraction in (first, second)]
    assert rate_in(results, T_S - 1, T_S + length_s + 4) == pytest.approx(200 * scale, rel=0.01)
    assert rate_in(results, T_S + 3.4, T_S + length_s - 2.2) == pytest.approx(200 * scale, rel=0.01)


def test_operations_whose_times_are_whole_seconds() -> None:
    times = OperationTimes()
    for index in range(1500):
        times.add("", int(T_S + 0.3 + index / 100), 5_000_000)
    assert rate_in([result(*times.operations())], T_S, T_S + 20) == pytest.approx(100, rel=0.001)


def rows(begin_s: float, length_s: float, number: int, completed: int) -> ClientResult:
    intervals = (
        ClientInterval(begin_s + index * length_s, begin_s + (index + 1) * length_s, completed)
        for index in range(number)
    )
    return result(Operation("", tuple(intervals)))


def test_long_intervals_that_cross_the_phase_are_neither_counted_nor_taken_for_idle_time() -> None:
    a, b = rows(-5.0, 10.0, 4, 1000), rows(-3.0, 1.0, 27, 100)
    assert rate_in([a], 0.0, 21.0) == rate_in([b], 0.0, 21.0) == 100
    assert client_span([a, b], 0.0, 21.0) == (5.0, 15.0)
    assert rate_in([a, b], 0.0, 21.0) == 200


def test_intervals_half_a_second_apart() -> None:
    a, b = rows(0.2, 1.0, 32, 100), rows(0.7, 1.0, 32, 100)
    for phase in ((2.0, 32.1), (2.0, 40.0), (0.0, 32.1), (0.0, 40.0)):
        assert rate_in([a, b], *phase) == pytest.approx(200, rel=1e-6)


def test_loads_that_follow_one_another_do_not_add_up() -> None:
    assert rate_in([rows(0.0, 1.0, 20, 100), rows(20.0, 1.0, 20, 100)], 0.0, 50.0) == 100
    # A client that ends far earlier than another one has no operations afterwards.
    assert rate_in([rows(0.0, 1.0, 20, 100), rows(0.0, 1.0, 40, 100)], 0.0, 50.0) == 150


def test_without_an_interval_inside_the_phase_the_rate_is_absent() -> None:
    assert client_values([rows(0.0, 60.0, 1, 100), rows(0.0, 1.0, 60, 100)], 10.0, 40.0).get("client_ops_per_s") is None
    assert client_span([], 0.0, 10.0) is None


def test_an_interval_without_operations_may_cross_the_phase() -> None:
    idle = result(Operation("", (ClientInterval(0.0, 50.0, 0), *rows(50.0, 1.0, 10, 100).operations[0].intervals)))
    assert rate_in([idle], 40.0, 60.0) == 50


def stalled(until_s: float, **times: object) -> ClientResult:
    """Return a load of 100 operations/s for 20 s whose command ends at `until_s`."""
    load = single_operations(100.0, T_S, 20.0)
    return with_stall(load, LoadTimes(T_S - 1, T_S + until_s, **times))  # type: ignore[arg-type]


@every(
    ("times", "rate"),
    [
        # Whether the command ran the load is unknown, or the load generator may have needed 4 s to exit.
        ({"until_s": 40.0}, 100),
        ({"until_s": 24.0, "is_of_command": True}, 100),
        # The command goes on for 20 s without operations.
        ({"until_s": 40.0, "is_of_command": True}, 50),
        # The load was to run for 23 s, of which the load generator may have needed 1 s to start.
        ({"until_s": 40.0, "length_s": 23.0}, 100 * 20 / 22),
        ({"until_s": 40.0, "length_s": 21.5}, 100),
        ({"until_s": 24.0, "length_s": 20.0, "is_of_command": True}, 100),
    ],
)
def test_a_stall_until_the_end_counts_as_time(times: dict[str, object], rate: float) -> None:
    until_s = times.pop("until_s")
    assert isinstance(until_s, float)
    load = stalled(until_s, **times)
    assert rate_in([load], T_S - 1, T_S + until_s) == pytest.approx(rate, rel=0.002)
    assert any("counted as a stall" in text for text in load.notes) == (rate != 100)


def test_a_command_that_casstat_ended_ran_until_then() -> None:
    load = with_stall(
        single_operations(100.0, T_S, 20.0), LoadTimes(T_S, T_S + 23, until_s=T_S + 22.5, is_of_command=True)
    )
    assert rate_in([load], T_S - 1, T_S + 30) == pytest.approx(100 * 20 / 22.5, rel=0.002)


@pytest.mark.parametrize("fraction", [0.05, 0.37, 0.5, 0.93])
def test_a_csv_file_of_seconds_is_read_with_its_true_edges(tmp_path: Path, fraction: float) -> None:
    path = tmp_path / "rows.csv"
    counts = [200] * 10 + [round(200 * fraction)]
    path.write_text("time_s,duration_s,operations\n" + "".join(f"{T_S + i:.3f},1,{n}\n" for i, n in enumerate(counts)))
    load = read_file(path, FormatChoice(), CommandTimes(T_S, T_S + 20))
    assert rate_in([load], T_S, T_S + 20) == pytest.approx(200, rel=0.001)


@every("at_s", [0.0, 3.0, 3.5, 6.0, 6.5])
def test_operations_at_one_moment_count_in_exactly_one_range(at_s: float) -> None:
    moment = Operation("cleanup", (ClientInterval(at_s, at_s, 60),))
    load = result(*rows(0.0, 1.0, 6, 10).operations, moment)
    # Those at the begin of the span, or after its end, do not belong to it.
    expected = 20.0 if 0 < at_s <= 6 else 10.0
    assert rate_in([load], 0.0, 7.0) == expected
    points = client_points([load], 0.0, 7.0, 1.0)
    assert sum((point.ops_per_s or 0.0) * (point.end_s - point.begin_s) for point in points) == expected * 6


def test_an_operation_at_one_moment_alone_has_no_rate() -> None:
    load = result(Operation("", (ClientInterval(1.0, 1.0, 5),)))
    values = client_values([load], 0.0, 7.0)
    assert "client_ops_per_s" not in values
    assert client_points([load], 0.0, 7.0, 1.0) == []
