"""What ab, hey, oha and k6 state about a whole run.

The captures are from ApacheBench 2.3, hey 0.1.5, k6 1.8.1 and oha 1.16.0, against a server whose every tenth response
has status 500.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import Latency
from collector.load_results.formats import hey_oha
from collector.load_results.parsing import MAX_LABELS
from collector.load_results.result_file import content_of as stored_content
from collector.load_results.result_file import read_result, write_result
from tests.collector.load_results.captured import TIMES, content_of, only_summary, read_content, summaries
from tests.collector.load_results.mutations import damaged
from tests.every import every
from tests.examples import examples

SUMMARIES: dict[str, tuple[float, int, dict[str, int], dict[float, float]]] = {
    # The length in seconds, completed requests, failed ones, and percentiles in milliseconds.
    "ab.log": (1.094, 270, {"status": 30}, {50: 13, 98: 34, 100: 57}),
    "ab-time.log": (2.017, 228, {"status": 25}, {}),
    "ab-length.log": (0.613, 40, {"status": 12, "length": 68}, {50: 12, 99: 64, 100: 72}),
    # The server closed 15 connections without a response; ab counts them as responses of another length.
    "ab-receive.log": (0.629, 105, {"status": 9, "length": 6}, {50: 14, 100: 40}),
    "hey.log": (0.5571, 180, {"status 500": 20}, {50: 11.3, 99: 24.1, 100: 24.3}),
    "hey-errors.log": (
        5.2727,
        96,
        {
            "status 500": 9,
            'Get "http://127.0.0.1:18080/hang": context deadline exceeded (Client.Timeout exc': 15,
        },
        {50: 10.6, 99: 23.0, 100: 23.0},
    ),
    "oha.json": (3.00184827, 135, {"status 500": 15}, {50: 10.528003, 99.9: 21.12682, 100: 21.12682}),
    "oha-breakdown.json": (0.270243519, 90, {"status 500": 10}, {50: 10.011086, 99: 39.113861}),
    "k6-summary-export.json": (5.0106, 135, {"": 15}, {50: 11.668014, 95: 39.1570204, 100: 191.925983}),
    "k6-handle-summary.json": (5.0046, 136, {"": 15}, {50: 11.6088415, 95: 20.045253, 100: 61.156291}),
    "k6-machine-readable-summary.json": (5.0458, 136, {"": 15}, {50: 11.720382, 95: 32.71475675, 100: 124.675709}),
}


@every("name", SUMMARIES)
def test_captures_have_the_figures_that_the_tool_states_and_end_when_the_output_ended(
    tmp_path: Path, name: str
) -> None:
    length_s, completed, errors, stated_ms = SUMMARIES[name]
    result = read_content(tmp_path / "command.log", content_of(name))
    total = only_summary(result)
    assert (total.completed, total.errors) == (completed, errors)
    assert result.estimated_clock
    assert total.end_s == TIMES.end_s - 4
    assert total.end_s - total.begin_s == pytest.approx(length_s, abs=0.0001)
    assert total.response is None
    assert total.service is not None
    for percentage, value_ms in stated_ms.items():
        assert total.service.percentile_s(percentage) == pytest.approx(value_ms / 1000)
    assert not any("the file states" in note for note in result.notes)


def test_the_times_of_the_command_place_a_result_whose_file_was_copied_later(tmp_path: Path) -> None:
    times = CommandTimes(TIMES.begin_s, TIMES.begin_s + 1.5)
    path = tmp_path / "ab.log"
    path.write_bytes(content_of("ab.log"))
    total = only_summary(read_content(path, content_of("ab.log"), replace(times, end_s=times.end_s)))
    assert (total.begin_s, total.end_s) == pytest.approx((times.end_s - 1.094, times.end_s))


@pytest.mark.parametrize("name", ["hey.csv", "oha.csv", "oha.json", "k6-handle-summary.json"])
def test_lines_before_the_result_are_ignored(tmp_path: Path, name: str) -> None:
    with_lines = read_content(tmp_path / "file", b"+ run the test\n" + content_of(name))
    assert with_lines == read_content(tmp_path / "file", content_of(name))


@pytest.mark.parametrize("name", ["ab.log", "hey.log", "k6-summary-export.json"])
def test_the_last_of_several_runs_is_imported_and_other_lines_are_ignored(tmp_path: Path, name: str) -> None:
    text = content_of(name).decode()
    earlier = text.replace("  100%", "   99%") + "\nwarming up: 100%\n"
    result = read_content(tmp_path / "command.log", f"+ run the test\n{earlier}{text}\ndone: 12 requests\n")
    alone = read_content(tmp_path / "command.log", text)
    assert result.operations == alone.operations
    assert "1 earlier run" in result.notes[-1]


@every(
    ("name", "old", "new", "reason"),
    [
        ("ab.log", "Complete requests:      300\n", "", "has no 'Complete requests'"),
        ("ab.log", "Non-2xx responses:      30", "Non-2xx responses:      301", "more failed responses"),
        ("ab.log", "  50%     13", "  50%  99999", "not in ascending order"),
        ("ab.log", "for tests:   1.094", "for tests:   0.000", "not a duration"),
        ("hey.log", "  Requests/sec:\t", "  Requests per:\t", "totals of the last run are missing"),
        ("hey.log", "Status code distribution:", "", "numbers of responses are missing"),
        ("hey.log", "  50%% in 0.0113", "  50%% in 9.0113", "not in ascending order"),
        ("k6-summary-export.json", '"http_reqs"', '"http_requests"', "no HTTP requests.*--out json"),
        ("k6-summary-export.json", '"passes": 15', '"passes": 151', "more failed operations than operations"),
        (
            "k6-summary-export.json",
            '"rate": 29.93648823141804',
            '"rate": 0',
            "not a usable k6-summary file: a number is 0",
        ),
        ("k6-summary-export.json", '"count": 150', '"count": NaN', "damaged"),
        ("k6-handle-summary.json", '"testRunDurationMs":', '"testRunDurationMs":-', "not a duration"),
    ],
)
def test_missing_and_contradictory_figures_are_errors(
    tmp_path: Path, name: str, old: str, new: str, reason: str
) -> None:
    text = content_of(name).decode()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        read_content(tmp_path / "file", text.replace(old, new))


def test_a_rate_that_contradicts_the_number_of_requests_is_noted(tmp_path: Path) -> None:
    for name, label in (("ab-time.log", "Requests per second:    "), ("hey-errors.log", "  Requests/sec:\t")):
        text = content_of(name).decode()
        assert label in text
        result = read_content(tmp_path / "file", text.replace(label, f"{label}9"))
        assert any("the file states" in note for note in result.notes)


def test_ab_states_only_a_range_of_failed_responses_if_their_lengths_differ(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of("ab-length.log"))
    assert any("between 80 and 92 responses failed" in note for note in result.notes)
    assert any("run ab with -l" in note for note in result.notes)


def test_errors_that_are_no_responses_are_not_subtracted_from_ab_s_responses(tmp_path: Path) -> None:
    text = content_of("ab.log").decode()
    failures = "Failed requests:        7\n   (Connect: 4, Receive: 2, Length: 0, Exceptions: 1)"
    total = only_summary(read_content(tmp_path / "file", text.replace("Failed requests:        0", failures)))
    assert total.errors == {"status": 30, "receive": 2, "connect": 4, "exception": 1}
    assert total.completed == 300 - 30 - 2


def test_ab_s_html_and_an_aborted_run_are_errors(tmp_path: Path) -> None:
    begin = content_of("ab.log").decode().partition("Server Software")[0]
    with pytest.raises(ClientFormatError, match="-r lets it continue"):
        read_content(tmp_path / "file", begin + "apr_socket_recv: Connection reset by peer (104)\n")
    html = "<p>\n This is ApacheBench, Version 2.3 <i>&lt;&gt;</i><br>\n</p>\n\n<table >\n"
    with pytest.raises(ClientFormatError, match="without -w"):
        read_content(tmp_path / "file", html)


def test_ab_s_percentiles_are_refused_with_a_hint_because_they_have_no_count(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match=r"no number of requests \(hint: import what ab prints"):
        read_content(tmp_path / "file", content_of("ab-percentiles.csv"))


def test_each_row_of_ab_s_file_for_gnuplot_is_a_request_in_the_second_in_which_it_ended(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of("ab-gnuplot.tsv"))
    total = only_summary(result)
    rows = [line.split("\t") for line in content_of("ab-gnuplot.tsv").decode().splitlines()[1:]]
    times_ms = sorted(int(row[4]) for row in rows)
    assert (total.completed, total.failed) == (len(rows), 0) == (300, 0)
    assert total.service is not None
    assert total.service.percentile_s(50) == pytest.approx(times_ms[149] / 1000, rel=0.001)
    assert total.service.percentile_s(100) == pytest.approx(times_ms[-1] / 1000, rel=0.001)
    first = min(int(row[1]) for row in rows)
    assert first - 1 <= total.begin_s <= first + 1
    assert not result.estimated_clock
    assert "does not state which requests failed" in result.notes[-1]


def test_a_truncated_file_for_gnuplot_lacks_the_longest_requests(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of("ab-gnuplot.tsv")[:-20])
    assert only_summary(result).completed == 299
    assert any("lacks the longest ones" in note for note in result.notes)


def test_each_row_of_hey_s_csv_is_a_response(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of("hey.csv"))
    total = only_summary(result)
    rows = [line.split(",") for line in content_of("hey.csv").decode().splitlines()[1:] if line]
    assert (total.completed, total.errors) == (180, {"status 500": 20})
    assert total.service is not None
    longest_s = max(float(row[0]) for row in rows if row[6] == "200")
    assert total.service.percentile_s(100) == pytest.approx(longest_s, rel=0.001)
    # The last response ended when the output did.
    assert TIMES.end_s - 6 < total.begin_s < total.end_s < TIMES.end_s - 2
    assert result.estimated_clock


@pytest.mark.parametrize(
    "row", ["0.1,0,0,0,0,0,200", "nan,0,0,0,0,0,200,0", "0.1,0,0,0,0,0,20,0", "-1,0,0,0,0,0,200,0"]
)
def test_a_malformed_row_of_hey_s_csv_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(ClientFormatError, match="line 2: "):
        read_content(tmp_path / "file", content_of("hey.csv").replace(b"\n", f"\n{row}\n".encode(), 1))


def test_responses_beyond_those_that_hey_keeps_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hey_oha, "MAX_RESPONSES", 200)
    text = content_of("hey.log").decode()
    rate = next(line for line in text.splitlines() if "Requests/sec" in line)
    result = read_content(tmp_path / "file", text.replace(rate, f"  Requests/sec:\t{1000 / 0.5571:.4f}"))
    assert only_summary(result).completed == 980
    assert any("800 further responses" in note for note in result.notes)


def test_earlier_versions_of_hey_write_one_percent_sign(tmp_path: Path) -> None:
    text = content_of("hey.log").decode()
    assert read_content(tmp_path / "file", text.replace("%%", "%")) == read_content(tmp_path / "file", text)


def oha_report(**changes: object) -> str:
    report = json.loads(content_of("oha.json"))
    return json.dumps({**report, **changes}, indent=2)


def test_oha_s_requests_that_the_end_cut_off_are_neither_completed_nor_failed(tmp_path: Path) -> None:
    errors = {"aborted due to deadline": 3, "connection refused": 2}
    result = read_content(tmp_path / "file", oha_report(errorDistribution=errors))
    plain = only_summary(read_content(tmp_path / "file", content_of("oha.json")))
    total = only_summary(result)
    assert total.completed == plain.completed
    assert total.errors == {**plain.errors, "connection refused": 2}
    assert any("3 requests cut off by the end of the run not counted" in note for note in result.notes)


@pytest.mark.parametrize("name", ["hey", "oha"])
def test_errors_beyond_the_first_kinds_are_noted(tmp_path: Path, name: str) -> None:
    errors = {f"error {number}": 2 for number in range(MAX_LABELS + 10)}
    if name == "hey":
        lines = "".join(f"  [{count}]\t{text}\n" for text, count in errors.items())
        content = f"{content_of('hey.log').decode().rstrip()}\n\nError distribution:\n{lines}"
    else:
        content = oha_report(errorDistribution=errors)
    result = read_content(tmp_path / "file", content)
    assert only_summary(result).errors[""] == 20
    assert f"20 errors beyond the first {MAX_LABELS} kinds are counted without a kind" in result.notes


def test_oha_s_latencies_are_response_times_if_the_command_corrects_them(tmp_path: Path) -> None:
    words = ("sh", "-c", "oha --latency-correction -q 100 --output-format json http://localhost")
    corrected = only_summary(read_content(tmp_path / "file", content_of("oha.json"), replace(TIMES, words=words)))
    plain = only_summary(read_content(tmp_path / "file", content_of("oha.json")))
    assert corrected == replace(plain, response=plain.service, service=None)


def test_oha_s_latencies_of_successful_responses_are_preferred(tmp_path: Path) -> None:
    total = only_summary(
        read_content(tmp_path / "file", oha_report(latencyPercentilesSuccessful={"p50": 0.002, "p99.9": 0.003}))
    )
    assert total.service == Latency(stated_s={50.0: 0.002, 99.9: 0.003})


@every(
    ("changes", "reason"),
    [
        ({"statusCodeDistribution": {"200": -1}}, "not a number of operations: -1"),
        ({"statusCodeDistribution": {"x": 1}}, "not a whole number: x"),
        ({"latencyPercentiles": {"p50": 2, "p99": 1}}, "ascending"),
        ({"latencyPercentiles": {"p50": float("inf")}}, "damaged"),
        ({"latencyPercentiles": {"p50": "x"}}, "not a number: x"),
        ({"latencyPercentiles": []}, "wrong type"),
        ({"summary": None}, "unknown format"),
        ({"summary": {"successRate": 1.0, "total": 10**400, "slowest": 1, "requestsPerSec": 1}}, "not a duration"),
        ({"summary": {"successRate": 1.0, "total": 1, "slowest": 1, "requestsPerSec": "x"}}, "not a number: x"),
        ({"summary": {"successRate": 1.0, "total": 1, "slowest": "x", "requestsPerSec": 1}}, "not a number: x"),
    ],
)
def test_malformed_reports_of_oha_are_errors(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ClientFormatError, match=rf"^[ -~]*{reason}[ -~]*$"):
        read_content(tmp_path / "file", oha_report(**changes))


def test_k6_s_dropped_iterations_and_a_missing_number_of_failures_are_noted(tmp_path: Path) -> None:
    content = json.loads(content_of("k6-summary-export.json"))
    notes = read_content(tmp_path / "file", json.dumps(content)).notes
    assert "k6 dropped 1 iteration: the load was below the stated rate" in notes
    del content["metrics"]["http_req_failed"]
    result = read_content(tmp_path / "file", json.dumps(content))
    assert only_summary(result).completed == 150
    assert any("does not state how many requests failed" in note for note in result.notes)


NAMES = sorted([*SUMMARIES, "ab-gnuplot.tsv", "hey.csv", "oha.csv", "locust_stats.csv"])


@pytest.mark.parametrize("name", NAMES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(15))
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_a_result_that_can_be_stored(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    path, content = tmp_path / "file", content_of(name)
    if name.endswith(".json"):
        content = json.dumps(json.loads(content), indent=1).encode()
    try:
        result = read_content(path, data.draw(damaged(content)))
    except ClientFormatError:
        return
    assert summaries(result)
    write_result(path, result)
    assert stored_content(read_result(path)) == stored_content(result)
