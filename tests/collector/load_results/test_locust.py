"""Locust's statistics and their history; the captures are from Locust 2.47.0, which printed 464 requests."""

import csv
import io
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError
from collector.load_results.parsing import MAX_LABEL_CHARS
from collector.load_results.result_checks import require_sound
from tests.collector.load_results.captured import TIMES, content_of, only_summary, read_content, summaries
from tests.collector.load_results.mutations import damaged
from tests.every import every
from tests.examples import examples

STATS, HISTORY, FULL = "locust_stats.csv", "locust_stats_history.csv", "locust_full_stats_history.csv"
BEGIN_S = 1_700_000_010


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content_of(name).decode())))


def test_the_statistics_have_the_counts_and_percentiles_of_each_name_and_not_those_of_all(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of(STATS))
    read, write = summaries(result).values()
    assert list(summaries(result)) == ["read, by id", "write"]
    assert (read.completed, read.failed, write.completed, write.failed) == (305, 34, 91, 10)
    assert read.service is not None
    assert read.service.percentiles_s((50, 95, 99.9)) == [0.013, 0.024, 0.046]
    assert read.end_s == TIMES.end_s - 4
    # 440 requests at 40.2687 requests per second.
    assert read.end_s - read.begin_s == pytest.approx(10.927, abs=0.001)
    assert result.estimated_clock
    assert not any("the file states" in note for note in result.notes)


def test_the_statistics_of_earlier_versions_have_other_columns(tmp_path: Path) -> None:
    text = content_of(STATS).decode().replace("Request Count,Failure Count", "# requests,# failures")
    header, rest = text.split("\n", 1)
    quoted = ",".join(f'"{column}"' for column in header.strip().split(","))
    result = read_content(tmp_path / "file", f"{quoted}\n{rest}")
    assert result == read_content(tmp_path / "file", content_of(STATS))


def test_names_that_occur_with_several_types_include_the_type(tmp_path: Path) -> None:
    text = content_of(STATS).decode().replace('"read, by id"', "write")
    assert list(summaries(read_content(tmp_path / "file", text))) == ["GET write", "POST write"]


def test_a_row_of_all_requests_that_contradicts_the_others_is_noted(tmp_path: Path) -> None:
    text = content_of(STATS).decode().replace(",Aggregated,440,", ",Aggregated,450,")
    result = read_content(tmp_path / "file", text)
    assert "the file states 450 operations, but has 440" in result.notes


@pytest.mark.parametrize("capture", [STATS, FULL])
def test_names_whose_first_characters_are_equal_are_different_operations(tmp_path: Path, capture: str) -> None:
    start, text = "x" * MAX_LABEL_CHARS, content_of(capture).decode()
    expected = list(summaries(read_content(tmp_path / "file", text)).values())
    text = text.replace('"read, by id"', f"{start}1").replace(",write,", f",{start}2,")
    result = read_content(tmp_path / "file", text)
    assert [operation.name for operation in result.operations] == [start, f"{start} (2)"]
    assert [operation.summary for operation in result.operations] == expected


