"""A user names a file's format, and states what the file does not; an import notes what the file contradicts."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, FormatChoice
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation, StatedTotals
from collector.load_results.format_registry import choice_of
from collector.load_results.result_checks import doubts
from tests.every import every


@every(
    ("text", "format_name", "options", "path"),
    [
        ("results.hdr", "", {}, "results.hdr"),
        ("hdr-log:results.hdr", "hdr-log", {}, "results.hdr"),
        ("hdr-log,unit=us:/a:b.hdr", "hdr-log", {"unit": "us"}, "/a:b.hdr"),
        ("other,unit=us:results.hdr", "", {}, "other,unit=us:results.hdr"),
        ("hdr-log,unit=us", "", {}, "hdr-log,unit=us"),
    ],
)
def test_a_choice_has_a_format_options_and_a_file(
    text: str, format_name: str, options: dict[str, str], path: str
) -> None:
    assert choice_of(text) == (FormatChoice(format_name, options), Path(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hdr-log,unit=weeks:f", r"invalid value of unit: 'weeks' \(one of ns, us, ms\)"),
        ("hdr-log,unit:f", "invalid value of unit: ''"),
        ("hdr-log,colour=red:f", r"unknown option 'colour' \(options: unit"),
        ("wrk,unit=us:f", r"unknown option 'unit' \(it has no options\)"),
    ],
)
def test_an_option_that_the_format_does_not_accept_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ClientFormatError, match=message):
        choice_of(text)


INTERVALS = (
    ClientInterval(100.0, 110.0, 900, {"timeout": 10}, service=Latency({2_000_000: 900})),
    ClientInterval(110.0, 120.0, 1100, service=Latency({2_000_000: 1100})),
)
RESULT = ClientResult("csv", "tool", "file", (Operation("read", INTERVALS), Operation("write", INTERVALS[1:])))


@every(
    ("stated", "note"),
    [
        (StatedTotals(completed=3100, failed=10, attempted=3110, attempted_per_s=155.4, length_s=20.4), ""),
        (StatedTotals("read", completed=2000, failed=10), ""),
        (StatedTotals("read", completed=2001), "2,001 completed operations, but has 2,000 of read"),
        (StatedTotals("write", failed=40), "40 failed operations, but has 0 of write"),
        (StatedTotals(attempted=3109), "3,109 operations, but has 3,110"),
        (StatedTotals(attempted_per_s=200.0), "200 operations/s, but has 156/s"),
        (StatedTotals(length_s=60.0), "a duration of 60 s, but has 20 s"),
    ],
)
def test_a_contradiction_of_stated_totals_is_noted(stated: StatedTotals, note: str) -> None:
    notes = doubts(replace(RESULT, stated=(stated,)))
    assert [text.startswith("the file states ") for text in notes] == [True] * bool(note)
    assert note in "".join(notes)


def test_an_operations_stated_total_must_match_its_intervals() -> None:
    total = ClientInterval(100.0, 120.0, 2000, {"timeout": 40})
    (note,) = doubts(replace(RESULT, operations=(Operation("read", INTERVALS, total),)))
    assert note == "the file states 40 failed operations, but has 10 of read"


@pytest.mark.parametrize(
    ("value_ns", "note"),
    [
        (9_999, "a median latency of 10 µs is unlikely"),
        (10_000, ""),
        (20_900_000_000, ""),
        (2_000_000_000_000, "a latency of 2,000.0 s exceeds the result's length of 20.0 s"),
    ],
)
def test_latencies_that_are_probably_in_another_unit_are_noted(value_ns: int, note: str) -> None:
    intervals = (replace(INTERVALS[0], service=Latency({value_ns: 900})), INTERVALS[1])
    notes = doubts(replace(RESULT, operations=(Operation("read", intervals[:1]), Operation("write", intervals[1:]))))
    assert [text.startswith("warning: ") for text in notes] == [True] * bool(note)
    assert note in "".join(notes)
