"""k6's JSON output is counted by operation and by the second in which each request ended.

k6 itself cannot be used here: the files have the form of published ones, see k6_output.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.formats import k6
from tests.collector.load_results import k6_output
from tests.collector.load_results.k6_output import BEGIN_S, Sample, json_text, request
from tests.collector.load_results.mutations import damaged
from tests.every import every

TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)


def result_of(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    chosen = recognised_format(path)
    assert chosen.name == "k6-json"
    return read_as(chosen, path, TIMES)


def counts(operation: Operation) -> tuple[int, dict[str, int]]:
    assert operation.summary is not None
    return operation.summary.completed, dict(operation.summary.errors)


def test_requests_are_counted_by_name_second_and_error(tmp_path: Path) -> None:
    result = result_of(tmp_path / "k6.json", json_text(k6_output.run()))
    read, write = result.operations
    assert (result.tool, read.name, write.name, result.notes) == ("k6", "read", "write", ())
    assert counts(read) == (17, {"status 404": 3})
    assert counts(write) == (17, {"status 503": 2, "error code 1212": 1})
    assert [int(interval.begin_s) for interval in read.intervals] == [BEGIN_S - 1, BEGIN_S, BEGIN_S + 1, BEGIN_S + 3]
    assert [interval.completed + interval.failed for interval in read.intervals] == [10, 0, 0, 10]
    assert read.intervals[1].service is None
    assert read.summary is not None
    assert read.summary.service is not None
    assert read.summary.service.percentile_s(100) == pytest.approx(0.0395, rel=0.001)
    assert result.has_only_service_time


def test_the_first_layout_of_points_and_time_zones_are_read(tmp_path: Path) -> None:
    declared = '{"type":"Metric","data":{"type":"trend","contains":"time"},"metric":"http_req_duration"}\n'
    point = (
        '{"type":"Point","data":{"time":"2017-05-09T14:34:45.999999999+02:00","value":459.865729,"tags":{"group":'
        '"::my group::json","method":"GET","status":"200","url":"https://host.test/get?id=5"}},'
        '"metric":"http_req_duration"}\n'
    )
    (operation,) = result_of(tmp_path / "k6.json", declared + point).operations
    assert operation.name == "GET /get"
    assert operation.intervals[0].end_s == pytest.approx(1_494_333_285.999999, abs=2e-6)


def test_a_url_is_a_name_without_its_host_and_query(tmp_path: Path) -> None:
    urls = ["http://a:1/users/1?x=1", "http://b/users/1#top", "https://a/users/${}", "http://a", "login page"]
    samples = [sample for url in urls for sample in request(0, 1.0, url)]
    names = [operation.name for operation in result_of(tmp_path / "k6.json", json_text(samples)).operations]
    assert names == ["GET /", "GET /users/${}", "GET /users/1", "login page"]


def test_further_names_are_counted_without_a_name(tmp_path: Path) -> None:
    samples = [sample for index in range(60) for sample in request(0, 1.0, f"http://a/{index}")]
    result = result_of(tmp_path / "k6.json", json_text(samples))
    assert len(result.operations) == 51
    assert counts(result.operations[0]) == (10, {})
    assert "10 requests beyond the first 50 names" in result.notes[0]


def test_hostile_names_are_short_and_printable(tmp_path: Path) -> None:
    samples = request(0, 1.0, "\x1b]52;c;x\x07<b>\u202e\ud800" + "x" * 200)
    (operation,) = result_of(tmp_path / "k6.json", json_text(samples)).operations
    assert operation.name.isprintable()
    assert len(operation.name) == 80


@every(
    ("tags", "expected"),
    [
        ({"expected_response": "true", "error_code": "1404"}, (1, {})),
        ({"expected_response": "false", "status": "200", "error_code": "-"}, (0, {"status 200": 1})),
        ({"expected_response": "false", "status": "200", "error_code": "1701"}, (0, {"error code 1701": 1})),
        ({"expected_response": "-"}, (0, {"status 404": 1})),
        ({"expected_response": "-", "error_code": "-", "status": "0"}, (0, {"": 1})),
        ({"expected_response": "-", "error_code": "-", "status": "302"}, (1, {})),
        ({"expected_response": "-", "error_code": "-", "status": "-"}, (1, {})),
    ],
)
def test_a_request_has_failed_if_k6_did_not_expect_its_response(
    tmp_path: Path, tags: dict[str, str], expected: tuple[int, dict[str, int]]
) -> None:
    samples = request(0, 1.0, "read", 404)
    of_request = samples[0].tags  # All samples of a request have the same tags.
    of_request |= tags
    for tag in [tag for tag, value in tags.items() if value == "-"]:
        del of_request[tag]
    result = result_of(tmp_path / "k6.json", json_text(samples))
    assert counts(result.operations[0]) == expected
    is_contradicted = expected == (1, {})
    assert any("http_req_failed" in note for note in result.notes) == is_contradicted
    assert any("without the tags" in note for note in result.notes) == (tags.get("status") == "-")


def test_grpc_requests_are_operations_and_streams_are_not(tmp_path: Path) -> None:
    tags = {"name": "127.0.4.1:1/app.Users/Get", "service": "app.Users", "method": "Get", "status": "0"}
    time_ns = BEGIN_S * 10**9
    samples = [
        Sample("grpc_req_duration", time_ns, 2.0, tags),
        Sample("grpc_req_duration", time_ns, 2.0, {**tags, "status": "14"}),
        Sample("grpc_req_duration", time_ns, 9000.0, {"scenario": "default"}),
        Sample("dropped_iterations", time_ns, 3, {}),
    ]
    result = result_of(tmp_path / "k6.json", json_text(samples))
    (operation,) = result.operations
    assert (operation.name, *counts(operation)) == ("Get", 1, {"gRPC status 14": 1})
    assert any("1 gRPC stream" in note for note in result.notes)
    assert any("dropped 3 iterations" in note for note in result.notes)


def test_an_incomplete_last_line_is_ignored_with_a_note(tmp_path: Path) -> None:
    text = json_text(request(0, 1.0) + request(10**9, 1.0)[:2])
    result = result_of(tmp_path / "k6.json", text[:-20])
    assert counts(result.operations[0]) == (1, {})
    assert "incomplete" in result.notes[0]
    assert "2 HTTP requests (http_reqs), the file has the durations of 1" in result.notes[1]


def test_two_runs_in_one_file_are_noted(tmp_path: Path) -> None:
    result = result_of(tmp_path / "k6.json", json_text(request(0, 1.0)) + json_text(request(10**9, 1.0)))
    assert counts(result.operations[0]) == (2, {})
    assert "2 runs" in result.notes[0]


POINT = '{"metric":"http_req_duration","type":"Point","data":{"time":"2026-01-01T00:00:00Z","value":1,"tags":null}}'


@every(
    ("line", "reason"),
    [
        ("hello", "line 2: not a JSON object"),
        (POINT[:-1] + "x}", "line 2:"),
        (POINT * 2, "line 2:"),
        (POINT.replace('"value":1', '"value":NaN'), "line 2: not a latency"),
        (POINT.replace('"value":1', '"value":-1'), "line 2: not a latency"),
        (POINT.replace('"value":1', '"value":1e300'), "line 2: not a latency"),
        (POINT.replace('"value":1', '"value":"1,5"'), "line 2:"),
        (POINT.replace('"value":1', '"value":null'), "line 2: a field has the wrong type"),
        (POINT.replace('"value":1', '"value":' + "[" * 200_000 + "]" * 200_000), "line 2: nested too deeply"),
        (POINT.replace("T00:00:00Z", "T00:00:00"), "line 2: the time has no time zone"),
        (POINT.replace("2026-01-01", "2026-13-01"), "line 2:"),
        (POINT.replace("2026", "1926"), "line 2: time out of range"),
        (POINT.replace("2026", "2027"), "over [0-9,]+ days"),
        (POINT.replace("null", '{"expected_response":"trve"}'), "line 2: expected_response"),
        (POINT.replace("null", "[]"), ""),
        ("x" * (2 << 20), "line 2: longer than"),
    ],
)
def test_malformed_lines_are_errors_that_name_them(tmp_path: Path, line: str, reason: str) -> None:
    text = f"{POINT}\n{line}\n"
    if not reason:
        assert counts(result_of(tmp_path / "k6.json", text).operations[0]) == (2, {})
        return
    with pytest.raises(ClientFormatError, match=reason) as caught:
        result_of(tmp_path / "k6.json", text)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_a_file_without_requests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match="no requests"):
        result_of(tmp_path / "k6.json", json_text([Sample("vus", BEGIN_S * 10**9, 5, {})]))


CONTENT = json_text(k6_output.run()).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_has_no_more_operations(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "k6.json"
    path.write_bytes(data.draw(damaged(CONTENT)))
    try:
        result = k6.read_json(SourceFile("k6-json", path, TIMES))
    except ClientFormatError:
        return
    assert 0 < sum(completed + sum(errors.values()) for completed, errors in map(counts, result.operations)) <= 40
