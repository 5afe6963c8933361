"""In every format, reading a file gives a one-line error, or a result that can be stored and counted."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results import operation_times
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, read_file, recognised_format
from collector.load_results.result_checks import require_sound
from collector.load_results.result_file import content_of, read_result, write_result
from tests.collector.load_results.mutations import damaged
from tests.every import every
from tests.examples import examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
LATTE = CAPTURES / "latte-read-3node.json"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)


def sound(path: Path) -> ClientResult:
    result = read_as(recognised_format(path), path, TIMES)
    require_sound(result)
    return result


@cache
def histogram(value_ns: int = 1_000_000, count: int = 10) -> str:
    recorded = HdrHistogram(1, 3_600_000_000_000, 3)
    recorded.record_value(value_ns, count)
    return str(recorded.encode().decode())


def of_latte(path: Path, change: Callable[[dict[str, Any]], object]) -> ClientResult:
    content = json.loads(LATTE.read_text())
    del content["result"]["log"][3:]
    change(content["result"])
    path.write_text(json.dumps(content))
    return sound(path)


@every(
    "change",
    [
        lambda result: result["log"][0].update(req_error_count=float("inf")),
        lambda result: result["log"][0].update(req_error_count=-500),
        lambda result: result["log"][1].update(time_s=float("nan")),
        lambda result: result["log"][1].update(time_s=1e15),
        lambda result: result["log"][1].update(duration_s=-3),
        lambda result: result["log"].reverse(),
        lambda result: result.update(elapsed_time_s=float("inf")),
        lambda result: result.update(start_time=result["start_time"][:19]),
        lambda result: result.update(
            cycle_latency_by_fn={f"function {number}": result["cycle_latency"] for number in range(60)}
        ),
    ],
)
def test_a_latte_report_with_impossible_values_is_an_error(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    with pytest.raises(ClientFormatError, match=r"^[ -~]+$"):
        of_latte(tmp_path / "latte.json", change)


HOSTILE = "\x1b]52;c;x\x07\u202e<b>" + "x" * 200


def test_a_stated_latency_that_is_impossible_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wrk.log"
    path.write_text((CAPTURES / "wrk-status.log").read_text().replace("127.00us", "999999999999.00h"))
    with pytest.raises(ClientFormatError, match="impossible latency"):
        sound(path)


def test_hostile_names_are_short_and_printable(tmp_path: Path) -> None:
    latte = of_latte(
        tmp_path / "latte.json", lambda result: result.update(cycle_latency_by_fn={HOSTILE: result["cycle_latency"]})
    )
    path = tmp_path / "load.hdr"
    path.write_text(f"#[StartTime: 1730903661.000]\nTag={HOSTILE},0.0,1.0,1.0,{histogram()}\n")
    for result in (latte, sound(path)):
        (operation,) = result.operations
        assert operation.name.isprintable()
        assert len(operation.name) == 80


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["#[StartTime: 1730903661.0]", f"Tag=a,{'9' * 400},1.0,1.0,{histogram()}"], "not an interval"),
        (
            ["#[StartTime: 1730903661.0]", *(f"Tag=a{n}-st,0.0,1.0,1.0,{histogram()}" for n in range(60))],
            "60 operations",
        ),
        (["#[StartTime: 1730903661.0]", *(f"Tag=a,{t},10.0,1.0,{histogram()}" for t in (0, 5))], "overlap"),
    ],
)
def test_a_histogram_log_with_impossible_values_is_an_error(tmp_path: Path, lines: list[str], reason: str) -> None:
    path = tmp_path / "load.hdr"
    path.write_text("\n".join([*lines, ""]))
    with pytest.raises(ClientFormatError, match=reason):
        sound(path)


def hdr_log() -> bytes:
    lines = ["#[BaseTime: 1730903661.000]"]
    for second in range(20):
        for tag, value_ns in (("READ-st", 10**6), ("READ-rt", 10**7), ("WRITE-st", 10**8)):
            lines.append(f"Tag={tag},{second}.000,1.000,1.000,{histogram(value_ns)}")
    return "\n".join([*lines, ""]).encode()


@every("seconds", [1, 2])
@every(
    ("row", "note"),
    [
        ("10,2500,1,2,3", "a median latency of 1 µs is unlikely"),
        ("10,2500,1000,2000000000,3000", "a latency of 2,000.0 s exceeds the result's length of {} s"),
        ("10,2500,1000,2000,2000000000", "a latency of 2,000.0 s exceeds the result's length of {} s"),
        ("10,2500,1000,2000,3000", None),
    ],
)
def test_percentiles_in_a_wrong_unit_are_noted(tmp_path: Path, row: str, note: str | None, seconds: int) -> None:
    path = tmp_path / "file.csv"
    rows = [f"{1_795_000_000 + 10 * index},{row}\n" for index in range(seconds)]
    path.write_text("time_s,duration_s,operations,p50_us,p99_us,response_p99_us\n" + "".join(rows))
    warnings = [f"warning: {note.format(f'{10.0 * seconds:.1f}')}"] if note else []
    assert [text.partition(" (hint")[0] for text in read_file(path, FormatChoice(), TIMES).notes] == warnings


def test_one_interval_with_short_latencies_does_not_mean_a_wrong_unit(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rows = [f"{1_795_000_000 + second},1,{'1,5' if second == 30 else '1000,900'}\n" for second in range(60)]
    path.write_text("time_s,duration_s,operations,p50_us\n" + "".join(rows))
    assert read_file(path, FormatChoice(), TIMES).notes == ()


def test_printed_latencies_in_a_wrong_unit_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "scylla-bench.log"
    path.write_text((CAPTURES / "scylla-bench.log").read_text().replace("ms", "ns").replace("µs", "ns"))
    assert any("a median latency of" in note for note in read_file(path, FormatChoice(), TIMES).notes)


def short_latte() -> bytes:
    """Return the capture, shortened to a few samples, with each histogram on its own line."""
    content = json.loads(LATTE.read_text())
    del content["result"]["log"][2:]
    return json.dumps(content, indent=0).encode()


# Files, each with the number of operations in all its rows or histograms. Without their parents, JMeter's sub-results
# count as operations. Each of latte's histograms occurs three times.
FILES = {
    "jmeter.csv": ((CAPTURES / "jmeter.csv").read_bytes(), 550),
    "jmeter.xml": ((CAPTURES / "jmeter.xml").read_bytes(), 502),
    "latte": (short_latte(), 3 * (59_482 + 2_000)),
    "hdr-log": (hdr_log(), 60 * 10),
}


@pytest.mark.parametrize("name", FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(50))
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_has_no_more_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: st.DataObject
) -> None:
    # A changed digit may put an operation days after the others, and each second between them is an interval.
    monkeypatch.setattr(operation_times, "MAX_INTERVALS", 10_000)
    content, operations = FILES[name]
    path = tmp_path / "file"
    path.write_bytes(data.draw(damaged(content)))
    try:
        result = sound(path)
    except ClientFormatError:
        return
    intervals = [interval for operation in result.operations for interval in operation.intervals or [operation.total]]
    assert sum(interval.completed + interval.failed for interval in intervals if interval) <= operations
    write_result(path, result)
    assert content_of(read_result(path)) == content_of(result)
