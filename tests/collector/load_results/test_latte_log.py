"""The capture is generated from latte's JSON report of a real run and the format strings of pkolaczk/latte 0.28.

`src/report/mod.rs`: print_log_header, the Display of Sample and of BenchmarkCmp, fmt_section_header.
"""

import re
from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.result_checks import doubts, require_sound
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
CAPTURE, REPORT = CAPTURES / "latte.log", CAPTURES / "latte-read-3node.json"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)


def result_of(path: Path, name: str = "latte-log") -> ClientResult:
    result = read_as(recognised_format(path), path, TIMES)
    require_sound(result)
    assert result.format == name
    return result


def result_of_text(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    return result_of(path)


def test_the_log_has_the_intervals_of_the_report() -> None:
    (printed,), (reported,) = result_of(CAPTURE).operations, result_of(REPORT, "latte").operations
    assert printed.name == reported.name == "run"
    assert [interval.completed for interval in printed.intervals] == [
        interval.completed for interval in reported.intervals
    ]
    offset_s = reported.intervals[0].begin_s - printed.intervals[0].begin_s
    for one, other in zip(printed.intervals, reported.intervals, strict=True):
        assert one.end_s + offset_s == pytest.approx(other.end_s, abs=0.002)
        assert one.service is not None
        assert other.service is not None
        assert one.service.stated_s[99.0] == pytest.approx(other.service.percentile_s(99), abs=0.00006)
    assert printed.total is not None
    assert reported.total is not None
    assert printed.total.completed == reported.total.completed == 59_482
    assert printed.total.end_s - printed.total.begin_s == pytest.approx(60.001)
    assert printed.total.end_s == TIMES.end_s
    assert printed.total.service is not None
    assert reported.total.service is not None
    stated = printed.total.service.stated_s
    assert {100.0, 99.9, 50.0} < stated.keys()
    for percentage in (50.0, 99.0, 99.9):
        assert stated[percentage] == pytest.approx(reported.total.service.percentile_s(percentage), abs=0.000001)
    assert doubts(result_of(CAPTURE)) == []


def test_with_a_baseline_the_second_value_is_that_of_this_run(tmp_path: Path) -> None:
    bar = "\u2500" * 13
    header = f"{'':27} {bar} A {bar}  {bar} B {bar}     Change"
    text = CAPTURE.read_text()
    text = re.sub(r"(\nSUMMARY STATS .*\n)", rf"\1{header}\n", text)
    text = re.sub(r"(Cycles +\[op\] +)59482 +", r"\g<1>  71000            59482       -16.2%  ", text)
    text = re.sub(r"(\n +99 +)(1\.924 \u00b1 0\.010) +", "\\g<1>9.100 \u00b1 0.200      \\2   -78.0%  ", text, count=1)
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert operation.total is not None
    assert operation.total.service is not None
    assert (operation.total.completed, operation.total.service.stated_s[99.0]) == (59_482, 0.001924)


def test_terminal_escapes_and_other_lines_do_not_matter(tmp_path: Path) -> None:
    text = CAPTURE.read_text().replace("LOG", "\x1b[1;33mLOG\x1b[0m").replace("\n", "\r\nRunning...  12%\r\x1b[2K\n")
    assert result_of_text(tmp_path / "log", text).operations == result_of(CAPTURE).operations


def test_a_killed_run_has_its_whole_rows(tmp_path: Path) -> None:
    text = CAPTURE.read_text()
    result = result_of_text(tmp_path / "log", text[: text.index("   5.001") + 30])
    (operation,) = result.operations
    assert ([interval.completed for interval in operation.intervals], operation.total) == ([978, 964, 967, 1000], None)
    assert any("middle of a line" in note for note in result.notes)
    assert any("totals of the run are missing" in note for note in result.notes)


def test_a_quiet_run_is_a_total(tmp_path: Path) -> None:
    lines = CAPTURE.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not re.match(r" +\d+\.\d{3} ", line))
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert operation.intervals == ()
    assert operation.total is not None
    assert operation.total.completed == 59_482


def test_other_percentiles_are_not_latencies_of_cycles_and_columns_are_read_by_their_names(tmp_path: Path) -> None:
    text = CAPTURE.read_text()
    section = text[text.index("CYCLE LATENCY") : text.index("RESPONSE LATENCY")]
    custom = section.replace("CYCLE LATENCY for run [ms]", "CUSTOM METRIC lag").replace("1.924", "777.0000")
    text = text.replace(section, section + custom).replace(
        "Min        25        50        75        90        99      99.9       Max",
        "Min        50        75        90        95        99      99.9       Max",
    )
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert operation.total is not None
    assert operation.total.service is not None
    assert operation.total.service.stated_s[99.0] == 0.001924
    assert operation.intervals[0].service is not None
    assert operation.intervals[0].service.stated_s.keys() == {0, 50, 75, 90, 95, 99, 99.9, 100}


def test_failed_cycles_are_not_completed_and_have_a_note(tmp_path: Path) -> None:
    text = CAPTURE.read_text().replace("   1.001       978         0", "   1.001       978         8")
    text = re.sub(r"(Errors +\[op\] +)0 ", r"\g<1>8 ", text)
    result = result_of_text(tmp_path / "log", text)
    assert (result.operations[0].intervals[0].completed, result.operations[0].intervals[0].failed) == (970, 8)
    assert any("failed cycles" in note for note in result.notes)
    assert doubts(result) == []


def test_several_functions_have_one_result_without_a_name(tmp_path: Path) -> None:
    text = CAPTURE.read_text()
    section = text[text.index("CYCLE LATENCY") : text.index("RESPONSE LATENCY")]
    (operation,) = result_of_text(
        tmp_path / "log", text.replace(section, section + section.replace("run", "other"))
    ).operations
    assert operation.total is not None
    assert (operation.name, operation.total.completed, operation.total.service) == ("", 59_482, None)


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "log", CAPTURE.read_text().replace("978", "979") + CAPTURE.read_text())
    assert result.operations == result_of(CAPTURE).operations
    assert any("1 earlier run" in note for note in result.notes)


@every(
    ("old", "new", "reason"),
    [
        ("[op]      [op]    [op/s]", "[req/s]", "no counts"),
        ("       964         0", "       964      9999", "line 22: more failed cycles"),
        ("       964         0", "       964         x", "line 22: malformed row"),
        ("   3.001", "   1.001", "follows"),
        ("59482 ", "-1 ", "has no rows|malformed|line"),
    ],
)
def test_damaged_output_is_an_error(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = CAPTURE.read_text()
    assert old in text
    if old == "59482 ":
        text = "".join(line for line in text.splitlines(keepends=True) if not re.match(r" +\d+\.\d{3} ", line))
    with pytest.raises(ClientFormatError, match=reason):
        result_of_text(tmp_path / "log", text.replace(old, new, 1))
