"""Parsing of durations and times."""

from collections.abc import Iterator
from datetime import datetime

import click
import pytest

from cli.main import main
from cli.parameters.parameter_types import Duration, Moment, TimeOfDay, bounds
from tests.collector.zones import CENTRAL_EUROPE, local_zone


@pytest.fixture(autouse=True)
def _central_europe() -> Iterator[None]:
    with local_zone("CET-1"):
        yield


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("60s", 60), ("1m", 60), ("1.5h", 5400), ("500ms", 0.5), ("2d", 172800), (".5", 0.5), ("1e", None)]
    + [(text, None) for text in ("", "s", "1 m", "-1", "1e3", "nan", "inf", "1m30s", "\u0661s", "9" * 40)],
)
def test_a_duration_is_a_number_with_or_without_a_unit(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(click.BadParameter, match=r"is not a valid duration \(hint: use 30, 30s, 5m or"):
            Duration().convert(text, None, None)
    else:
        assert Duration().convert(text, None, None) == seconds


def test_a_duration_out_of_range_is_rejected_with_the_range() -> None:
    with pytest.raises(click.BadParameter, match=r"'2h' is out of range: must be between 0.1 s and 3600 s"):
        Duration(0.1, 3600).convert("2h", None, None)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10:47", TimeOfDay(10, 47, 0)),
        ("9:05:30", TimeOfDay(9, 5, 30)),
        ("1795316538", 1795316538.0),
        ("1795316538.25", 1795316538.25),
        ("2026-11-22T04:02:18", 1795316538.0),
        ("2026-11-22 04:02:18", 1795316538.0),
        ("2026-11-22T03:02:18Z", 1795316538.0),
        ("2026-11-22T05:02:18+02:00", 1795316538.0),
        *((text, None) for text in ("24:00", "10:60", "10:4", "nan", "yesterday", "", "2026-13-01", "10:47:61")),
    ],
)
def test_a_time_is_a_time_of_day_an_iso_date_or_epoch_seconds(text: str, moment: float | TimeOfDay | None) -> None:
    if moment is None:
        with pytest.raises(click.BadParameter, match=r"is not a valid time \(hint: use 10:47, "):
            Moment().convert(text, None, None)
    else:
        assert Moment().convert(text, None, None) == moment


@pytest.mark.parametrize(
    ("begin", "end", "time_of_day", "expected"),
    [
        ("21T10:30", "21T11:30", "10:47", "21T10:47"),
        ("21T10:50", "21T11:30", "10:47", "21T10:47"),
        ("21T10:30", "21T10:40", "11:00", "21T11:00"),
        ("21T23:30", "22T00:30", "00:10", "22T00:10"),
        ("21T10:00", "22T06:00", "23:00", "21T23:00"),
        ("21T10:00", "25T06:00", "11:00", "21T11:00"),
        ("21T10:47", "21T10:47", "10:47", "21T10:47"),
    ],
)
def test_a_time_of_day_is_its_first_occurrence_in_the_recording(
    begin: str, end: str, time_of_day: str, expected: str
) -> None:
    begin_s, end_s, expected_s = (
        datetime.fromisoformat(f"2026-11-{text}").timestamp() for text in (begin, end, expected)
    )
    moment = Moment().convert(time_of_day, None, None)
    assert bounds(moment, None, begin_s, end_s) == (expected_s, float("inf"))
    assert bounds(None, moment, begin_s, end_s) == (float("-inf"), expected_s)


def test_a_time_of_day_respects_daylight_saving_time() -> None:
    begin_s = datetime.fromisoformat("2026-10-24T22:00+02:00").timestamp()
    expected_s = datetime.fromisoformat("2026-10-25T10:00+01:00").timestamp()
    with local_zone(CENTRAL_EUROPE):
        assert TimeOfDay(10, 0, 0).within(begin_s, begin_s + 86400) == expected_s


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("docter", "unknown command 'docter' (hint: did you mean 'doctor'?)"),
        ("jurnal", "unknown command 'jurnal' (hint: did you mean 'journal'?)"),
        ("zzzzzz", "unknown command 'zzzzzz' (hint: run 'casstat --help' for a list)"),
        ("a\x1b[2J", r"unknown command 'a?[2J' (hint: run 'casstat --help' for a list)"),
    ],
)
def test_a_misspelt_command_gets_a_suggestion(word: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "--whatever", "x"]) == 2
    assert capsys.readouterr().err == f"Error: {hint}\n"
