"""Reports in JSON that are written otherwise, or in which something is wrong."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collector.garbling import check_all, check_sound, check_told, renumbered
from tests.collector.nodetool.reported import SOUND, Capture

JSONS = [capture for capture in SOUND if capture.is_json]

captures = st.sampled_from(JSONS)
randoms = st.integers(0, 2**32).map(Random)
places = st.floats(0, 1, exclude_max=True)
others = st.sampled_from(
    (None, True, "", "NaN", "0,064", "1.234.567", [], {}, [1], {"a": 1}, -1, 1e300, 2**70, "12 ms")
)


def shuffled(value: Any, random: Random) -> Any:
    if not isinstance(value, dict):
        return value
    pairs = [(key, shuffled(each, random)) for key, each in value.items()]
    random.shuffle(pairs)
    return dict(pairs)


def holders(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Return every place where a value stands, those of objects too."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield value, key
            yield from holders(each)


def pretty(capture: Capture) -> list[str]:
    return json.dumps(json.loads(capture.text), indent=2).splitlines(keepends=True)


@given(captures, randoms, st.sampled_from((None, 0, 1, 2, "\t")))
def test_keys_in_another_order_and_other_blanks(capture: Capture, random: Random, indent: int | str | None) -> None:
    report = capture.parse(json.dumps(shuffled(json.loads(capture.text), random), indent=indent))
    check_all(capture, report)
    assert report.problems == ()


@given(captures, st.lists(places, min_size=1, max_size=3))
def test_lines_lost(capture: Capture, lost: list[float]) -> None:
    lines = pretty(capture)
    gone = {int(place * len(lines)) for place in lost}
    report = capture.parse("".join(line for number, line in enumerate(lines) if number not in gone))
    check_sound(capture, report)
    if capture.command != "tpstats":
        check_told(capture, report)


@given(captures, places, randoms)
def test_a_line_that_stands_twice(capture: Capture, which: float, random: Random) -> None:
    lines = pretty(capture)
    number = int(which * len(lines))
    lines.insert(number, renumbered(lines[number], random))
    check_told(capture, capture.parse("".join(lines)))


@given(captures, places, others)
def test_a_value_that_is_something_else(capture: Capture, which: float, other: Any) -> None:
    report = json.loads(capture.text)
    places = list(holders(report))
    holder, key = places[int(which * len(places))]
    holder[key] = other
    found = capture.parse(json.dumps(report))
    check_sound(capture, found)
    # By these nodetool itself says that it does not know, or that there is nothing.
    if other not in (None, "NaN", -1, {}):
        check_told(capture, found)


@pytest.mark.parametrize("capture", JSONS, ids=str)
def test_two_reports_are_none(capture: Capture) -> None:
    report = capture.parse(f"{capture.text}\n{capture.text}")
    assert report.values == {}
    assert report.problems


@pytest.mark.parametrize("capture", JSONS, ids=str)
def test_a_log_in_json_around(capture: Capture) -> None:
    log = '{"level": "WARN", "message": {"count": 3}}\n'
    check_all(capture, capture.parse(log + capture.text + "\n" + log))


@pytest.mark.parametrize("capture", JSONS, ids=str)
def test_a_report_without_its_last_line_end(capture: Capture) -> None:
    report = capture.parse(capture.text.rstrip())
    check_all(capture, report)
    assert report.problems == ()
