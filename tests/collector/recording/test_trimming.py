"""A trimmed file contains the ticks of its time range, unchanged, and is complete."""

import json
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick
from collector.recording import frames, header, writer
from collector.recording.frames import MAGIC, Damage, frame_range, last_footer, sealed
from collector.recording.header import SLOWEST_S, Header, look_back_s
from collector.recording.reader import Entry, Integrity, TickOrder, entries, read, read_lines
from collector.recording.trimming import Extent, TickSpan, extent_of, trimmed
from collector.recording.writer import Journal, Limits
from tests.examples import examples

BEGIN_S = 1_795_000_000.0
HEAD = Header("1.0", 1.0, "one", sources=("node",), metrics=(Metric("a_total", Kind.COUNTER, "1", ""),))


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 3)
    monkeypatch.setattr(frames, "FULL_EVERY", 3)


def recorded(folder: Path, times_s: list[float]) -> Path:
    """Record ticks at these times, in seconds after the beginning, and return the file."""
    journal = Journal(folder, lambda: HEAD, Limits(sync="never", file_s=1e9), print)
    for number, time_s in enumerate(times_s):
        scrape = Scrape("node", 5.0 + number, {("a_total",): 7 * number})
        journal.append(Snapshot("n1", Tick(BEGIN_S + time_s), (scrape,)))
    journal.close()
    (file,) = writer.files_of(folder)
    return file


def cut(file: Path, from_s: float, to_s: float, *, growing: bool = False, is_last: bool = False) -> tuple[Path, Extent]:
    """Write a trimmed copy of the file to a new directory; return the copy's path and its extent."""
    extent = extent_of(file, BEGIN_S + from_s, BEGIN_S + to_s, growing=growing, is_last=is_last)
    to = file.parent / "trimmed" / file.name
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(b"".join(trimmed(file, extent)))
    return to, extent


def part_of(file: Path, from_s: float, to_s: float) -> Path:
    """Write the frames of the file that may have ticks in a time range to a new file, and return its path."""
    with file.open("rb") as whole:
        first, last = frame_range(
            whole.fileno(), file.stat().st_size, BEGIN_S + from_s - look_back_s(HEAD.interval_s), BEGIN_S + to_s
        )
        whole.seek(first)
        content = whole.read(last - first)
    part = file.parent / "part" / file.name
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(content)
    return part


def require_same_from_part(file: Path, from_s: float, to_s: float) -> None:
    """Check that trimming only the frames that may have ticks in a time range has the same result."""
    of_whole, whole = cut(file, from_s, to_s)
    of_part, part = cut(part_of(file, from_s, to_s), from_s, to_s)
    assert of_part.read_bytes() == of_whole.read_bytes()
    assert (part.span, part.damaged) == (whole.span, whole.damaged)


def integrity(file: Path) -> Integrity:
    order = TickOrder()
    damaged = sum(isinstance(record, Damage) for record in order.filtered(read(file)))
    return order.integrity(damaged)


def ticks(file: Path) -> dict[int, Snapshot]:
    return {entry.number: entry.snapshot for entry in entries(read(file))}


# The times between ticks; -90 s means that the clock was set back.
STEPS = st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0, 60.0, -90.0]), min_size=1, max_size=30)


