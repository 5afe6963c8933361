"""JSON reports in a different format, or with malformed values."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.collector.garbling import check_all, check_reported, check_sound, renumbered
from tests.collector.node.nodetool.reported import SOUND, Capture
from tests.every import every

JSONS = [capture for capture in SOUND if capture.is_json]

captures = st.sampled_from(JSONS)
randoms = st.integers(0, 2**32).map(Random)
positions = st.floats(0, 1, exclude_max=True)
others = st.sampled_from(
    (None, True, "", "NaN", "0,064", "1.234.567", [], {}, [1], {"a": 1}, -1, 1e300, 2**70, "12 ms")
)


def shuffled(value: Any, random: Random) -> Any:
    if not isinstance(value, dict):
        return value
    pairs = [(key, shuffled(member, random)) for key, member in value.items()]
    random.shuffle(pairs)
    return dict(pairs)


def members_of(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every member of an object and of the objects nested in it, as a pair of object and key."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield value, key
            yield from members_of(member)


def pretty(capture: Capture) -> list[str]:
    return json.dumps(json.loads(capture.text), indent=2).splitlines(keepends=True)


@given(captures, randoms, st.sampled_from((None, 0, 1, 2, "\t")))
def test_the_order_of_keys_and_the_spacing_do_not_matter(
    capture: Capture, random: Random, indent: int | str | None
) -> None:
    report = capture.parse(json.dumps(shuffled(json.loads(capture.text), random), indent=indent))
    check_all(capture, report)
    assert report.problems == ()


@given(captures, st.lists(positions, min_size=1, max_size=3))
def test_missing_lines_give_no_wrong_value(capture: Capture, lost: list[float]) -> None:
    lines = pretty(capture)
    gone = {int(position * len(lines)) for position in lost}
    report = capture.parse("".join(line for number, line in enumerate(lines) if number not in gone))
    check_sound(capture, report)
    if capture.command != "tpstats":
        check_reported(capture, report)


@given(captures, positions, randoms)
def test_a_repeated_line_gives_no_wrong_value(capture: Capture, share: float, random: Random) -> None:
    lines = pretty(capture)
    number = int(share * len(lines))
    lines.insert(number, renumbered(lines[number], random))
    check_reported(capture, capture.parse("".join(lines)))


@given(captures, positions, others)
def test_a_malformed_value_gives_no_wrong_value(capture: Capture, share: float, other: Any) -> None:
    content = json.loads(capture.text)
    members = list(members_of(content))
    holder, key = members[int(share * len(members))]
    holder[key] = other
    report = capture.parse(json.dumps(content))
    check_sound(capture, report)
    # nodetool itself prints these values when the real value is unknown or empty.
    if other not in (None, "NaN", -1, {}):
        check_reported(capture, report)


@every("capture", JSONS)
def test_two_reports_in_one_output_give_no_values(capture: Capture) -> None:
    report = capture.parse(f"{capture.text}\n{capture.text}")
    assert report.values == {}
    assert report.problems


@every("capture", JSONS)
def test_json_logs_around_a_report_are_ignored(capture: Capture) -> None:
    log = '{"level": "WARN", "message": {"count": 3}}\n'
    check_all(capture, capture.parse(log + capture.text + "\n" + log))


@every("capture", JSONS)
def test_a_report_without_a_final_newline_is_complete(capture: Capture) -> None:
    report = capture.parse(capture.text.rstrip())
    check_all(capture, report)
    assert report.problems == ()
