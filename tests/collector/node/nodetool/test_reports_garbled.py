"""Reports that are truncated, mixed with other lines or formatted differently never give wrong values."""

import re
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.collector.garbling import (
    FIXED,
    LOOKS_COMPLETE,
    NOISE,
    check_all,
    check_reported,
    check_sound,
    digits,
    localised,
    renumbered,
    reordered,
    respaced,
)
from tests.collector.node.nodetool.reported import SOUND, STDERR, Capture
from tests.every import every

TEXTS = [capture for capture in SOUND if not capture.is_json]
# Reports short enough to test truncation after each line.
SHORT = [capture for capture in TEXTS if len(capture.text) < 1600]

captures = st.sampled_from(SOUND)
texts = st.sampled_from(TEXTS)
randoms = st.integers(0, 2**32).map(Random)
positions = st.floats(0, 1, exclude_max=True)


def check_cut(capture: Capture, cut: str) -> None:
    report = capture.parse(cut)
    check_sound(capture, report)
    looks_complete = LOOKS_COMPLETE.get(capture.command)
    if capture.is_json or not (cut.endswith("\n") and looks_complete and looks_complete.fullmatch(cut)):
        check_reported(capture, report)


@given(captures, positions)
def test_a_truncated_report_gives_no_wrong_value(capture: Capture, position: float) -> None:
    check_cut(capture, capture.text[: round(position * len(capture.text))])


@given(texts, positions)
def test_a_report_truncated_after_a_line_gives_no_wrong_value(capture: Capture, position: float) -> None:
    lines = capture.text.splitlines(keepends=True)
    check_cut(capture, "".join(lines[: round(position * len(lines))]))


@given(texts, positions)
def test_a_report_without_its_beginning_gives_no_wrong_value(capture: Capture, position: float) -> None:
    lines = capture.text.splitlines(keepends=True)
    check_sound(capture, capture.parse("".join(lines[round(position * len(lines)) :])))


@given(texts, randoms)
def test_the_order_of_lines_does_not_matter(capture: Capture, random: Random) -> None:
    report = capture.parse(reordered(capture, random))
    check_all(capture, report)
    assert sorted(report.problems) == sorted(capture.original.problems)


@given(texts, st.lists(positions, min_size=1, max_size=3))
def test_missing_lines_give_no_wrong_value(capture: Capture, lost: list[float]) -> None:
    lines = capture.text.splitlines(keepends=True)
    gone = {round(position * (len(lines) - 1)) for position in lost}
    if capture.command == "status":
        # A missing node row cannot be detected, so only other lines are removed.
        gone = {number for number in gone if re.match(FIXED["status"], lines[number])}
    # A missing chunk cache line cannot be detected either, because a node may have no chunk cache.
    gone = {number for number in gone if not lines[number].startswith("Chunk Cache")}
    report = capture.parse("".join(line for number, line in enumerate(lines) if number not in gone))
    check_sound(capture, report)
    # The number of pools, messages and compactions varies, so missing ones cannot be detected.
    if capture.command not in ("tpstats", "compactionstats"):
        check_reported(capture, report)


@given(texts, st.lists(st.tuples(positions, st.sampled_from(("", "  ", *NOISE))), min_size=1, max_size=4))
def test_inserted_lines_give_no_wrong_value(capture: Capture, noise: list[tuple[float, str]]) -> None:
    lines = capture.text.splitlines(keepends=True)
    for position, line in noise:
        lines.insert(round(position * len(lines)), f"{line}\n")
    check_reported(capture, capture.parse("".join(lines)))


@given(texts, positions, positions, st.booleans(), randoms)
def test_a_repeated_line_gives_no_wrong_value(
    capture: Capture, source: float, target: float, changed: bool, random: Random
) -> None:
    lines = capture.text.splitlines(keepends=True)
    line = lines[int(source * len(lines))]
    # A repeated heading or an additional node would look valid.
    assume(not re.match(FIXED[capture.command], line))
    assume(capture.command != "status" or not changed)
    lines.insert(int(target * len(lines)), renumbered(line, random) if changed else line)
    check_reported(capture, capture.parse("".join(lines)))


@given(texts, st.lists(st.sampled_from(("", *NOISE)), max_size=4), st.lists(st.sampled_from(("", *NOISE)), max_size=4))
def test_lines_before_a_report_are_ignored_and_lines_after_it_are_reported(
    capture: Capture, before: list[str], after: list[str]
) -> None:
    text = "".join(f"{line}\n" for line in before) + capture.text
    check_all(capture, capture.parse(text))
    check_reported(capture, capture.parse(text + "".join(f"{line}\n" for line in after)))


@every("capture", SOUND)
def test_stack_traces_around_a_report_are_ignored(capture: Capture) -> None:
    report = capture.parse(f"\n{STDERR}\n{capture.text}\n{STDERR}")
    check_all(capture, report)


@given(texts, randoms)
def test_different_spacing_gives_no_wrong_value(capture: Capture, random: Random) -> None:
    check_reported(capture, capture.parse(respaced(capture.text, random)))


@given(captures, st.sampled_from((",", ".", "\u066b")), st.sampled_from(("", ".", ",", "'", " ", "\u00a0", "\u202f")))
def test_numbers_formatted_for_another_locale_give_no_wrong_value(capture: Capture, point: str, group: str) -> None:
    assume(point != group)
    check_reported(capture, capture.parse(localised(capture.text, point, group)))


@given(captures)
def test_digits_in_another_script_give_no_wrong_value(capture: Capture) -> None:
    check_reported(capture, capture.parse(digits(capture.text)))


@given(captures)
def test_crlf_line_endings_are_accepted(capture: Capture) -> None:
    check_all(capture, capture.parse(capture.text.replace("\n", "\r\n")))


@given(captures, st.lists(st.tuples(positions, st.integers(0, 30), st.text(max_size=8)), min_size=1, max_size=5))
def test_garbled_text_raises_no_error(capture: Capture, changes: list[tuple[float, int, str]]) -> None:
    text = capture.text
    for position, length, new in changes:
        start = round(position * len(text))
        text = text[:start] + new + text[start + length :]
    for series, value in capture.parse(text).values.items():
        assert isinstance(value, int | float | str)
        assert all(isinstance(part, str) for part in series)


@every("capture", SHORT)
def test_a_short_report_truncated_after_any_line_gives_no_wrong_value(capture: Capture) -> None:
    lines = capture.text.splitlines(keepends=True)
    for number in range(len(lines)):
        check_cut(capture, "".join(lines[:number]))


@every("capture", SHORT)
def test_a_report_with_very_long_lines_is_read_in_linear_time(capture: Capture) -> None:
    # In quadratic time, it would take a quarter of an hour.
    capture.parse("\n".join(f"{line}{' ' * 50_000}x" for line in capture.text.splitlines()))
