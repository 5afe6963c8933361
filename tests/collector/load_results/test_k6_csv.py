"""k6's CSV output has the same counts as its JSON output of the same run.

k6 itself cannot be used here: the files have the form of published ones, see k6_output.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.formats import k6
from tests.collector.load_results import k6_output
from tests.collector.load_results.k6_output import csv_text, json_text, request
from tests.collector.load_results.mutations import damaged
from tests.every import every

TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
HEADER = csv_text([])


def result_of(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    chosen = recognised_format(path)
    assert chosen.name == "k6-csv"
    return read_as(chosen, path, TIMES)


def total(result: ClientResult) -> int:
    return sum(row.completed + row.failed for operation in result.operations for row in operation.intervals)


@every("time_format", ["unix", "unix_milli", "unix_micro", "unix_nano", "rfc3339_nano"])
def test_the_result_is_that_of_the_json_output(tmp_path: Path, time_format: str) -> None:
    result = result_of(tmp_path / "k6.csv", csv_text(k6_output.run(), time_format))
    path = tmp_path / "k6.json"
    path.write_text(json_text(k6_output.run()))
    expected = replace(k6.read_json(SourceFile("k6-json", path, TIMES)), format="k6-csv", source="k6.csv")
    if time_format == "unix":
        result, expected = (replace(read, operations=without_times(read)) for read in (result, expected))
    assert result == expected


def without_times(result: ClientResult) -> tuple[Operation, ...]:
    """Return the operations without their times, since whole seconds do not state when the first and last one ended."""
    return tuple(
        Operation(
            operation.name,
            tuple(replace(interval, begin_s=0.0, end_s=0.0) for interval in operation.intervals),
        )
        for operation in result.operations
    )


def test_older_columns_and_quoted_fields_are_read(tmp_path: Path) -> None:
    text = (
        "metric_name,timestamp,metric_value,check,error,error_code,group,method,name,status,url,extra_tags\n"
        'http_reqs,1595325560,1.000000,,"dial: ""x"", y",1212,,GET,http://a.test,0,http://a.test,a=1&b=2\n'
        'http_req_duration,1595325560,0.000000,,"dial: ""x"", y",1212,,GET,http://a.test,0,http://a.test,a=1&b=2\n'
        'http_req_failed,1595325560,1.000000,,"dial: ""x"", y",1212,,GET,http://a.test,0,http://a.test,a=1&b=2\n'
    )
    result = result_of(tmp_path / "k6.csv", text)
    (operation,) = result.operations
    assert (operation.name, operation.intervals[0].errors) == ("GET /", {"error code 1212": 1})
    assert result.notes == ()


def test_a_request_without_a_response_failed_even_if_k6_expected_it(tmp_path: Path) -> None:
    # A body that timed out, as published by a run of k6 in 2021.
    tags = {"expected_response": "true", "error": "context deadline exceeded", "error_code": "1000", "proto": "-"}
    samples = [replace(sample, tags=tags | {"name": "read", "status": "0"}) for sample in request(0, 59_359.546)]
    counted = [replace(sample, value=0.0) if sample.metric == "http_req_failed" else sample for sample in samples]
    (operation,) = (result := result_of(tmp_path / "k6.csv", csv_text(counted))).operations
    (interval,) = operation.intervals
    assert (interval.completed, interval.errors) == (0, {"error code 1000": 1})
    assert result.notes == ("k6 counts 0 failed HTTP requests (http_req_failed), by their tags 1 failed",)


def test_files_that_were_concatenated_may_have_different_columns(tmp_path: Path) -> None:
    second = csv_text(request(10**9, 1.0)).replace(",extra_tags,metadata", ",extra_tags").replace(",,\n", ",\n")
    result = result_of(tmp_path / "k6.csv", csv_text(request(0, 1.0)) + second)
    assert total(result) == 2
    assert result.notes == ("the file has 2 runs of k6",)


def test_an_incomplete_last_line_is_ignored_with_a_note(tmp_path: Path) -> None:
    text = csv_text([*request(0, 1.0), request(0, 1.0)[1]])
    result = result_of(tmp_path / "k6.csv", text[:-30])
    assert total(result) == 1
    assert result.notes == ("the last line is incomplete and is ignored",)


@every(
    ("row", "reason"),
    [
        ("http_req_duration,1595325560,1.0", "line 2: 3 fields instead of 19"),
        ("http_req_duration,1595325560,1,5" + "," * 16, "line 2: 20 fields instead of 19"),
        ('http_req_duration,1595325560,1.0,"' + "," * 16, "line 2: not CSV"),
        ("http_req_duration,now,1.0" + "," * 16, "line 2: not a time: now"),
        ("http_req_duration,1595325560,inf" + "," * 16, "line 2: not a latency"),
        ("http_req_duration,1595325560,x" + "," * 16, "line 2: not a number: x"),
        ("vus,1595325560,1.0" + "," * 16, "no requests"),
    ],
)
def test_malformed_rows_are_errors_that_name_the_line(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        result_of(tmp_path / "k6.csv", HEADER + row + "\n")


def test_a_file_without_the_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "k6.csv"
    path.write_text(csv_text(request(0, 1.0)).partition("\n")[2])
    with pytest.raises(ClientFormatError, match="not the header"):
        k6.read_csv(SourceFile("k6-csv", path, TIMES))


CONTENT = csv_text(k6_output.run()).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_has_no_more_operations(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "k6.csv"
    path.write_bytes(data.draw(damaged(CONTENT)))
    try:
        result = k6.read_csv(SourceFile("k6-csv", path, TIMES))
    except ClientFormatError:
        return
    assert 0 < total(result) <= 40
