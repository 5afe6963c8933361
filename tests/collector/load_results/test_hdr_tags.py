"""Operations of an HdrHistogram log count once, whichever load generator wrote it and whatever else it measured."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hdrh.histogram import HdrHistogram

from collector.load_results import client_result
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientResult, Latency
from collector.load_results.format_registry import read_file
from collector.load_results.formats import hdr_log
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)
START = "#[StartTime: 1795000000.000 (seconds since epoch)]"
MS = 1_000_000


def result_of(path: Path, **options: str) -> ClientResult:
    """Read a log as an import does: recognised by its content unless there are options."""
    return read_file(path, FormatChoice("hdr-log" if options else "", options), TIMES)


def line(tag: str, second: int, count: int, value: int = 2 * MS) -> str:
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(value, count)
    prefix = f"Tag={tag}," if tag else ""
    return f"{prefix}{second}.000,1.000,1.000,{histogram.encode().decode()}"


def log(path: Path, counts: Mapping[str, Sequence[int]], *comments: str) -> Path:
    """Write a log with the number of operations in each second, by tag."""
    lines = [line(tag, second, count) for tag, series in counts.items() for second, count in enumerate(series) if count]
    path.write_text("\n".join([*comments, START, *lines]) + "\n")
    return path


def completed(result: ClientResult) -> dict[str, int]:
    return {operation.name: operation.summary.completed for operation in result.operations if operation.summary}


def percentiles_ms(latency: Latency | None) -> list[float]:
    assert latency is not None
    return [round(value_s * 1000, 2) for value_s in latency.percentiles_s((50, 95, 99)) if value_s is not None]


@every(
    ("name", "options", "operations", "length_s", "service_ms", "response_ms"),
    [
        ("stress.hdr", {}, {"read": 4510, "write": 510}, 5.0, [2.01, 3.81, 5.03], None),
        ("nosqlbench.hdr", {}, {"kv_default_main": 1500}, 30.0, [2.02, 3.87, 4.78], None),
        ("nosqlbench.hdr", {"metric": "result-success"}, {"kv_default_main": 1500}, 30.0, [2.02, 3.87, 4.78], None),
        ("latte.hdr", {}, {"": 3000}, 3.0, [2.01, 3.78, 4.85], None),
        ("latte.hdr", {"metric": "requests"}, {"": 3000}, 3.0, [2.01, 3.78, 4.85], None),
        ("microseconds.hdr", {}, {"read": 3000}, 3.0, [2.01, 3.78, 4.85], None),
        ("microseconds.hdr", {"unit": "us"}, {"read": 3000}, 3.0, [2.01, 3.78, 4.85], None),
        ("scylla-bench.hdr", {}, {"": 3000}, 3.0, [2.01, 3.78, 4.85], [10.07, 18.91, 24.28]),
    ],
)
def test_each_load_generators_log_has_its_operations_once(
    name: str,
    options: dict[str, str],
    operations: dict[str, int],
    length_s: float,
    service_ms: list[float],
    response_ms: list[float] | None,
) -> None:
    result = result_of(CAPTURES / name, **options)
    assert completed(result) == operations
    begin_s, end_s = result.span_s or (0.0, 0.0)
    assert end_s - begin_s == pytest.approx(length_s)
    summary = result.operations[0].summary
    assert summary is not None
    assert percentiles_ms(summary.service) == pytest.approx(service_ms, abs=0.015)
    assert (None if summary.response is None else percentiles_ms(summary.response)) == pytest.approx(
        response_ms, abs=0.015
    )
    assert not any("warning" in note for note in result.notes)


def test_an_assumed_unit_is_noted_and_a_wrong_one_is_a_warning() -> None:
    (note,) = result_of(CAPTURES / "scylla-bench.hdr").notes
    assert note == (
        "the file does not state the unit of its latencies: nanoseconds assumed (hint: hdr-log,unit=us:FILE)"
    )
    assert "microseconds, the unit of YCSB, assumed" in result_of(CAPTURES / "microseconds.hdr").notes[0]
    (warning,) = result_of(CAPTURES / "microseconds.hdr", unit="ns").notes
    assert warning.startswith("warning: a median latency of 2.01 µs is unlikely")
    (warning,) = result_of(CAPTURES / "scylla-bench.hdr", unit="ms").notes
    assert "exceeds the result's length of 3.0 s" in warning


def test_metrics_that_are_not_counted_are_named() -> None:
    note = result_of(CAPTURES / "nosqlbench.hdr", unit="ns").notes[0]
    omitted = "bind, cycles_servicetime, execute, result_success, strides_servicetime, tries"
    assert note.startswith(f"only result is counted, not {omitted}, which measure the same operations")
    assert "hdr-log,metric=NAME:FILE" in note


def test_unsuccessful_operations_of_nosqlbench_are_errors(tmp_path: Path) -> None:
    path = log(tmp_path / "nb.hdr", {"main.result": (100, 100), "main.result_success": (100, 60)})
    result = result_of(path, unit="ns")
    (operation,) = result.operations
    assert [(interval.completed, interval.failed) for interval in operation.intervals] == [(100, 0), (60, 40)]
    assert result.notes[0] == "the latencies include those of 40 failed operations"


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        (("main.bind", "main.execute"), "cannot tell which metric .*NAME is one of bind, execute"),
        (("main.tries",), "cannot tell which metric"),
        (("latency", "size"), "latency and size have equally many values .*NAME is one of latency, size, or all"),
    ],
)
def test_a_log_whose_metric_is_ambiguous_is_refused_with_a_list(
    tmp_path: Path, tags: tuple[str, ...], reason: str
) -> None:
    path = log(tmp_path / "unknown.hdr", dict.fromkeys(tags, (30, 40)))
    with pytest.raises(ClientFormatError, match=reason):
        result_of(path)
    with pytest.raises(ClientFormatError, match="no metric 'other'"):
        result_of(path, metric="other")
    assert sum(completed(result_of(path, metric=tags[0])).values()) == 70
    assert sum(completed(result_of(path, metric="all")).values()) == 70 * len(tags)


def test_activities_and_operations_are_different_operations(tmp_path: Path) -> None:
    activities = log(
        tmp_path / "nb.hdr", {"a.cycles.servicetime": (1, 2), "a.bind": (1, 2), "b.cycles.servicetime": (9,)}
    )
    assert completed(result_of(activities)) == {"a": 3, "b": 9}
    operations = log(tmp_path / "own.hdr", {"Read": (30, 40), "Write": (41, 29)})
    assert completed(result_of(operations)) == {"read": 70, "write": 70}


def test_the_sums_of_scylla_bench_in_mixed_mode_are_not_counted(tmp_path: Path) -> None:
    parts = {"raw": (70,), "raw-read": (40,), "raw-write": (30,)}
    counts = {**parts, **{tag.replace("raw", "co-fixed"): series for tag, series in parts.items()}}
    result = result_of(log(tmp_path / "mixed.hdr", counts))
    assert completed(result) == {"read": 40, "write": 30}
    assert all(operation.summary and operation.summary.response for operation in result.operations)


def taken_live(lines: Iterable[str]) -> tuple[Counter[tuple[str, bool]], set[tuple[bool, bool]]]:
    """Return the operations that a growing log has after each line: their numbers, and which latencies they have."""
    growing = hdr_log.growing(b"", {})
    numbers: Counter[tuple[str, bool]] = Counter()
    latencies = set()
    for text in lines:
        assert not growing.add(f"{text}\n".encode())
        for operation in growing.take():
            assert operation.total
            numbers[operation.name, True] += operation.total.completed
            numbers[operation.name, False] += operation.total.failed
            latencies.add((operation.total.response is not None, operation.total.service is not None))
    return +numbers, latencies


def test_of_a_growing_log_each_operation_counts_once_however_its_lines_are_divided() -> None:
    numbers = {"raw": 100, "raw-read": 60, "raw-write": 40}
    tags = numbers | {tag.replace("raw", "co-fixed"): number for tag, number in numbers.items()}
    lines = [line(tag, second, number) for second in range(4) for tag, number in tags.items()]
    assert taken_live(lines) == ({("read", True): 180, ("write", True): 120}, {(True, True)})
    tags = {"main.bind": 100, "main.result": 100, "main.result_success": 90}
    lines = [line(tag, second, number) for second in range(4) for tag, number in tags.items()]
    assert taken_live(lines)[0] == {("main", True): 270, ("main", False): 30}
    # Two threads write the same intervals.
    lines = [line(tag, second, 10) for second in range(4) for tag in ("READ-st", "READ-rt") * 2]
    assert taken_live(lines) == ({("read", True): 60}, {(True, True)})


def test_an_interval_of_a_growing_log_is_counted_when_the_next_one_begins() -> None:
    tags = ("READ-st", "WRITE-st")
    first, second = ([line(tag, second, 10) for tag in tags] for second in range(2))
    assert not taken_live(first)[0]
    assert taken_live([*first, second[0]])[0] == {("read", True): 10, ("write", True): 10}
    assert taken_live([*first, *second])[0] == {("read", True): 10, ("write", True): 10}


def test_a_growing_log_with_too_many_tags_does_not_take_more_and_more_memory() -> None:
    growing = hdr_log.growing(b"", {})
    text = "".join(f"{line(f'tag{number}', 0, 1)}\n" for number in range(hdr_log.MAX_TAGS + 100))
    assert growing.add(text.encode()) == 100
    assert sum(growing.add(text.encode()) for _ in range(2)) == 200
    growing.add(f"{line('tag1', 1, 1)}\n".encode())
    assert len(growing.take()) <= hdr_log.MAX_TAGS


def test_ycsbs_intended_latencies_are_response_times_and_failures_are_errors(tmp_path: Path) -> None:
    intended = result_of(log(tmp_path / "a.hdr", {"": (20,)}, "#[Logging for: Intended-UPDATE]"), unit="us")
    (operation,) = intended.operations
    assert (operation.name, operation.intervals[0].service) == ("update", None)
    assert operation.intervals[0].response is not None
    failed = result_of(log(tmp_path / "b.hdr", {"": (20,)}, "#[Logging for: READ-FAILED]"), unit="us")
    (operation,) = failed.operations
    assert [(operation.name, part.completed, part.failed) for part in operation.intervals] == [("read", 0, 20)]


@every(
    ("measurement", "operation"),
    [
        ("READ-NOT_FOUND", ("read", 0, 20)),
        ("HdrSCAN", ("scan", 20, 0)),
        ("CLEANUP", None),
        ("READ-MODIFY-WRITE", None),
        ("Intended-READ-MODIFY-WRITE", None),
        ("Intended-READ-FAILED", None),
    ],
)
def test_a_log_of_ycsb_is_read_as_what_ycsb_prints(
    tmp_path: Path, measurement: str, operation: tuple[str, int, int] | None
) -> None:
    path = log(tmp_path / "ycsb.hdr", {"": (20,)}, f"#[Logging for: {measurement}]")
    if operation is None:
        with pytest.raises(ClientFormatError, match=f"line 3: {measurement} (is not counted|has the operations of)"):
            result_of(path)
        return
    (read,) = result_of(path).operations
    assert [(read.name, part.completed, part.failed) for part in read.intervals] == [operation]


def test_functions_of_latte_are_operations_even_if_they_are_called_equally_often(tmp_path: Path) -> None:
    counts = completed(result_of(log(tmp_path / "latte.hdr", {"fn--read": (30, 40), "fn--write": (30, 40)})))
    assert counts == {"read": 70, "write": 70}


def test_a_unit_that_nosqlbench_states_is_used(tmp_path: Path) -> None:
    units = "#UNITS: StartTimestamp = seconds since StartTime; Interval_Length = seconds, values in the histogram = "
    result = result_of(log(tmp_path / "nb.hdr", {"main.result": (20,)}, f"{units}microseconds"))
    assert percentiles_ms(result.operations[0].intervals[0].service)[0] == pytest.approx(2000, rel=0.001)
    assert not any("unit of its latencies" in note for note in result.notes)


def test_histograms_of_nosqlbench_that_were_read_one_after_the_other_are_of_the_same_interval(tmp_path: Path) -> None:
    succeeded = [line("m.result_success", second, count) for second, count in enumerate((98, 99, 101, 98))]
    # Each is read two milliseconds after the other one, so the last two of an interval may be in the next one.
    late = [text.replace(".000,1.000,", ".002,1.000,", 1) for text in succeeded]
    lines = [text for second in range(4) for text in (line("m.result", second, 100), late[second])]
    path = tmp_path / "nb.hdr"
    path.write_text("\n".join([START, *lines]) + "\n")
    (operation,) = result_of(path).operations
    assert [(part.completed, part.failed) for part in operation.intervals] == [(98, 2), (100, 0), (100, 0), (98, 2)]
    assert [round(part.begin_s % 1, 3) for part in operation.intervals] == [0, 0, 0, 0]
    # Without its last line, nothing is known about failures in the last interval.
    path.write_text("\n".join([START, *lines[:-1]]) + "\n")
    assert [part.failed for part in result_of(path).operations[0].intervals] == [2, 0, 0, 0]


def test_waiting_times_are_not_counted(tmp_path: Path) -> None:
    path = log(tmp_path / "stress.hdr", {"READ-rt": (20,), "READ-st": (20,), "READ-wt": (20,)})
    assert completed(result_of(path)) == {"read": 20}


def test_intervals_without_length_belong_to_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "zero.hdr"
    empty = [line("READ-st", second, 5).replace(",1.000,1.000,", ",0.000,1.000,") for second in (0, 2)]
    path.write_text("\n".join([START, empty[0], line("READ-st", 0, 10), line("READ-st", 1, 10), empty[1]]) + "\n")
    (operation,) = result_of(path).operations
    assert [(part.end_s - part.begin_s, part.completed) for part in operation.intervals] == [(1.0, 15), (1.0, 15)]


def test_intervals_may_be_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "order.hdr"
    path.write_text("\n".join([START, *(line("READ-st", second, second + 1) for second in (2, 0, 1))]) + "\n")
    (operation,) = result_of(path).operations
    assert [part.completed for part in operation.intervals] == [1, 2, 3]


@every(
    ("text", "reason"),
    [
        ("Tag=READ-st,0.0,1.0,1.0,HISTF@@@@", "line 2: not a base64"),
        ("Tag=READ-st,0.0,1.0,1.0,HISTFAAA", "line 2: (truncated|not a base64)"),
        ("Tag=READ-st,-5.0,1.0,1.0,HISTFAAA", "line 2: not an interval"),
        ("Tag=READ-st,0.0,-1.0,1.0,HISTFAAA", "line 2: not an interval"),
        ("Tag=READ-st,nan,1.0,1.0,HISTFAAA", "line 2: not an interval"),
        ("Tag=READ-st,1e99,1.0,1.0,HISTFAAA", "line 2: (not|trunc|invalid)"),
        ("Tag=READ-st,0.0,1.0," + "x" * (1 << 20), "line 2: longer than 1 MiB"),
    ],
)
def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "damaged.hdr"
    path.write_text(f"{START}\n{text}\n{line('READ-st', 0, 1)}\n")
    with pytest.raises(ClientFormatError, match=reason):
        read_file(path, FormatChoice("hdr-log"), TIMES)


@pytest.mark.parametrize("modules", [(hdr_log, client_result), (client_result,)])
def test_intervals_are_joined_if_there_are_too_many_different_latencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: tuple[ModuleType, ...]
) -> None:
    path = log(tmp_path / "long.hdr", {"READ-st": range(1, 41), "READ-rt": range(1, 41)})
    (whole,) = result_of(path).operations
    for module in modules:
        monkeypatch.setattr(module, "MAX_COUNTS", 20)
    result = result_of(path, unit="ns")
    (operation,) = result.operations
    assert 2 <= len(operation.intervals) <= 8
    assert operation.summary == whole.summary
    assert "intervals are joined to " in result.notes[0]