@every(
    ("old", "new", "reason"),
    [
        (",Aggregated,440,", ",Aggregated,0,", "no requests"),
        (",Aggregated,", ",Total,", "row Aggregated is missing"),
        (",339,34,", ",339,340,", "more failed operations than operations"),
        (",339,34,", ",339,-1,", "failure count is not a number of requests"),
        ("POST,write", 'GET,"read, by id"', "another run begins"),
        (",40.26", ",nan,", "fields instead of"),
        (",40.26873201702102,", ",nan,", "not a duration"),
        (",101,10,14,", ",101,10,", "line 3: 21 fields instead of 22"),
    ],
)
def test_impossible_statistics_are_errors(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = content_of(STATS).decode()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        read_content(tmp_path / "file", text.replace(old, new))


def test_an_interval_of_the_history_has_the_increase_of_the_counts_and_no_percentiles(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of(HISTORY))
    (operation,) = result.operations
    rows = rows_of(HISTORY)
    counts = [(int(row["Total Request Count"]), int(row["Total Failure Count"])) for row in rows]
    assert operation.name == ""
    assert [(each.completed + each.failed, each.failed) for each in operation.intervals] == [
        (after[0] - before[0], after[1] - before[1]) for before, after in pairwise(counts)
    ]
    assert all(each.service is each.response is None for each in operation.intervals)
    assert operation.intervals[-1].end_s == pytest.approx(int(rows[-1]["Timestamp"]), abs=1)
    assert (only_summary(result).completed, only_summary(result).failed) == (396, 44)
    assert operation.total is not None
    assert operation.total.service is not None
    assert operation.total.service.percentiles_s((50, 99, 100)) == [0.013, None, pytest.approx(0.0462962)]
    assert not result.estimated_clock


def test_a_full_history_has_each_name_and_does_not_count_the_rows_of_all(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", content_of(FULL))
    totals = {name: (total.completed, total.failed) for name, total in summaries(result).items()}
    assert totals == {"read, by id": (188, 24), "write": (65, 4)}
    assert not any("the file states" in note for note in result.notes)
    contradiction = content_of(FULL).decode().replace(",281,28,", ",291,28,")
    assert any("the file states 291" in note for note in read_content(tmp_path / "file", contradiction).notes)


def history(*rows: tuple[int, int, int]) -> str:
    """Return a history with rows of a time, and the numbers of requests and of failures until then."""
    header = content_of(HISTORY).decode().partition("\n")[0]
    columns = header.strip().split(",")
    lines = []
    for time_s, requests, failures in rows:
        values = dict.fromkeys(columns, "N/A")
        values |= {"Timestamp": str(time_s), "Type": "", "Name": "Aggregated"}
        values |= {"Total Request Count": str(requests), "Total Failure Count": str(failures)}
        lines.append(",".join(values.values()))
    return "\n".join([",".join(columns), *lines, ""])


def counts_of(path: Path, rows: Sequence[tuple[int, int, int]]) -> list[tuple[float, int, int]]:
    """Return the length, the requests and the failures of each interval of a history whose times begin at 0."""
    absolute = ((BEGIN_S + second, requests, failures) for second, requests, failures in rows)
    (operation,) = read_content(path, history(*absolute)).operations
    return [(each.end_s - each.begin_s, each.completed + each.failed, each.failed) for each in operation.intervals]


@every(
    ("rows", "expected"),
    [
        # Users are started; a row is late; two rows are written in one second; a stall until the end.
        (((0, 0, 0), (1, 0, 0), (2, 10, 1)), [(1, 10, 1)]),
        (((0, 0, 0), (1, 10, 0), (4, 40, 2)), [(1, 10, 0), (3, 30, 2)]),
        (((0, 0, 0), (1, 10, 0), (1, 20, 2), (2, 30, 2)), [(1, 20, 2), (1, 10, 0)]),
        (((0, 0, 0), (1, 10, 0), (2, 10, 0)), [(1, 10, 0), (1, 0, 0)]),
        # The statistics are reset after the second row.
        (((0, 0, 0), (1, 10, 5), (2, 8, 1), (3, 20, 1)), [(1, 10, 5), (1, 8, 1), (1, 12, 0)]),
        (((0, 7, 0), (1, 10, 0)), [(1, 7, 0), (1, 3, 0)]),
    ],
)
def test_counts_of_intervals(
    tmp_path: Path, rows: tuple[tuple[int, int, int], ...], expected: list[tuple[float, int, int]]
) -> None:
    assert counts_of(tmp_path / "file", rows) == expected


def test_a_reset_is_noted_and_its_total_is_unknown(tmp_path: Path) -> None:
    result = read_content(tmp_path / "file", history((BEGIN_S, 0, 0), (BEGIN_S + 1, 10, 0), (BEGIN_S + 2, 5, 0)))
    assert any("reset its statistics" in note for note in result.notes)
    assert result.operations[0].total is None


@every(
    ("rows", "reason"),
    [
        (((0, 0, 0),), "no requests"),
        ((), "no rows"),
        (((0, 0, 0), (1, 5, 0), (-5, 0, 0)), "line 4: the time is before that of the previous row"),
        (((0, 0, 0), (1, 5, 6)), "more failed operations than operations"),
        (((0, 0, 0), (2_000_000, 5, 0)), "more than 14 days apart"),
    ],
)
def test_impossible_histories_are_errors(tmp_path: Path, rows: tuple[tuple[int, int, int], ...], reason: str) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        counts_of(tmp_path / "file", rows)


def test_two_histories_in_a_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match="line 14: another run begins"):
        read_content(tmp_path / "file", content_of(HISTORY) * 2)


@pytest.mark.parametrize("name", [HISTORY, FULL])
def test_an_incomplete_last_row_is_ignored(tmp_path: Path, name: str) -> None:
    result = read_content(tmp_path / "file", content_of(name)[:-40])
    assert result.notes[0] == "the last line is incomplete and is ignored"


@pytest.mark.parametrize("name", [HISTORY, FULL])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(15))
@given(data=st.data())
def test_a_damaged_history_is_an_error_or_sound(tmp_path: Path, name: str, data: st.DataObject) -> None:
    try:
        result = read_content(tmp_path / "file", data.draw(damaged(content_of(name))))
    except ClientFormatError:
        return
    require_sound(result)
