"""A trimmed file contains the ticks of its time range, unchanged, and is complete."""

from itertools import accumulate
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.journal import writer
from collector.journal.frames import MAGIC, Damage
from collector.journal.header import Header
from collector.journal.reader import Entry, entries, read, read_lines
from collector.journal.tick_order import Integrity, TickOrder
from collector.journal.trimming import LOOK_BACK_S, TickSpan, trimmed
from collector.journal.writer import Journal, Limits
from collector.model.metric import Kind, Metric
from collector.model.snapshot import Scrape, Snapshot, Tick

BEGIN_S = 1_795_000_000.0
HEAD = Header("1.0", 1.0, "one", sources=("node",), metrics=(Metric("a_total", Kind.COUNTER, "1", ""),))


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 3)


def recorded(folder: Path, times_s: list[float]) -> Path:
    """Record ticks at these times, in seconds after the beginning, and return the file."""
    journal = Journal(folder, lambda: HEAD, Limits(sync="never", file_s=1e9), print)
    for number, time_s in enumerate(times_s):
        scrape = Scrape("node", 5.0 + number, {("a_total",): 7 * number})
        journal.append(Snapshot("n1", Tick(BEGIN_S + time_s), (scrape,)))
    journal.close()
    (file,) = writer.files_of(folder)
    return file


def cut(file: Path, from_s: float, to_s: float) -> tuple[Path, TickSpan]:
    """Write the file, trimmed to this range after the beginning, to a new directory; return it and its ticks."""
    span = TickSpan()
    to = file.parent / "trimmed" / file.name
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(b"".join(trimmed(read_lines(file), BEGIN_S + from_s, BEGIN_S + to_s, span)))
    return to, span


def integrity(file: Path) -> Integrity:
    order = TickOrder()
    damaged = sum(isinstance(record, Damage) for record in order.filtered(read(file)))
    return order.integrity(damaged)


def ticks(file: Path) -> dict[int, Snapshot]:
    return {entry.number: entry.snapshot for entry in entries(read(file))}


# Steps of the clock between ticks; it may be set back.
STEPS = st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0, 60.0, -90.0]), min_size=1, max_size=30)


@given(STEPS, st.integers(-100, 400), st.integers(0, 300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_trimmed_file_is_complete_and_has_every_tick_in_the_range(
    tmp_path_factory: pytest.TempPathFactory, steps: list[float], from_s: float, length_s: float
) -> None:
    times_s = [time_s + 1000 for time_s in accumulate(steps)]
    from_s += 1000
    file = recorded(tmp_path_factory.mktemp("node"), times_s)
    to, span = cut(file, from_s, from_s + length_s)
    before, after = ticks(file), ticks(to)
    wanted = {number for number, time_s in enumerate(times_s) if from_s <= time_s <= from_s + length_s}
    assert span.ticks == len(wanted)
    assert after.items() <= before.items()
    assert wanted <= after.keys()
    assert integrity(to) == Integrity()
    if wanted:
        assert max(after) == max(wanted)
        assert span.begin_s == BEGIN_S + min(times_s[number] for number in wanted)


def test_rates_are_known_from_the_first_tick_of_the_range_on(tmp_path: Path) -> None:
    to, _ = cut(recorded(tmp_path, [float(second) for second in range(1000)]), 500, 510)
    assert min(ticks(to)) == pytest.approx(500 - LOOK_BACK_S, abs=3)


def test_a_range_without_ticks_yields_nothing(tmp_path: Path) -> None:
    to, span = cut(recorded(tmp_path, [1.0, 2.0, 3.0]), 10, 20)
    assert to.read_bytes() == b""
    assert span == TickSpan()


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
    # Without the footer's frame and the end of the last record.
    content = file.read_bytes()
    file.write_bytes(content[: content.rindex(MAGIC) - 20])
    to, span = cut(file, 0, 100)
    assert span.ticks == len(ticks(to)) >= 27
    assert integrity(to) == Integrity()


def test_a_file_in_format_1_is_trimmed_without_a_footer(tmp_path: Path) -> None:
    lines = Path(__file__).with_name("format_1.jsonl").read_bytes()
    file = tmp_path / "20231114T221320.jsonl.zst"
    file.write_bytes(zstandard.compress(lines))
    whole = list(entries(read(file)))
    assert len(whole) > 2
    span = TickSpan()
    file_2 = tmp_path / "trimmed.jsonl.zst"
    first_s, last_s = whole[0].snapshot.tick.time_s, whole[-2].snapshot.tick.time_s
    file_2.write_bytes(b"".join(trimmed(read_lines(file), first_s, last_s, span)))
    assert [entry.snapshot for entry in entries(read(file_2))] == [entry.snapshot for entry in whole[:-1]]
    assert all(isinstance(record, Entry) for record in read(file_2))
