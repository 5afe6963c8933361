"""wrk's captures are from wrk 4.1.0 in Debian; the text of wrk2 follows its documentation and was not captured."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from tests.every import every
from tests.examples import examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
STATUS = CAPTURES / "wrk-status.log"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)
WRK2 = """\
Running 30s test @ http://127.0.0.1:80/
  2 threads and 100 connections
  Thread calibration: mean lat.: 9.747ms, rate sampling interval: 21ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.60ms    1.92ms  12.50ms   68.46%
    Req/Sec     1.04k     1.08k    2.50k    72.79%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 99.000%   11.31ms
100.000%   12.50ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
      10.007     0.950000        37525        20.00
      12.503     1.000000        39500          inf
#[Mean    =        6.602, StdDeviation   =        1.919]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%  635.91us
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
  Socket errors: connect 0, read 0, write 0, timeout 3
Requests/sec:   2000.60
Transfer/sec:    676.14KB
"""


def result_of(path: Path) -> ClientResult:
    return read_as(recognised_format(path), path, TIMES)


def total_of_text(path: Path, text: str) -> tuple[ClientResult, ClientInterval]:
    path.write_bytes(text.encode())
    result = result_of(path)
    (operation,) = result.operations
    assert operation.intervals == ()
    assert operation.total is not None
    return result, operation.total


@pytest.mark.parametrize(
    ("capture", "completed", "errors", "stated_us"),
    [
        ("latency", 300_384, {}, {50: 133, 75: 190, 90: 253, 99: 4230}),
        # The server answered 216,120 requests, 49,399 of them with an error; seven answers came after the end.
        ("status", 216_113 - 49_397, {"status": 49_397}, {50: 127, 75: 186, 90: 226, 99: 464}),
        # The server answered 16,000 requests, 32 of them after the timeout, and eight of these after the end.
        ("timeout", 16_000 - 32, {"timeout": 24}, {50: 86, 75: 129, 90: 192, 99: 312}),
        # The server closed 352 connections in the middle of a response.
        ("read-errors", 105_500, {"read": 352}, {50: 103, 75: 126, 90: 161, 99: 449}),
    ],
)
def test_a_capture_has_the_counts_and_percentiles_that_wrk_prints(
    capture: str, completed: int, errors: dict[str, int], stated_us: dict[int, int]
) -> None:
    result = result_of(CAPTURES / f"wrk-{capture}.log")
    (operation,) = result.operations
    total = operation.total
    assert total is not None
    assert (result.tool, operation.name, total.completed, total.errors) == ("wrk", "", completed, errors)
    assert total.service is not None
    assert total.service.stated_s == pytest.approx({key: value * 1e-6 for key, value in stated_us.items()})
    assert total.end_s == TIMES.end_s
    assert result.has_only_service_time
    assert result.estimated_clock
    assert ("failed requests" in " ".join(result.notes)) == (capture == "status")


@every(
    ("changed_s", "end_s"),
    [
        # When the last line was written is known only if the file was not copied or changed after the command.
        (100.0, 100.0),
        (3600.0, 3600.0),
        (7200.0, 3600.0),
        (5.0, 3600.0),
        (-9.0, 3600.0),
    ],
)
def test_the_rate_is_that_which_wrk_prints_however_long_the_command_is(
    tmp_path: Path, changed_s: float, end_s: float
) -> None:
    path = tmp_path / "command.log"
    path.write_bytes((CAPTURES / "wrk-latency.log").read_bytes())
    os.utime(path, (TIMES.begin_s, TIMES.begin_s + changed_s))
    times = CommandTimes(TIMES.begin_s, TIMES.begin_s + 3600)
    total = read_as(recognised_format(path), path, times).operations[0].total
    assert total is not None
    assert total.completed / (total.end_s - total.begin_s) == pytest.approx(49_986.35)
    assert total.end_s == TIMES.begin_s + end_s


def test_a_run_without_requests_has_the_stated_length(tmp_path: Path) -> None:
    text = "Running 4s test @ http://a/\n  0 requests in 4.00s, 0.00B read\nRequests/sec:      0.00\n"
    _, total = total_of_text(tmp_path / "command.log", text)
    assert (total.begin_s, total.end_s, total.completed) == (TIMES.end_s - 4, TIMES.end_s, 0)


def test_a_run_does_not_begin_before_the_command(tmp_path: Path) -> None:
    _, total = total_of_text(tmp_path / "command.log", WRK2)
    assert (total.begin_s, total.end_s) == (TIMES.begin_s, TIMES.end_s)


def test_wrk2_states_response_times_and_a_spectrum(tmp_path: Path) -> None:
    result, total = total_of_text(tmp_path / "command.log", WRK2)
    assert (result.tool, total.completed, total.errors) == ("wrk2", 60_018, {"timeout": 3})
    assert total.response is not None
    assert total.response.stated_s == pytest.approx(
        {0: 0.000921, 50: 0.00667, 95: 0.010007, 99: 0.01131, 100: 0.012503}
    )
    assert total.service is not None
    assert total.service.stated_s == pytest.approx({50: 0.00063591})
    assert "calibration" in result.notes[0]
    assert "one request may be several timeouts" in result.notes[1]


def test_terminal_escapes_other_output_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    expected = result_of(STATUS).operations
    text = STATUS.read_text().replace("Running", "\x1b[1mRunning\x1b[0m", 1).replace("\n", "\r\n")
    text = f"starting\r\x1b[Kstarted\r\n\x1b]0;title\x07{text}done: 100%\r\n"
    path = tmp_path / "command.log"
    assert total_of_text(path, text)[0].operations == expected
    path.write_bytes(b"\xef\xbb\xbf\xff\xfe caf\xe9\n" + STATUS.read_bytes())
    assert result_of(path).operations == expected


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    text = STATUS.read_text() + (CAPTURES / "wrk-latency.log").read_text()
    result, total = total_of_text(tmp_path / "command.log", text)
    assert (total.completed, total.end_s) == (300_384, TIMES.end_s)
    assert total.begin_s == pytest.approx(TIMES.end_s - 300_384 / 49_986.35)
    assert "1 earlier run" in result.notes[-1]


def test_lines_of_scripts_and_of_other_programs_are_ignored(tmp_path: Path) -> None:
    (operation,) = result_of(CAPTURES / "wrk-lua-percentiles.log").operations
    assert operation.summary is not None
    assert operation.summary.completed == 80_120
    assert operation.summary.service is None
    before = "100% done\n7 requests made\n10 requests in flight\n12% of them\nSocket errors: none\n"
    before += "  Latency Distribution of mine\n"
    after = "50%,1050\n  99%: 1.2ms\n 99.9%  3.00 ms\n12 requests\nRequests/sec of mine: 5\n0.921 1.000 text\n"
    lines = STATUS.read_text().splitlines(keepends=True)
    path = tmp_path / "wrk.log"
    path.write_text("".join([lines[0], before, *lines[1:], after]))
    os.utime(path, (TIMES.end_s, TIMES.end_s))
    expected = tmp_path / "expected.log"
    expected.write_text(STATUS.read_text())
    os.utime(expected, (TIMES.end_s, TIMES.end_s))
    assert result_of(path).operations == result_of(expected).operations


@pytest.mark.parametrize(
    ("requests", "timeout", "status", "completed", "errors", "note"),
    [
        (420, 420, 420, 0, {"status": 420}, ""),
        (420, 400, 300, 0, {"status": 300, "timeout": 120}, "400 to 420 requests failed"),
        (420, 20, 30, 370, {"status": 30, "timeout": 20}, "30 to 50 requests failed"),
        (420, 20, 0, 400, {"timeout": 20}, ""),
    ],
)
def test_late_responses_with_an_error_status_fail_once(
    tmp_path: Path, requests: int, timeout: int, status: int, completed: int, errors: dict[str, int], note: str
) -> None:
    text = (CAPTURES / "wrk-late-error-responses.log").read_text()
    text = text.replace("420 requests in", f"{requests} requests in").replace("timeout 420", f"timeout {timeout}")
    text = text.replace("responses: 420", f"responses: {status}")
    path = tmp_path / "wrk.log"
    path.write_text(text)
    result = result_of(path)
    (operation,) = result.operations
    assert operation.total is not None
    assert (operation.total.completed, operation.total.errors) == (completed, errors)
    assert note in " ".join(result.notes)
    assert ("requests failed:" in " ".join(result.notes)) == bool(note)


def test_without_percentiles_there_is_a_hint(tmp_path: Path) -> None:
    text = "".join(line for line in STATUS.read_text().splitlines(True) if "%  " not in line)
    result, total = total_of_text(tmp_path / "command.log", text)
    assert total.service is None
    assert "--latency" in result.notes[0]


@every(
    ("old", "new", "reason"),
    [
        ("Requests/sec", "", "totals of the last run are missing"),
        ("216113 requests", "916113 requests", "contradicts"),
        ("216113 requests in", "216113 requests", "line 11"),
        ("49397", "949397", "more failed responses"),
        ("127.00us", "127,00us", "line 7"),
        ("Non-2xx or 3xx responses: 4", "Non-2xx or 3xx responses: x4", "line 12"),
    ],
)
def test_damaged_output_is_an_error(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = STATUS.read_text()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        total_of_text(tmp_path / "command.log", text.replace(old, new))


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_output_is_an_error_or_has_plausible_counts(tmp_path: Path, data: st.DataObject) -> None:
    lines = STATUS.read_bytes().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(0, 2))):
        del lines[data.draw(st.integers(0, len(lines) - 1))]
        first, second = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[first], lines[second] = lines[second], lines[first]
    raw = bytearray(b"".join(lines))
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "command.log"
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    try:
        result = result_of(path)
    except ClientFormatError:
        return
    total = result.operations[0].total
    assert total is not None
    if total.completed > 216_113 * 1.01:
        # This is possible only if the number was changed, and also the rate or the duration.
        assert b"216113 requests in 4.10s" not in raw
