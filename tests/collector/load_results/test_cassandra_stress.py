"""Output in the layout of cassandra-stress 4.x and 5.0, generated here from its format strings, not captured."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, read_file, recognised_format
from collector.load_results.formats.cassandra_stress import SHUTDOWN_S
from tests.examples import examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
TITLES = "total ops,    op/s,    pk/s,   row/s,    mean,     med,     .95,     .99,    .999,     max,   time,   stderr"
HEADER = f"{'type':50}{TITLES}, errors,  gc: #,  max ms,  sum ms,  sdv ms,      mb"


def row(name: str, operations: int, rate: int, time_s: float, errors: int = 0, p99_ms: float = 4.0) -> str:
    latencies = ",".join(f"{value:8.1f}" for value in (1.5, 1.0, 3.0, p99_ms, 5.0, 6.0))
    counts = f"{operations:10},{rate:8},{rate:8},{rate:8}"
    return f"{name + ',':50}{counts},{latencies},{time_s:7.1f},  0.01000,{errors:7},      0,       0,       0,  NaN,  0"


def results(name_values: Mapping[str, int], errors: Mapping[str, int], duration: str = "00:00:03") -> list[str]:
    def line(label: str, total: str, values: Mapping[str, str]) -> str:
        return f"{label:26}: {total} [{', '.join(f'{name}: {value}' for name, value in values.items())}]"

    latencies = {
        label: line(f"Latency {label}", f"{value:6.1f} ms", dict.fromkeys(name_values, f"{value + 1:,.1f} ms"))
        for label, value in (("median", 1.0), ("95th percentile", 3.0), ("99th percentile", 4.0), ("max", 1234.5))
    }
    failed = line("Total errors", f"{sum(errors.values()):10,}", {name: f"{count:,}" for name, count in errors.items()})
    return ["", "", "Results:", *latencies.values(), failed, f"Total operation time      : {duration}", ""]


def mixed() -> list[str]:
    return [
        "Running [READ, WRITE] with 8 threads for 6100 iteration",
        HEADER,
        # In the first interval, only reads occur, so only the total row is printed.
        row("total", 1000, 1000, 1.0),
        row("READ", 2000, 1000, 2.0, errors=10),
        row("WRITE", 1500, 1500, 1.0),
        row("total", 3500, 2500, 2.0, errors=10),
        row("READ", 3000, 1000, 3.0),
        row("WRITE", 3100, 1600, 2.0),
        row("total", 6100, 2600, 3.0),
        *results({"READ": 3000, "WRITE": 3100}, {"READ": 10, "WRITE": 0}),
        "END",
    ]


def single(*rows: str) -> list[str]:
    return ["Running WRITE with 4 threads 3 seconds", HEADER, *rows]


def read(path: Path, lines: list[str], times: CommandTimes = TIMES) -> ClientResult:
    path.write_text("\n".join(lines) + "\n")
    return read_as(recognised_format(path), path, times)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "command.log"


def test_operations_have_their_own_counts_errors_and_stated_total(path: Path) -> None:
    result = read(path, mixed())
    reads, writes = result.operations
    assert (result.tool, reads.name, writes.name) == ("cassandra-stress", "read", "write")
    assert [interval.completed for interval in reads.intervals] == [1000, 990, 1000]
    assert [interval.completed for interval in writes.intervals] == [0, 1500, 1600]
    assert reads.intervals[1].errors == {"": 10}
    assert writes.intervals[0].service is None
    assert reads.intervals[0].service is not None
    assert reads.intervals[0].service.stated_s == {50.0: 0.001, 95.0: 0.003, 99.0: 0.004, 99.9: 0.005, 100.0: 0.006}
    assert reads.total is not None
    assert (reads.total.completed, reads.total.failed) == (2990, 10)
    assert reads.total.service is not None
    assert reads.total.service.stated_s == {50.0: 0.002, 95.0: 0.004, 99.0: 0.005, 100.0: 1.2355}
    assert result.has_only_service_time
    assert "10 failed operations" in result.notes[0]


def captured(name: str) -> ClientResult:
    return read_file(CAPTURES / f"cassandra-stress-{name}.log", FormatChoice(), TIMES)


def test_a_repeated_header_does_not_begin_a_run(path: Path) -> None:
    result = captured("header-frequency")
    (operation,) = result.operations
    assert [interval.completed for interval in operation.intervals] == [1000, 1000, 960, *[1000] * 17]
    assert [interval.failed for interval in operation.intervals] == [0, 0, 40, *[0] * 17]
    assert result.notes == ("the latencies include those of 40 failed operations",)
    lines = mixed()
    at_any_line = [[*lines[:index], "", HEADER, *lines[index:]] for index in range(2, lines.index("Results:"))]
    assert all(read(path, changed).operations == read(path, lines).operations for changed in at_any_line)


def test_a_header_whose_rows_count_from_zero_begins_a_run(path: Path) -> None:
    second = [HEADER, row("total", 40, 40, 1.0), row("total", 80, 40, 2.0)]
    result = read(path, [*single(row("total", 90, 90, 1.0)), *second])
    assert [interval.completed for interval in result.operations[0].intervals] == [40, 40]
    assert "1 earlier run with 90 operations ignored" in result.notes[1]


@pytest.mark.parametrize(
    ("name", "ends_s", "completed", "failed"),
    [("burst", [5, 10, 15, 20, 23], 21_460, 40), ("dip", [5, 10, 12], 12_400, 0)],
)
def test_rows_of_every_fifth_second_have_all_operations(
    name: str, ends_s: list[int], completed: int, failed: int
) -> None:
    result = captured(f"output-frequency-{name}")
    (operation,) = result.operations
    begin_s = operation.intervals[0].begin_s
    assert [interval.end_s - begin_s for interval in operation.intervals] == pytest.approx(ends_s)
    assert all(interval.completed and not interval.service for interval in operation.intervals)
    assert operation.summary is not None
    assert (operation.summary.completed, operation.summary.failed) == (completed, failed)
    assert operation.total is not None
    assert operation.total.service is not None
    assert operation.total.service.stated_s[99.0] == 0.003
    assert len(result.notes) == 1
    assert "output-frequency" in result.notes[0]


def test_several_operations_have_rows_in_each_second() -> None:
    result = captured("output-frequency-mixed")
    reads, writes = result.operations
    assert [interval.completed for interval in reads.intervals] == [500, 500, 460, *[500] * 10]
    assert [interval.completed for interval in writes.intervals] == [500] * 13
    assert reads.intervals[2].errors == {"": 40}
    assert result.notes == ("the latencies include those of 40 failed operations",)


@pytest.mark.parametrize("is_stated", ["by the command", "by the settings", "by the results"])
def test_a_steady_run_with_few_rows_has_its_errors_and_its_end(path: Path, is_stated: str) -> None:
    words = ("cassandra-stress", "write", "-reporting", "output-frequency=5s") if is_stated == "by the command" else ()
    lines = ["  Output frequency: 5s"] if is_stated == "by the settings" else []
    rows = [row("total", 1000 * second, 1000, float(second)) for second in (5, 10)]
    totals = results({"WRITE": 13_000}, {"WRITE": 26}, "00:00:13")
    totals.insert(3, f"{'Op rate':26}:    1,000 op/s  [WRITE: 1,000 op/s]")
    times = CommandTimes(TIMES.begin_s, TIMES.end_s, words)
    result = read(path, [*lines, *single(*rows), *totals, "END"], times)
    (operation,) = result.operations
    assert [(interval.completed, interval.failed) for interval in operation.intervals] == [
        (4990, 10),
        (4990, 10),
        (2994, 6),
    ]
    assert not any("states" in note for note in result.notes)
    # Without any row, the results are the only interval.
    (operation,) = read(path, [*lines, *single(), *totals, "END"], times).operations
    assert [(interval.completed, interval.failed) for interval in operation.intervals] == [(12_974, 26)]


@pytest.mark.parametrize(("every", "is_stated"), [(1, False), (2, False), (2, True), (5, False), (5, True), (10, True)])
@pytest.mark.parametrize("last_s", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("stalled", [range(0), range(5, 8), range(9, 13)])
def test_a_run_whose_rows_are_few_and_whose_last_second_is_partial_is_complete(
    path: Path, every: int, is_stated: bool, last_s: float, stalled: range
) -> None:
    total = failed = intervals = 0
    rows = []
    for second in range(13):
        length_s = last_s if second == 12 else 1.0
        count, errors = round((1000 + 50 * second) * length_s), 7 if second % 4 == 3 else 0
        if second in stalled:
            continue
        total, failed, intervals = total + count, failed + errors, intervals + 1
        if intervals % every == 0:
            rows.append(row("total", total, round(count / length_s), second + length_s, errors))
    rate = round(total / (12 + last_s))
    totals = results({"WRITE": total}, {"WRITE": failed}, f"00:00:{int(12 + last_s)}")
    partitions = f"{'Total partitions':26}: {total:10,} [WRITE: {total:,}]"
    totals[3:3] = [f"{'Op rate':26}: {rate:,} op/s  [WRITE: {rate:,} op/s]", partitions]
    words = ("cassandra-stress", "write", "-reporting", f"output-frequency={every}s") if is_stated else ()
    path.write_text("\n".join([*single(*rows), *totals, "END", ""]))
    result = read_file(path, FormatChoice(), CommandTimes(TIMES.begin_s, TIMES.end_s, words))
    (operation,) = result.operations
    assert operation.summary is not None
    assert (operation.summary.completed, operation.summary.failed) == (total - failed, failed)
    assert operation.summary.end_s - operation.summary.begin_s == pytest.approx(12 + last_s, abs=0.11)
    assert not any("the file states" in note for note in result.notes)


def test_a_slow_first_second_is_part_of_the_run(path: Path) -> None:
    rows = [row("total", 1000 * second - 800, 200 if second == 1 else 1000, float(second)) for second in range(1, 21)]
    path.write_text("\n".join([*single(*rows), ""]))
    (operation,) = read_file(path, FormatChoice(), TIMES).operations
    assert operation.summary is not None
    assert operation.summary.end_s - operation.summary.begin_s == pytest.approx(20)


def test_rows_that_lack_operations_are_noted(path: Path) -> None:
    rows = [row("total", 1000 * second, 1000, float(second)) for second in (1, 2, 3)]
    totals = results({"WRITE": 3400}, {"WRITE": 0})
    partitions = f"{'Total partitions':26}: {3400:10,} [WRITE: 3,400]"
    totals[3:3] = [f"{'Op rate':26}: 1,000 op/s  [WRITE: 1,000 op/s]", partitions]
    path.write_text("\n".join([*single(*rows), *totals, "END", ""]))
    assert "the file states 3,400 operations, but has 3,000" in read_file(path, FormatChoice(), TIMES).notes


def test_a_killed_run_with_few_rows_states_what_is_unknown(path: Path) -> None:
    rows = [row("total", 1000 * second, 1000, float(second), 7) for second in (5, 10)]
    notes = read(path, ["  Output frequency: 5s", *single(*rows)]).notes
    assert any("errors are known only of the last second before each row" in note for note in notes)


def test_results_that_contradict_the_rows_are_noted(path: Path) -> None:
    rows = [row("total", 1000 * second, 1000, float(second)) for second in (1, 2, 3)]
    totals = results({"WRITE": 3000}, {"WRITE": 7})
    totals.insert(3, f"{'Op rate':26}:    5,000 op/s  [WRITE: 5,000 op/s]")
    path.write_text("\n".join([*single(*rows), *totals, "END", ""]))
    notes = read_file(path, FormatChoice(), TIMES).notes
    assert "the file states 7 failed operations, but has 0 of write" in notes
    assert "the file states 5,000 operations/s, but has 1,000/s" in notes


def test_the_last_row_ends_when_the_command_began_to_shut_down(path: Path) -> None:
    result = read(path, mixed())
    assert result.estimated_clock
    assert result.span_s == pytest.approx((TIMES.end_s - SHUTDOWN_S - 3, TIMES.end_s - SHUTDOWN_S))
    short = CommandTimes(TIMES.end_s - 4, TIMES.end_s)
    assert read(path, mixed(), short).span_s == pytest.approx((short.begin_s, short.begin_s + 3))
    # Without END, the command was stopped.
    assert read(path, single(row("total", 9, 9, 1.0))).span_s == pytest.approx((TIMES.end_s - 1, TIMES.end_s))


@pytest.mark.parametrize(
    ("words", "line", "is_fixed"),
    [
        (("cassandra-stress", "mixed", "-rate", "threads=8", "fixed=500/s"), "", True),
        (("./load.sh",), "+ cassandra-stress mixed -rate 'threads=8 fixed=500/s'", True),
        (("cassandra-stress", "mixed", "-rate", "threads=8", "throttle=500/s"), "", False),
        (("cassandra-stress x -rate fixed=9/s; cassandra-stress y",), "", False),
    ],
)
def test_latencies_are_response_times_with_a_fixed_rate(
    path: Path, words: tuple[str, ...], line: str, is_fixed: bool
) -> None:
    times = CommandTimes(TIMES.begin_s, TIMES.end_s, words)
    result = read(path, [line, "  OpsPer Sec: 500", *mixed()], times)
    interval = result.operations[0].intervals[0]
    assert (interval.response is not None, interval.service is not None) == (is_fixed, not is_fixed)
    assert any("with fixed=" in note for note in result.notes) != is_fixed


def test_time_without_a_row_is_an_interval_without_operations(path: Path) -> None:
    rows = single(row("total", 1000, 1000, 1.0), row("total", 2000, 1000, 5.0))
    (operation,) = read(path, [*rows, *results({"WRITE": 2000}, {"WRITE": 0}, "00:00:09"), "END"]).operations
    begin_s = operation.intervals[0].begin_s
    spans = [(i.begin_s - begin_s, i.end_s - begin_s, i.completed) for i in operation.intervals]
    assert [number for each in spans for number in each] == pytest.approx([0, 1, 1000, 1, 4, 0, 4, 5, 1000, 5, 9, 0])
    assert operation.name == "write"


def test_thousands_in_the_total_are_separated_in_any_locale(path: Path) -> None:
    lines = [*single(row("total", 5000, 5000, 1.0, 1234)), *results({"WRITE": 5000}, {"WRITE": 1234}), "END"]
    for thousands in ".\u202f\u00a0":
        (operation,) = read(path, [_with_commas(line, thousands) for line in lines]).operations
        assert operation.total is not None
        assert (operation.total.completed, operation.total.failed) == (3766, 1234)


def test_a_late_row_is_no_stall(path: Path) -> None:
    (operation,) = read(path, single(row("total", 1000, 1000, 1.0), row("total", 2300, 1000, 2.3))).operations
    assert [interval.completed for interval in operation.intervals] == [1000, 1300]


def test_rows_of_the_same_time_are_one_interval_without_percentiles(path: Path) -> None:
    (operation,) = read(path, single(row("total", 1000, 1000, 1.0), row("total", 1010, 500, 1.0, 1))).operations
    (interval,) = operation.intervals
    assert (interval.completed, interval.failed, interval.service) == (1009, 1, None)


def test_only_the_last_of_several_runs_counts(path: Path) -> None:
    summary = [f"         id, {HEADER}", f" 4 threads, {row('total', 500, 500, 1.0)}"]
    lines = ["Warming up WRITE with 500 iterations...", *single(row("total", 500, 500, 1.0)), *mixed(), *summary]
    result = read(path, lines)
    assert [operation.intervals[-1].completed for operation in result.operations] == [1000, 1600]
    notes = " ".join(result.notes)
    assert "1 earlier run with 500 operations ignored; only the last run with 8 threads is imported" in (
        notes.replace(", with", " with")
    )
    assert "warm-up" in notes


def test_decimal_commas_older_layouts_and_terminal_codes_do_not_matter(path: Path) -> None:
    expected = read(path, mixed()).operations
    for thousands in ".\u202f\u00a0":
        assert read(path, [_with_commas(line, thousands) for line in mixed()]).operations == expected
    path.write_bytes("\r\n".join(["\x1b[32mhello\x1b[0m\rworld", *mixed(), ""]).encode())
    assert read_as(recognised_format(path), path, TIMES).operations == expected
    narrow = [
        line.replace(" " * 40, "") if line.startswith(("type", "total", "READ", "WRITE")) else line for line in mixed()
    ]
    assert read(path, narrow).operations == expected


def _with_commas(line: str, thousands: str) -> str:
    """Return a line as a JVM prints it where the decimal separator is a comma."""
    if line.startswith(("total,", "READ,", "WRITE,")):
        return line.replace(".", ",")
    return re.sub(r"\d[\d.,]*\d", lambda match: match[0].translate(str.maketrans(".,", "," + thousands)), line)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (single(), "no rows"),
        (single(row("total", 9, 9, 1.0).replace("1.5", "1.x")), "line 3"),
        (single(row("total", 9, 9, 2.0), row("total", 9, 9, 1.0)), "line 4"),
        (single(row("total", 9, 9, 1.0), row("total", 8, 9, 2.0)), "line 4"),
        (single(row("total", 9_000_000, 9, 1.0)), "contradicts the rate"),
        (single(row("total", 9, 9, 99_999_999.0)), "days"),
        (single(*(row(f"op {n}", 1, 1, 1.0) for n in range(60))), "line 53: more than 50 operations"),
        ([*single(row("total", 9, 9, 1.0)), *single()], "no rows"),
    ],
)
def test_damaged_output_is_an_error(path: Path, lines: list[str], reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        read(path, lines)


def test_an_incomplete_last_row_is_ignored_with_a_note(path: Path) -> None:
    text = "\n".join(single(row("total", 9, 9, 1.0), row("total", 18, 9, 2.0)))
    path.write_text(text[:-30])
    result = read_as(recognised_format(path), path, TIMES)
    assert [interval.completed for interval in result.operations[0].intervals] == [9]
    assert "middle of a line" in result.notes[-1]


def test_hostile_names_are_short_and_printable(path: Path) -> None:
    hostile = "\x1b]52;c;x\x07\u202e<b>" + "x" * 150
    lines = single(row(hostile, 4, 4, 1.0), row("b", 5, 5, 1.0), row("total", 9, 9, 1.0))
    names = [operation.name for operation in read(path, lines).operations]
    assert all(name.isprintable() and len(name) <= 80 for name in names)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_output_is_an_error_or_has_plausible_counts(path: Path, data: st.DataObject) -> None:
    lines = mixed()
    for _ in range(data.draw(st.integers(0, 2))):
        del lines[data.draw(st.integers(0, len(lines) - 1))]
        first, second = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[first], lines[second] = lines[second], lines[first]
    raw = bytearray("\n".join(lines).encode())
    flips = data.draw(st.integers(0, 2))
    for _ in range(flips):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    try:
        result = read_as(recognised_format(path), path, TIMES)
    except ClientFormatError:
        return
    completed = [interval.completed for operation in result.operations for interval in operation.intervals]
    assert all(count >= 0 for count in completed)
    if not flips:
        assert sum(completed) <= 6100