@given(STEPS, st.integers(-100, 400), st.integers(0, 300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_trimmed_file_is_complete_and_has_every_tick_in_the_range(
    tmp_path_factory: pytest.TempPathFactory, steps: list[float], from_s: float, length_s: float
) -> None:
    times_s = [time_s + 1000 for time_s in accumulate(steps)]
    from_s += 1000
    file = recorded(tmp_path_factory.mktemp("node"), times_s)
    to, extent = cut(file, from_s, from_s + length_s)
    span = extent.span
    before, after = ticks(file), ticks(to)
    wanted = {number for number, time_s in enumerate(times_s) if from_s <= time_s <= from_s + length_s}
    assert span.ticks == len(wanted)
    assert after.items() <= before.items()
    assert wanted <= after.keys()
    assert (integrity(to), extent.damaged) == (Integrity(), 0)
    if after:
        assert from_s - SLOWEST_S <= times_s[max(after)] <= from_s + length_s
    if wanted:
        assert span.begin_s == BEGIN_S + min(times_s[number] for number in wanted)


# The time after each tick of a frame. A part of a file is found by the times at which frames begin, so the clock may be
# changed, or ticks may be missed, only once in a frame.
CHANGES_S = st.sampled_from([1.0, 1.0, 2.0, 60.0, 4000.0, -0.5, -2.0, -90.0, -4000.0])
FRAME_STEPS = st.tuples(st.permutations([0, 1, 1]), CHANGES_S).map(
    lambda frame: [1.0 if is_second else frame[1] for is_second in frame[0]]
)


@given(st.lists(FRAME_STEPS, min_size=1, max_size=9), st.sampled_from([-1.0, 0.0, 2.0]), st.sampled_from([0.0, 100.0]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(20), deadline=None)
def test_the_frames_that_may_have_ticks_of_a_range_are_sufficient(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    frames: list[list[float]],
    begin_s: float,
    length_s: float,
) -> None:
    # In a real journal, a frame spans more time than is kept before a range.
    monkeypatch.setattr(header, "SLOWEST_S", 0.0)
    times_s = [100_000 + time_s for time_s in accumulate([0.0, *chain.from_iterable(frames)])]
    file = recorded(tmp_path_factory.mktemp("node"), times_s)
    for time_s in times_s:
        require_same_from_part(file, time_s + begin_s, time_s + begin_s + length_s)


@pytest.mark.parametrize("frames", [slice(1, 3), slice(5, 7), slice(9, 11), slice(1, 2), slice(10, 11), slice(4, 5)])
def test_damage_is_the_same_in_the_frames_that_may_have_ticks_of_a_range(tmp_path: Path, frames: slice) -> None:
    file = recorded(tmp_path, [100.0 * number for number in range(30)])
    damage(file, frames)
    for range_s in ((0, 3000), (0, 900), (-200, 0), (1350, 1400), (2000, 2300), (1000, 2300), (2900, 9999)):
        require_same_from_part(file, *range_s)


def test_a_part_is_little_larger_than_the_time_range(tmp_path: Path) -> None:
    file = recorded(tmp_path, [float(second) for second in range(1000)])
    part = part_of(file, 700, 702)
    assert part.stat().st_size < file.stat().st_size * (SLOWEST_S + 30) / 1000


def test_the_part_of_a_file_without_readable_times_is_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "20231114T221320.jsonl.zst"
    for content in (b"", b"not a journal", zstandard.compress(Path(__file__).with_name("format_1.jsonl").read_bytes())):
        file.write_bytes(content)
        assert part_of(file, 0, 10).read_bytes() == content


def test_rates_are_known_from_the_first_tick_of_the_range_on(tmp_path: Path) -> None:
    to, _ = cut(recorded(tmp_path, [float(second) for second in range(300)]), 250, 260)
    assert min(ticks(to)) == pytest.approx(250 - SLOWEST_S, abs=3)


def test_a_range_without_ticks_yields_nothing(tmp_path: Path) -> None:
    to, extent = cut(recorded(tmp_path, [1.0, 2.0, 3.0]), 200, 220)
    assert to.read_bytes() == b""
    assert extent.span == TickSpan()


def test_ticks_shortly_before_the_range_are_kept_but_do_not_count(tmp_path: Path) -> None:
    to, extent = cut(recorded(tmp_path, [1.0, 2.0, 3.0]), 10, 20)
    assert len(ticks(to)) == 3
    assert extent.span == TickSpan()


def test_two_intervals_before_the_range_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "HEAD", replace(HEAD, interval_s=1000.0))
    to, _ = cut(recorded(tmp_path, [1000.0 * number for number in range(12)]), 9500, 9500)
    assert min(ticks(to)) == 6


def damage(file: Path, frames: slice) -> None:
    """Overwrite the ends of these frames; frames are numbered from 1."""
    parts = file.read_bytes().split(MAGIC)
    parts[frames] = [part[:12] + bytes(len(part) - 12) for part in parts[frames]]
    file.write_bytes(MAGIC.join(parts))


@pytest.mark.parametrize("frames", [slice(1, 3), slice(5, 7), slice(9, 11), slice(1, 2), slice(10, 11)])
def test_damage_anywhere_is_counted_and_its_ticks_remain_lost(tmp_path: Path, frames: slice) -> None:
    file = recorded(tmp_path, [float(second) for second in range(30)])
    damage(file, frames)
    lost = integrity(file).lost
    assert lost == 3 * (frames.stop - frames.start)
    for range_s in ((0, 100), (0, 29), (-200, 1000)):
        to, extent = cut(file, *range_s)
        assert integrity(to) == Integrity(lost=lost)
        assert extent.damaged == 1
        assert extent.span.ticks == 30 - lost


def test_damage_next_to_the_kept_frames_remains_visible(tmp_path: Path) -> None:
    file = recorded(tmp_path, [100.0 * number for number in range(30)])
    # Ticks 9 to 11 and 15 to 17.
    damage(file, slice(4, 5))
    damage(file, slice(6, 7))
    to, extent = cut(file, 1350, 1400)
    assert ticks(to).keys() == {12, 13, 14}
    assert extent.damaged == 2
    assert integrity(to) == Integrity(lost=6)


def test_damage_far_from_the_range_does_not_count(tmp_path: Path) -> None:
    file = recorded(tmp_path, [100.0 * number for number in range(30)])
    # Ticks 9 to 11.
    damage(file, slice(4, 5))
    for range_s, damaged in (((2000, 2300), 0), ((1000, 2300), 1), ((0, 300), 0), ((0, 800), 1)):
        assert cut(file, *range_s)[1].damaged == damaged


def test_the_footer_announces_more_ticks_only_if_the_range_continues_in_the_next_file(tmp_path: Path) -> None:
    limits = Limits(sync="never", file_s=15.0)
    journal = Journal(tmp_path, lambda: HEAD, limits, print)
    for number in range(30):
        scrape = Scrape("node", 5.0 + number, {("a_total",): number})
        journal.append(Snapshot("n1", Tick(BEGIN_S + number), (scrape,)))
    journal.close()
    first, second = writer.files_of(tmp_path)
    for to_s, more in ((40, True), (15, True), (14.5, False), (13, False)):
        to, _ = cut(first, 0, to_s)
        footer = last_footer(to)
        assert footer is not None
        assert footer.more is more
    # No later file has a tick in the range, for example because the node was suspended.
    to, _ = cut(first, 0, 40, is_last=True)
    footer = last_footer(to)
    assert footer is not None
    assert not footer.more
    to, _ = cut(second, 0, 40)
    assert integrity(to) == Integrity()
    assert min(ticks(to)) == 15


def test_memory_does_not_depend_on_the_size_of_the_file(tmp_path: Path) -> None:
    file = recorded(tmp_path, [float(second) for second in range(150)])
    # The second time, the file contains the same ticks eight times over.
    content = file.read_bytes()
    peaks = []
    for copies in (1, 8):
        file.write_bytes(content * copies)
        tracemalloc.start()
        extent = extent_of(file, BEGIN_S, BEGIN_S + 149)
        for _ in trimmed(file, extent):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 250_000


MALFORMED_HEADS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a number": lambda _: 1,
    "no file": lambda _: {"format": 2},
    "an infinite interval": lambda head: {**head, "interval_s": 10**400},
    "an infinite number": lambda head: {**head, "first": 10**400},
    "a session that is a number": lambda head: {**head, "session": 1},
}


@pytest.mark.parametrize("kind", MALFORMED_HEADS)
def test_a_malformed_header_is_damage(tmp_path: Path, kind: str) -> None:
    file = recorded(tmp_path, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    frame = file.read_bytes().split(MAGIC)[1]
    line = next(line for line in read_lines(file) if isinstance(line, bytes))
    content = json.loads(line)
    broken = sealed({**content, "head": MALFORMED_HEADS[kind](content["head"])})
    file.write_bytes(zstandard.compress(broken) + file.read_bytes()[len(MAGIC + frame) :])
    to, extent = cut(file, 0, 10)
    assert extent.damaged == 1
    assert ticks(to).keys() == {3, 4, 5}


def test_a_check_that_raises_stops_both_passes(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    file = recorded(tmp_path, [1.0, 2.0, 3.0])
    with pytest.raises(KeyboardInterrupt):
        extent_of(file, BEGIN_S, BEGIN_S + 10, check=stop)
    with pytest.raises(KeyboardInterrupt):
        list(trimmed(file, extent_of(file, BEGIN_S, BEGIN_S + 10), stop))


def test_ticks_lost_through_damage_are_still_reported(tmp_path: Path) -> None:
    file = recorded(tmp_path, [float(second) for second in range(30)])
    content = file.read_bytes()
    frames = content.split(MAGIC)
    frames[5] = frames[5][:-9] + bytes(9)
    file.write_bytes(MAGIC.join(frames))
    lost = integrity(file).lost
    to, _ = cut(file, 0, 28)
    assert integrity(to) == Integrity(lost=lost)
    assert 0 < lost <= 3


def test_a_file_that_is_still_being_written_can_be_trimmed(tmp_path: Path) -> None:
    file = recorded(tmp_path, [float(second) for second in range(30)])
    # Remove the footer's frame and the end of the last record.
    content = file.read_bytes()
    file.write_bytes(content[: content.rindex(MAGIC) - 20])
    to, extent = cut(file, 0, 100, growing=True)
    assert (extent.span.ticks, extent.damaged) == (len(ticks(to)), 0)
    assert extent.span.ticks >= 27
    assert integrity(to) == Integrity()
    assert cut(file, 0, 100)[1].damaged == 1


def test_a_file_in_format_1_is_trimmed_without_a_footer(tmp_path: Path) -> None:
    lines = Path(__file__).with_name("format_1.jsonl").read_bytes()
    file = tmp_path / "20231114T221320.jsonl.zst"
    file.write_bytes(zstandard.compress(lines))
    whole = list(entries(read(file)))
    assert len(whole) > 2
    file_2 = tmp_path / "trimmed.jsonl.zst"
    first_s, last_s = whole[0].snapshot.tick.time_s, whole[-2].snapshot.tick.time_s
    file_2.write_bytes(b"".join(trimmed(file, extent_of(file, first_s, last_s))))
    assert [entry.snapshot for entry in entries(read(file_2))] == [entry.snapshot for entry in whole[:-1]]
    assert all(isinstance(record, Entry) for record in read(file_2))
