"""The generic CSV: one row per operation, or one row per interval."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results import operation_times
from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Latency
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.formats import generic_csv
from tests.collector.load_results.mutations import damaged
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
T = 1_795_000_000


def result_of(path: Path, *lines: str, end: str = "\n") -> ClientResult:
    path.write_text("\n".join(lines) + end)
    chosen = recognised_format(path)
    assert chosen.name == "csv"
    return read_as(chosen, path, TIMES)


def test_rows_are_counted_by_the_second_in_which_they_ended(tmp_path: Path) -> None:
    result = result_of(
        tmp_path / "ops.csv",
        "\ufefftime_s,Operation,latency_ms,response_ms,error,thread",
        f"{T}.999,read,1.5,2.5,,1",
        f"{T}.001,read,1.5,3.5,,1",
        f"{T + 2}.5,write,,,timeout,2",
        f"{T + 2}.6,,4,5,,2",
    )
    unnamed, read, write = result.operations
    assert [operation.name for operation in result.operations] == ["", "read", "write"]
    assert [row.completed for row in read.intervals] == [2, 0, 0]
    assert [row.completed for row in unnamed.intervals] == [0, 0, 1]
    assert write.intervals[2] == ClientInterval(T + 2.0, T + 2.6, 0, {"timeout": 1})
    assert read.intervals[0].service is not None
    assert read.intervals[0].response is not None
    assert sum(read.intervals[0].service.counts.values()) == 2
    assert read.intervals[0].service.percentile_s(99) == pytest.approx(0.0015, rel=0.001)
    assert read.intervals[0].response.percentiles_s((50, 99)) == pytest.approx([0.0025, 0.0035], rel=0.001)
    assert result.notes == ("ignored columns: thread",)


@pytest.mark.parametrize("column", ["ok", "success"])
def test_operations_that_a_file_calls_failed_are_errors(tmp_path: Path, column: str) -> None:
    lines = [f"{T}.1,1.5,true,", f"{T}.2,1.5,0,", f"{T}.3,,No,timeout", f"{T}.4,1.5,YES,", f"{T}.5,,1,refused"]
    (operation,) = result_of(tmp_path / "ops.csv", f"time_s,latency_ms,{column},error", *lines).operations
    (row,) = operation.intervals
    assert (row.completed, row.errors) == (2, {"failed": 1, "timeout": 1, "refused": 1})
    (tmp_path / "ops.csv").write_text(f"time_s,latency_ms,{column}\n{T}.1,1.5,maybe\n")
    with pytest.raises(ClientFormatError, match=f"the column {column} is maybe"):
        read_as(recognised_format(tmp_path / "ops.csv"), tmp_path / "ops.csv", TIMES)


def test_requests_of_vegeta_are_counted_as_it_prints_them() -> None:
    """The capture is from Vegeta 12.13.0, which printed "Requests 4800" and "Status Codes 200:4560 404:240"."""
    (operation,) = read_as(recognised_format(CAPTURES / "vegeta.csv"), CAPTURES / "vegeta.csv", TIMES).operations
    assert operation.summary is not None
    assert operation.summary.completed == 4560
    assert operation.summary.errors == {"404": 240}
    assert operation.summary.service is not None
    # From the requests with status 200.
    expected_s = [0.046731056, 0.05170833, 0.058593962, 0.086059633]
    assert operation.summary.service.percentiles_s((50, 90, 95, 99)) == pytest.approx(expected_s, rel=0.001)


@pytest.mark.parametrize(("column", "value"), [("latency_us", "1500"), ("latency_ms", "1.5"), ("latency_s", "1.5e-3")])
def test_latencies_have_the_unit_of_their_column(tmp_path: Path, column: str, value: str) -> None:
    result = result_of(tmp_path / "ops.csv", f"time,{column}", f"2026-11-18T12:26:40.5+01:00,{value}")
    (interval,) = result.operations[0].intervals
    assert interval.service is not None
    assert interval.service.percentile_s(50) == pytest.approx(0.0015, rel=0.001)
    assert result.has_only_service_time


def test_a_file_with_response_times_only_has_no_service_time(tmp_path: Path) -> None:
    (operation,) = result_of(tmp_path / "ops.csv", "time_s,response_ms", f"{T},2", f"{T + 2},3").operations
    assert [bool(row.response) for row in operation.intervals] == [True, False, True]
    assert all(row.service is None for row in operation.intervals)


def test_intervals_have_the_stated_counts_and_percentiles(tmp_path: Path) -> None:
    result = result_of(
        tmp_path / "intervals.csv",
        "time_s,duration_s,operation,operations,errors,p50_ms,p99.9_ms,response_p99_us,p42",
        f"{T + 10},10,read,0,3,,,,x",
        f"{T},10.001,read,1000,2,1.5,9,20000,x",
        f"{T + 30},10,read,5,0,2,,,x",
    )
    (operation,) = result.operations
    latency = Latency(stated_s={50.0: 0.0015, 99.9: 0.009})
    assert operation.intervals == (
        ClientInterval(T, T + 10.0, 1000, {"": 2}, Latency(stated_s={99.0: 0.02}), latency),
        ClientInterval(T + 10.0, T + 20.0, 0, {"": 3}),
        ClientInterval(T + 20.0, T + 30.0, 0),
        ClientInterval(T + 30.0, T + 40.0, 5, {}, None, Latency(stated_s={50.0: 0.002})),
    )
    assert result.notes == ("ignored columns: p42",)


@pytest.mark.parametrize(
    ("numbers", "first_s", "last_s"),
    [
        ([95, 100, 105, 100, 95, 102, 100, 98], 1.0, 1.0),
        ([50, 100, 105, 100, 95, 100, 100, 75], 0.5, 0.75),
    ],
)
def test_whole_seconds_have_the_same_lengths_as_rows_of_operations_and_of_intervals(
    tmp_path: Path, numbers: list[int], first_s: float, last_s: float
) -> None:
    single = [f"{T + index},1" for index, number in enumerate(numbers) for _ in range(number)]
    together = [f"{T + index},1,{number}" for index, number in enumerate(numbers)]
    for header, rows in (("time_s,latency_ms", single), ("time_s,duration_s,operations", together)):
        (operation,) = result_of(tmp_path / "file.csv", header, *rows).operations
        lengths_s = [row.end_s - row.begin_s for row in operation.intervals]
        assert lengths_s == pytest.approx([first_s, *[1.0] * (len(numbers) - 2), last_s])


def test_decimal_commas_are_read(tmp_path: Path) -> None:
    result = result_of(tmp_path / "ops.csv", "time_s;latency_ms", f"{T},25;1,234", f"{T},5;2,345")
    (interval,) = result.operations[0].intervals
    assert interval.service is not None
    assert interval.service.percentiles_s((50, 100)) == pytest.approx([0.001234, 0.002345], rel=0.001)


@pytest.mark.parametrize("value", ["1,234", "1.234"])
def test_a_number_that_may_separate_thousands_is_an_error(tmp_path: Path, value: str) -> None:
    time = "2026-11-18T12:26:40Z"
    with pytest.raises(ClientFormatError, match=f"ambiguous number {value}: decimal mark or thousands separator"):
        result_of(tmp_path / "ops.csv", "time;latency_ms", f"{time};{value}", f"{time};5")
    result_of(tmp_path / "ops.csv", "time;latency_ms", f"{time};{value}", f"{time};0{value[1]}25")


HEADER = "time_s,latency_ms,error"
INTERVALS = "time_s,duration_s,operations,p50_ms,p99_ms"


@every(
    ("lines", "reason"),
    [
        (["time_s,error", f"{T},"], "line 1: missing column: latency_ms"),
        (["time_s,operations", f"{T},5"], "line 1: missing column: duration_s"),
        (["time_s,duration_s", f"{T},5"], "line 1: missing column: operations"),
        (["time_s,time,latency_ms", f"{T},,5"], "both time_s and time are present"),
        (["time_s,latency_ms,latency_us", f"{T},5,5"], "more than one column latency_"),
        (["time_s,latency_ms,error,error", f"{T},5,,"], "duplicate columns: error"),
        ([INTERVALS + ",p50_us", f"{T},1,5,1,2,3"], "invalid or repeated percentile: p50_us"),
        ([INTERVALS + ",p101_us", f"{T},1,5,1,2,3"], "invalid or repeated percentile"),
        ([HEADER, f"{T},5,,"], "line 2: 4 fields instead of 3 .*semicolons"),
        ([HEADER, f"{T},,"], r"line 2: not a number: \(empty\)"),
        ([HEADER, f"{T},-5,"], "line 2: not a number: -5"),
        ([HEADER, f"{T},nan,"], "line 2: not a number: nan"),
        ([HEADER, f"{T},1e9,"], "line 2: not a latency"),
        ([HEADER, f"{T},5,0"], "line 2: the column error is 0"),
        ([HEADER, f'{T},"1,234",', f'{T},"2,5",'], "line 2: a comma in the number 1,234 .*semicolons"),
        ([HEADER, f"{T},5.5,", f'{T},"5,5",'], "line 3: a comma in the number 5,5"),
        ([INTERVALS, f'{T},"1,5",5,1,2'], "line 2: a comma in the number 1,5"),
        (["time_s;latency_ms", f"{T};5.5", f"{T};5,5"], "line 3: both decimal points and decimal commas"),
        ([HEADER, f"{T},1.234.5,"], "line 2: not a number"),
        ([HEADER, f'{T},5,"x', f"{T},5,y"], "line 2: not CSV"),
        ([HEADER, f"{T}000,5,"], "line 2: time out of range"),
        ([HEADER, f"{T},5,", f"{T + 10**7},5,"], "over [0-9,]+ days"),
        (["time,latency_ms", "2026-01-01 10:00:00,5"], "line 2: the time has no time zone"),
        (["time,latency_ms", "10:00:00,5"], "line 2: not an RFC 3339 time"),
        ([HEADER], "no rows"),
        ([INTERVALS], "no rows"),
        ([INTERVALS, f"{T},0,5,1,2"], "line 2: invalid interval duration"),
        ([INTERVALS, f"{T},1,5.5,1,2"], "line 2: not a whole number: 5.5"),
        ([INTERVALS, f"{T},1,5,3,2"], "line 2: the percentiles are not in ascending order"),
        ([INTERVALS, f"{T},10,5,1,2", f"{T + 5},10,5,1,2"], "intervals overlap"),
        ([INTERVALS, f"{T},10,5,1,2", f"{T + 10**7},10,5,1,2"], "days apart"),
        ([INTERVALS + ",operation", *(f"{T},10,5,1,2,{name}" for name in range(60))], "too many operations"),
    ],
)
def test_what_cannot_be_read_is_an_error_in_one_line(tmp_path: Path, lines: list[str], reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason) as caught:
        result_of(tmp_path / "file.csv", *lines)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_time_column_is_an_error_if_the_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("when,latency_ms\n1,2\n")
    with pytest.raises(ClientFormatError, match="line 1: missing column: time_s or time"):
        generic_csv.read(SourceFile("csv", path, TIMES))


@pytest.mark.parametrize(
    "head",
    [
        "timeStamp,elapsed,label,responseCode\n1,2,a,200\n",
        "type, total ops, op/s, mean, time, stderr, errors\ntotal, 5, 5, 1, 1, 0, 0\n",
        "Timestamp,User Count,Type,Name,Requests/s\n1,2,a,b,3\n",
        '"time_s\n',
    ],
)
def test_other_tools_files_are_not_recognised(tmp_path: Path, head: str) -> None:
    assert not generic_csv.recognises(head)


def test_a_last_line_without_a_line_end_is_noted(tmp_path: Path) -> None:
    complete = result_of(tmp_path / "ops.csv", "time_s,latency_ms", f"{T},5", f"{T},5", end="")
    assert complete.operations[0].intervals[0].completed == 2
    assert complete.notes == ("the last line has no line end and may be incomplete",)
    incomplete = result_of(tmp_path / "ops.csv", "time_s,latency_ms", f"{T},5", f"{T}", end="")
    assert incomplete.operations[0].intervals[0].completed == 1
    assert incomplete.notes == ("the last line is incomplete and is ignored",)


def test_further_names_and_errors_are_counted_without_them(tmp_path: Path) -> None:
    rows = [f"{T},1,op {index % 60}," for index in range(120)] + [f"{T},,op 0,error {index}" for index in range(60)]
    result = result_of(
        tmp_path / "ops.csv", "time_s,latency_ms,operation,error", *rows, "time_s,latency_ms,operation,error"
    )
    assert len(result.operations) == 51
    assert result.operations[0].intervals[0].completed == 20
    assert sum(row.completed + row.failed for operation in result.operations for row in operation.intervals) == 180
    assert result.operations[1].intervals[0].errors[""] == 10
    assert [note.split(" beyond")[0] for note in result.notes] == ["the file has 2 headers", "20 rows", "10 errors"]


ROWS = [
    f"{T + index // 9}.{index % 10},{index}.25,{index + 1},{'ab'[index % 2]},{'' if index % 5 else 'lost'}"
    for index in range(40)
]
OPERATIONS = "\n".join(["time_s,latency_ms,response_ms,operation,error", *ROWS, ""]).encode()
PERIODS = "\n".join([INTERVALS, *(f"{T + index},1,{index},1.5,{index + 2}" for index in range(20)), ""]).encode()


@pytest.mark.parametrize(("content", "limit"), [(OPERATIONS, 40), (PERIODS, 10**13)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_has_plausible_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, limit: int, data: st.DataObject
) -> None:
    # A changed digit may put an operation days after the others, and each second between them is an interval.
    monkeypatch.setattr(operation_times, "MAX_INTERVALS", 10_000)
    path = tmp_path / "file.csv"
    path.write_bytes(data.draw(damaged(content)))
    try:
        result = generic_csv.read(SourceFile("csv", path, TIMES))
    except ClientFormatError:
        return
    intervals = [interval for operation in result.operations for interval in operation.intervals]
    assert 0 <= sum(interval.completed + interval.failed for interval in intervals) <= limit
    assert all(interval.begin_s < interval.end_s for interval in intervals)


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "client-results.md").read_text()
    examples = [part.partition("\n```")[0] for part in page.split("```text\n")[1:]]
    results = [result_of(tmp_path / "example.csv", example) for example in examples]
    assert [[operation.name for operation in result.operations] for result in results] == [["read", "write"], [""]]
    second = results[1].operations[0].intervals[1]
    assert (second.completed, second.failed, second.service) == (2417, 3, Latency(stated_s={50: 0.00131, 99: 0.00925}))
    assert all(result.notes == () for result in results)
