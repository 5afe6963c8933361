"""Gatling's logs as text and in binary form; the captures are from the versions in their names.

The figures are those that Gatling printed.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results import operation_times
from collector.load_results.client_format import ClientFormatError
from collector.load_results.result_checks import require_sound
from tests.collector.load_results.captured import content_of, read_content, summaries
from tests.collector.load_results.mutations import damaged
from tests.every import every
from tests.examples import examples

PRINTED = {
    "gatling-3.9.5.log": {"browse / čtení": (16, 4), "redirect": (20, 0), "Redirect 1": (20, 0), "write": (17, 3)},
    "gatling-3.12.0.log": {"browse / read": (19, 1), "redirect": (20, 0), "Redirect 1": (20, 0), "write": (16, 4)},
    "gatling-3.13.5.b64": {"browse / čtení": (20, 0), "redirect": (20, 0), "Redirect 1": (17, 3), "write": (18, 2)},
    "gatling-3.14.9.b64": {"browse / read": (20, 0), "redirect": (20, 0), "Redirect 1": (20, 0), "write": (16, 4)},
}
NAMES = {"redirect": "browse / redirect", "Redirect 1": "browse / redirect Redirect 1"}
BINARY = "gatling-3.13.5.b64"
RUN = "RUN\tSim\tsim\t1700000000000\t \t3.9.5\n"


@every("name", PRINTED)
def test_captures_have_the_requests_that_gatling_printed(tmp_path: Path, name: str) -> None:
    result = read_content(tmp_path / "file", content_of(name))
    totals = {operation: (total.completed, total.failed) for operation, total in summaries(result).items()}
    assert totals == {NAMES.get(operation, operation): counts for operation, counts in PRINTED[name].items()}
    kinds = {kind for total in summaries(result).values() for kind in total.errors}
    assert kinds == {"status 500"}
    assert result.tool == f"Gatling {name[8:].rpartition('.')[0]}"
    assert not result.estimated_clock
    assert result.notes == ()


def test_text_and_binary_logs_have_the_times_in_their_records(tmp_path: Path) -> None:
    records = [line.split("\t") for line in content_of("gatling-3.9.5.log").decode().splitlines()]
    requests = [record for record in records if record[0] == "REQUEST"]
    result = read_content(tmp_path / "file", content_of("gatling-3.9.5.log"))
    ends_s = [int(record[4]) / 1000 for record in requests]
    assert result.span_s is not None
    assert result.span_s[0] == pytest.approx(min(ends_s), abs=1)
    assert result.span_s[1] == pytest.approx(max(ends_s), abs=1)
    write = summaries(result)["write"]
    longest_ms = max(int(record[4]) - int(record[3]) for record in requests if record[2] == "write")
    assert write.service is not None
    assert write.service.percentile_s(100) == pytest.approx(longest_ms / 1000, rel=0.1)


@every(
    ("record", "name", "errors"),
    [
        ("REQUEST\t\tread\t1700000000100\t1700000000112\tOK\t ", "read", {}),
        ("REQUEST\t7\t\tread\t1700000000100\t1700000000112\tOK\t ", "read", {}),
        ("REQUEST\t7\ta,b\tread\t1700000000100\t1700000000112\tOK\t ", "a / b / read", {}),
        ("REQUEST\tscenario\t7\t\tread\t1700000000100\t1700000000112\tOK\t \textra\tOK", "read", {}),
        ("REQUEST\ts\t7\t\tread\t1700000000100\t1700000000101\t1700000000105\t1700000000112\tOK\t ", "read", {}),
        ("REQUEST\t\tOK\t1700000000100\t1700000000112\tOK\t ", "OK", {}),
        (
            "REQUEST\t\tread\t1700000000100\t1700000000112\tKO\tstatus.find.is(200), but actually found 503",
            "read",
            {"status 503": 1},
        ),
        (
            "REQUEST\t\tread\t1700000000100\t1700000000112\tKO\tj.n.ConnectException: Connection refused",
            "read",
            {"j.n.ConnectException: Connection refused": 1},
        ),
        ("REQUEST\t\tread\t1700000000100\t1700000000112\tKO\t ", "read", {"": 1}),
        ("REQUEST\t\tread\t1700000000100\t1700000000112\tKO", "read", {"": 1}),
    ],
)
def test_requests_of_all_versions_are_read(tmp_path: Path, record: str, name: str, errors: dict[str, int]) -> None:
    result = read_content(tmp_path / "file", f"{RUN}{record}\r\n")
    (total,) = summaries(result).values()
    assert list(summaries(result)) == [name]
    assert total.errors == errors
    if not errors:
        assert total.service is not None
        assert total.service.percentile_s(100) == pytest.approx(0.012, rel=0.001)


REQUEST = "REQUEST\t\tread\t1700000000100\t1700000000112\tOK\t \n"


def test_several_runs_and_errors_outside_of_requests_are_noted(tmp_path: Path) -> None:
    error = "ERROR\tFailed to build request\t1700000000100\n"
    result = read_content(tmp_path / "file", f"{RUN}{REQUEST}{error}{RUN}{REQUEST}")
    assert result.notes == ("the file has 2 runs of Gatling", "1 error outside of requests not counted")


@every(
    ("records", "reason"),
    [
        ("", "no requests"),
        ("USER\tmixed\tSTART\t1700000000000\n", "no requests"),
        (f"{REQUEST}hello\n", "line 3: not a record"),
        ("REQUEST\t\tread\t1700000000100\tOK\t \n", "line 2: not a request"),
        ("REQUEST\t\tread\t1700000000112\t1700000000100\tOK\t \n", "line 2: not a latency: -12"),
        ("REQUEST\t\tread\t1700000000100\t9999999999999\tOK\t \n", "line 2: not a latency"),
    ],
)
def test_malformed_records_are_errors(tmp_path: Path, records: str, reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        read_content(tmp_path / "file", RUN + records)


def test_an_incomplete_last_record_is_ignored_with_a_note(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", f"{RUN}{REQUEST}{REQUEST[:30]}")
    assert result.notes == ("the last line is incomplete and is ignored",)
    binary = read_content(tmp_path / "file", content_of(BINARY)[:-3])
    assert binary.notes == ("the last record is incomplete and is ignored",)


@pytest.mark.parametrize(
    ("position", "replacement", "reason"),
    [
        # The length of the class name; the number of scenarios; the kind of the first record after the header.
        (12, b"\x7f", "not a binary log of Gatling"),
        (33, b"\x00\x7f\xff\xff", "not a binary log of Gatling"),
        (0x62, b"\x09", "not a binary log of Gatling"),
    ],
)
def test_a_damaged_binary_log_is_an_error_that_names_the_position(
    tmp_path: Path, position: int, replacement: bytes, reason: str
) -> None:
    content = bytearray(content_of(BINARY))
    content[position : position + len(replacement)] = replacement
    with pytest.raises(ClientFormatError, match=f"at byte [0-9]+: {reason}"):
        read_content(tmp_path / "file", bytes(content))


@pytest.mark.parametrize("name", PRINTED)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(20))
@given(data=st.data())
def test_a_damaged_log_is_an_error_or_has_no_more_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: st.DataObject
) -> None:
    monkeypatch.setattr(operation_times, "MAX_INTERVALS", 10_000)
    try:
        result = read_content(tmp_path / "file", data.draw(damaged(content_of(name))))
    except ClientFormatError:
        return
    require_sound(result)
    assert sum(total.completed + total.failed for total in summaries(result).values()) <= 80
