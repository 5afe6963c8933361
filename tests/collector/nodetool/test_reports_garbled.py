"""Reports that are cut, mixed with other lines or printed in another way: never another number than the true one."""

import re
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.collector.garbling import (
    COULD_BE_WHOLE,
    FIXED,
    NOISE,
    check_all,
    check_sound,
    check_told,
    digits,
    localised,
    renumbered,
    reordered,
    respaced,
)
from tests.collector.nodetool.reported import SOUND, STDERR, Capture

TEXTS = [capture for capture in SOUND if not capture.is_json]
# Of each command and version one, for what is tried at every place of it.
SHORT = [capture for capture in TEXTS if len(capture.text) < 1600]

captures = st.sampled_from(SOUND)
texts = st.sampled_from(TEXTS)
randoms = st.integers(0, 2**32).map(Random)
places = st.floats(0, 1, exclude_max=True)


def check_cut(capture: Capture, cut: str) -> None:
    report = capture.parse(cut)
    check_sound(capture, report)
    could_be_whole = COULD_BE_WHOLE.get(capture.command)
    if capture.is_json or not (cut.endswith("\n") and could_be_whole and could_be_whole.fullmatch(cut)):
        check_told(capture, report)


@given(captures, places)
def test_a_report_cut_short_anywhere(capture: Capture, place: float) -> None:
    check_cut(capture, capture.text[: round(place * len(capture.text))])


@given(texts, places)
def test_a_report_cut_short_behind_a_line(capture: Capture, place: float) -> None:
    lines = capture.text.splitlines(keepends=True)
    check_cut(capture, "".join(lines[: round(place * len(lines))]))


@given(texts, places)
def test_a_report_whose_beginning_is_lost(capture: Capture, place: float) -> None:
    lines = capture.text.splitlines(keepends=True)
    check_sound(capture, capture.parse("".join(lines[round(place * len(lines)) :])))


@given(texts, randoms)
def test_lines_in_another_order(capture: Capture, random: Random) -> None:
    report = capture.parse(reordered(capture, random))
    check_all(capture, report)
    assert sorted(report.problems) == sorted(capture.whole.problems)


@given(texts, st.lists(places, min_size=1, max_size=3))
def test_lines_lost(capture: Capture, lost: list[float]) -> None:
    lines = capture.text.splitlines(keepends=True)
    gone = {round(place * (len(lines) - 1)) for place in lost}
    if capture.command == "status":
        # A node's row is no one's to miss: only what stands around is lost.
        gone = {number for number in gone if re.match(FIXED["status"], lines[number])}
    # A node may have no chunk cache.
    gone = {number for number in gone if not lines[number].startswith("Chunk Cache")}
    report = capture.parse("".join(line for number, line in enumerate(lines) if number not in gone))
    check_sound(capture, report)
    if capture.command not in ("tpstats", "compactionstats"):
        # Neither would pools, messages and compactions be missed.
        check_told(capture, report)


@given(texts, st.lists(st.tuples(places, st.sampled_from(("", "  ", *NOISE))), min_size=1, max_size=4))
def test_other_lines_between(capture: Capture, noise: list[tuple[float, str]]) -> None:
    lines = capture.text.splitlines(keepends=True)
    for place, line in noise:
        lines.insert(round(place * len(lines)), f"{line}\n")
    check_told(capture, capture.parse("".join(lines)))


@given(texts, places, places, st.booleans(), randoms)
def test_a_line_that_stands_twice(capture: Capture, which: float, where: float, other: bool, random: Random) -> None:
    lines = capture.text.splitlines(keepends=True)
    line = lines[int(which * len(lines))]
    # Another heading, and another node, would be believed.
    assume(not re.match(FIXED[capture.command], line))
    assume(capture.command != "status" or not other)
    lines.insert(int(where * len(lines)), renumbered(line, random) if other else line)
    check_told(capture, capture.parse("".join(lines)))


@given(texts, st.lists(st.sampled_from(("", *NOISE)), max_size=4), st.lists(st.sampled_from(("", *NOISE)), max_size=4))
def test_other_lines_around(capture: Capture, before: list[str], after: list[str]) -> None:
    text = "".join(f"{line}\n" for line in before) + capture.text
    check_all(capture, capture.parse(text))
    check_told(capture, capture.parse(text + "".join(f"{line}\n" for line in after)))


@pytest.mark.parametrize("capture", SOUND, ids=str)
def test_a_stack_trace_around(capture: Capture) -> None:
    report = capture.parse(f"\n{STDERR}\n{capture.text}\n{STDERR}")
    check_all(capture, report)


@given(texts, randoms)
def test_other_spacing(capture: Capture, random: Random) -> None:
    check_told(capture, capture.parse(respaced(capture.text, random)))


@given(captures, st.sampled_from((",", ".", "\u066b")), st.sampled_from(("", ".", ",", "'", " ", "\u00a0", "\u202f")))
def test_numbers_of_another_language(capture: Capture, point: str, group: str) -> None:
    assume(point != group)
    check_told(capture, capture.parse(localised(capture.text, point, group)))


@given(captures)
def test_digits_of_another_language(capture: Capture) -> None:
    check_told(capture, capture.parse(digits(capture.text)))


@given(captures)
def test_line_ends_of_another_system(capture: Capture) -> None:
    check_all(capture, capture.parse(capture.text.replace("\n", "\r\n")))


@given(captures, st.lists(st.tuples(places, st.integers(0, 30), st.text(max_size=8)), min_size=1, max_size=5))
def test_what_is_garbled_raises_nothing(capture: Capture, changes: list[tuple[float, int, str]]) -> None:
    text = capture.text
    for place, length, new in changes:
        start = round(place * len(text))
        text = text[:start] + new + text[start + length :]
    for series, value in capture.parse(text).values.items():
        assert isinstance(value, int | float | str)
        assert all(isinstance(part, str) for part in series)


@pytest.mark.parametrize("capture", SHORT, ids=str)
def test_short_reports_cut_behind_every_line(capture: Capture) -> None:
    lines = capture.text.splitlines(keepends=True)
    for number in range(len(lines)):
        check_cut(capture, "".join(lines[:number]))
