"""Damaged and hostile recordings lead to gaps or notes, never to wrong sums, and both merges agree."""

import json
import shutil
import zlib
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.merge.clock_correction import ClockCorrection
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Kind, Metric
from collector.model.snapshot import Snapshot
from collector.recording.frames import MAGIC, last_footer, sealed
from tests.collector.merge.malformed_records import HEADS, NONSENSE, changed
from tests.collector.merge.recorded_nodes import (
    BEGIN_S,
    READ_DURATION,
    busy,
    cluster_reads,
    merge_both,
    reads_of,
    record,
)
from tests.every import every
from tests.examples import examples, some_of

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(25))


def file_of(folder: Path) -> Path:
    (file,) = folder.glob("*.zst")
    return file


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Path]:
    """A recording to damage, its original content, and an intact recording of another node."""
    folder = tmp_path_factory.mktemp("pair")
    damaged = record(folder / "a", busy("a", 23))
    return damaged, file_of(damaged).read_bytes(), record(folder / "b", busy("b", 23))


def check_damaged(pair: tuple[Path, bytes, Path], content: bytes) -> None:
    """Replace the content of the first recording's file, and assert that the merged sums are right."""
    damaged, _, intact = pair
    file_of(damaged).write_bytes(content)
    merged, _ = merge_both(damaged, intact)
    for node in merged.nodes:
        # There are ten reads per second, and an increase across a gap covers the whole gap.
        assert all(increase == pytest.approx(10 * covers_s) for increase, covers_s in reads_of(node.product).values())
    assert sum(increase for increase, _ in reads_of(merged.nodes[-1].product).values()) == 220
    increases = [increase for node in merged.nodes for increase, _ in reads_of(node.product).values()]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == pytest.approx(sum(increases))


@given(st.data())
@shared
def test_a_truncated_recording_gives_the_sums_of_the_intact_part(
    pair: tuple[Path, bytes, Path], data: st.DataObject
) -> None:
    check_damaged(pair, pair[1][: data.draw(st.integers(0, len(pair[1])))])


@given(st.data())
@shared
def test_a_changed_byte_gives_the_sums_of_the_intact_ticks(pair: tuple[Path, bytes, Path], data: st.DataObject) -> None:
    content = bytearray(pair[1])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    check_damaged(pair, bytes(content))


def test_foreign_files_are_listed_in_notes(tmp_path: Path) -> None:
    good = record(tmp_path / "good", busy("a", 12))
    foreign = [b"", b"text\n" * 99, b"\x1f\x8b" + bytes(99), zstandard.compress(b"{}\n" * 99), b"\x28\xb5\x2f\xfd" * 99]
    for number, content in enumerate(foreign):
        (good / f"{number}.jsonl.zst").write_bytes(content)
    (good / "folder.jsonl.zst").mkdir()
    merged, notes = merge_both(good)
    assert [note.partition(": ")[2] for note in notes] == ["no recording found"] * len(foreign)
    assert cluster_reads(merged) == {0: (50, 1), 1: (50, 1), 2: (10, 1)}


def test_a_file_without_readable_ticks_is_listed_with_the_number_of_lost_ticks(tmp_path: Path) -> None:
    good, damaged = record(tmp_path / "a", busy("a", 12)), record(tmp_path / "b", busy("b", 7))
    footer = last_footer(file_of(damaged))
    assert footer is not None
    first_frame = MAGIC + file_of(good).read_bytes().split(MAGIC)[1]
    end = file_of(damaged).read_bytes()[footer.offset :]
    for content in (end, first_frame + end):
        file_of(damaged).write_bytes(content)
        _, notes = merge_both(good, damaged)
        assert f"{file_of(damaged)}: unreadable session: 7 ticks lost" in notes


def test_a_node_missing_for_a_third_of_the_run_leaves_a_gap(tmp_path: Path) -> None:
    two = [record(tmp_path / name, busy(name, 30)) for name in ("a", "b")]
    ticks = busy("c", 30)
    record(tmp_path / "c", ticks[:11], session="1")
    restarted = record(tmp_path / "c", ticks[20:], session="2")
    merged, notes = merge_both(*two, restarted)
    assert notes == []
    # Tick 20, the first of node c's second session, has no increases.
    assert [answered for _, answered in cluster_reads(merged).values()] == [3, 3, 2, 2, 3, 3]
    assert [reads for reads, _ in cluster_reads(merged).values()] == [150, 150, 100, 100, 150, 120]


def test_the_first_increase_after_an_outage_covers_the_outage(tmp_path: Path) -> None:
    silent = busy("b", 30)
    for number in range(10, 20):
        (scrape,) = silent[number].scrapes
        silent[number] = replace(silent[number], scrapes=(replace(scrape, values={}, problem="no answer"),))
    merged, _ = merge_both(record(tmp_path / "a", busy("a", 30)), record(tmp_path / "b", silent))
    reads = reads_of(merged.nodes[1].product)
    assert all(increase == 10 * covers_s for increase, covers_s in reads.values())
    assert sum(increase for increase, _ in reads.values()) == 290
    assert 1 in [answered for _, answered in cluster_reads(merged).values()]


@given(st.integers(-600, 600))
@shared
def test_clock_offsets_align_recordings_that_are_minutes_apart(
    tmp_path: Path, pair: tuple[Path, bytes, Path], ahead_s: int
) -> None:
    shutil.rmtree(tmp_path / "a", ignore_errors=True)
    wrong = record(tmp_path / "a", busy("a", 23, begin_s=BEGIN_S + ahead_s))
    aligned, _ = merge_both(wrong, pair[2], clocks={"a": ClockCorrection.constant(ahead_s)})
    # The first tick has no increase.
    assert cluster_reads(aligned) == {0: (100, 2), 1: (100, 2), 2: (100, 2), 3: (100, 2), 4: (40, 2)}


@pytest.mark.parametrize("step_s", [3600, -3600, -BEGIN_S + 5])
def test_a_clock_step_during_recording_neither_loses_nor_doubles_reads(tmp_path: Path, step_s: float) -> None:
    ticks = busy("a", 30)
    for number in range(10, 20):
        tick = ticks[number].tick
        ticks[number] = replace(ticks[number], tick=replace(tick, time_s=tick.time_s + step_s))
    complete = record(tmp_path / "complete", ticks)
    until_step = record(tmp_path / "step", [replace(tick, node="b") for tick in ticks[:20]])
    merged, _ = merge_both(complete, until_step, record(tmp_path / "c", busy("c", 30)))
    assert [sum(increase for increase, _ in reads_of(node.product).values()) for node in merged.nodes] == [
        290,
        190,
        290,
    ]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == 770


def test_two_recordings_made_years_apart_give_only_intervals_with_data(tmp_path: Path) -> None:
    early = record(tmp_path / "early", busy("a", 12, begin_s=1000.0))
    merged, _ = merge_both(early, record(tmp_path / "late", busy("b", 12)))
    assert [answered for _, answered in cluster_reads(merged).values()] == [1] * 6


def test_recordings_with_different_intervals_are_merged(tmp_path: Path) -> None:
    folders = []
    for number, tick_s in enumerate((0.1, 1.0, 5.0)):
        per_tick = dict.fromkeys(range(201), (500,) * round(10 * tick_s))
        ticks = busy(f"{number}", round(20 / tick_s) + 1, per_tick.__getitem__, interval_s=tick_s)
        folders.append(record(tmp_path / f"{number}", ticks, interval_s=tick_s))
    for interval_s in (5.0, 10.0):
        merged, _ = merge_both(*folders, interval_s=interval_s)
        assert cluster_reads(merged) == dict.fromkeys(range(round(20 / interval_s)), (30 * interval_s, 3))


@given(
    st.lists(st.integers(1, 10**7), min_size=1, max_size=60), st.lists(st.integers(1, 10**7), min_size=1, max_size=60)
)
@shared
def test_percentiles_of_mixed_versions_are_within_one_bucket_of_the_truth(
    tmp_path: Path, nanoseconds: list[int], microseconds: list[int]
) -> None:
    for folder in tmp_path.glob("*"):
        shutil.rmtree(folder)
    old = record(tmp_path / "old", busy("a", 3, lambda tick: nanoseconds if tick == 1 else (), buckets=165))
    new = record(tmp_path / "new", busy("b", 3, lambda tick: microseconds if tick == 1 else ()))
    merged, _ = merge_both(old, new)
    (buckets,) = [interval.sample.values[READ_DURATION] for interval in merged.cluster.values()]
    assert isinstance(buckets, Buckets)
    values = sorted([*nanoseconds, *microseconds])
    assert buckets.total == pytest.approx(len(values))
    for q in (0.5, 0.95, 0.99):
        true_us = values[ceil(round(q * len(values), 9)) - 1]
        merged_us = (histogram.quantile(buckets, q) or 0.0) * 1e6
        # The lowest buckets are 1 µs wide; above them, upper bounds grow by a factor of 1.2.
        assert true_us / 1.2 - 1 <= merged_us <= true_us * 1.2 + 1


def test_a_renamed_node_remains_one_node(tmp_path: Path) -> None:
    ticks = busy("old", 30)
    early = record(tmp_path / "early", ticks[:10], process="7@a")
    late = [replace(tick, node="old" if number < 10 else "new") for number, tick in enumerate(ticks[10:])]
    merged, notes = merge_both(early, record(tmp_path / "late", late, process="7@a"))
    assert [node.node for node in merged.nodes] == ["new"]
    assert notes == ["new was also recorded as old (same process)"]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == 280


def test_duplicate_recordings_count_once(tmp_path: Path) -> None:
    once = record(tmp_path / "a", busy("a", 30))
    expected = cluster_reads(merge_both(once)[0])
    assert merge_both(once, once, tmp_path / "a" / ".." / "a") == merge_both(once)
    shutil.copytree(once, tmp_path / "copy" / "a")
    (tmp_path / "link").symlink_to(once)
    merged, notes = merge_both(tmp_path / "copy", once, tmp_path / "link")
    assert cluster_reads(merged) == expected
    assert notes == [f"{tmp_path}/link: ignored a session of a that overlaps one in {tmp_path}/copy/a"]
    # A second recorder started a little later and stopped a little earlier.
    second = record(tmp_path / "second", busy("a", 30)[2:28])
    merged, notes = merge_both(once, second)
    assert cluster_reads(merged) == expected
    assert notes == [f"{second}: ignored a session of a that overlaps one in {once}"]


def test_a_copy_of_a_single_tick_counts_once(tmp_path: Path) -> None:
    once = record(tmp_path / "a", busy("a", 1))
    shutil.copytree(once, tmp_path / "copy")
    merged, notes = merge_both(once, tmp_path / "copy")
    assert cluster_reads(merged) == {}
    assert len(notes) == 1


def test_two_nodes_with_the_same_name_remain_separate(tmp_path: Path) -> None:
    folders = [record(tmp_path / name, busy("a", 12), process=name) for name in ("x", "y")]
    merged, notes = merge_both(*folders)
    assert [node.node for node in merged.nodes] == ["a", "a~2"]
    assert notes == [f"two nodes are named a at the same time: the one in {tmp_path}/y is shown as a~2"]
    assert cluster_reads(merged)[1] == (100, 2)


def test_a_node_named_cluster_is_renamed(tmp_path: Path) -> None:
    merged, notes = merge_both(record(tmp_path / "x", busy("cluster", 12)))
    assert [node.node for node in merged.nodes] == ["cluster~2"]
    assert len(notes) == 1


def test_a_run_without_operations_has_zero_reads(tmp_path: Path) -> None:
    merged, notes = merge_both(record(tmp_path / "a", busy("a", 12, lambda _: ())))
    assert cluster_reads(merged) == {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    assert notes == []


def test_buckets_with_an_unknown_layout_are_omitted(tmp_path: Path) -> None:
    unsupported = [
        replace(tick, scrapes=(replace(tick.scrapes[0], values={**tick.scrapes[0].values, READ_DURATION: (7,) * 99}),))
        for tick in busy("a", 12)
    ]
    merged, _ = merge_both(record(tmp_path / "a", unsupported), record(tmp_path / "b", busy("b", 12)))
    assert cluster_reads(merged)[1] == (100, 2)
    # The cluster's histogram must be absent, because it would contain only the other node's reads.
    assert all(READ_DURATION not in interval.sample.values for interval in merged.cluster.values())


# Hostile lines have a valid checksum but content that no recorder writes.


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], Path]:
    """The lines of a recording, and an intact recording of another node."""
    folder = tmp_path_factory.mktemp("lines")
    file = file_of(record(folder / "a", busy("a", 8), full_every=8))
    original = zstandard.decompress(file.read_bytes(), max_output_size=1 << 24).splitlines(keepends=True)
    return original, record(folder / "b", busy("b", 12))


def reads_with(folder: Path, node_lines: list[bytes], intact: Path) -> dict[int, tuple[float, int]]:
    """Merge the lines with the intact recording, check that its reads are counted, and return the cluster's reads."""
    folder.mkdir(exist_ok=True)
    (folder / "x.jsonl.zst").write_bytes(zstandard.compress(b"".join(node_lines)))
    merged, _ = merge_both(folder, intact)
    (reads,) = [reads_of(node.product) for node in merged.nodes if node.node == "b"]
    assert sum(increase for increase, _ in reads.values()) == 110
    return cluster_reads(merged)


@every("case", some_of(list(NONSENSE)))
def test_a_malformed_record_does_not_affect_other_nodes(
    tmp_path: Path, lines: tuple[list[bytes], Path], case: str
) -> None:
    original, intact = lines
    malformed = [*original[:3], changed(original[3], NONSENSE[case]), *original[4:]]
    reads = reads_with(tmp_path / "x", malformed, intact)
    assert all(answered in (1, 2) for _, answered in reads.values())


@pytest.mark.parametrize("increase", [2**62 + 9, -(2**62) - 9])
def test_a_bucket_count_beyond_64_bits_is_damage(
    tmp_path: Path, lines: tuple[list[bytes], Path], increase: int
) -> None:
    original, intact = lines
    huge = {"k": [2], "g": [3], "h": [f"{increase},"]}
    malformed = [*original[:3], *(changed(line, huge) for line in original[3:6]), *original[6:]]
    assert reads_with(tmp_path / "x", malformed, intact)[0] == (80, 2)


@every(("field", "value"), some_of([(field, value) for field, values in HEADS.items() for value in values]))
def test_a_malformed_header_does_not_affect_other_nodes(
    tmp_path: Path, lines: tuple[list[bytes], Path], field: str, value: object
) -> None:
    original, intact = lines
    head = {**json.loads(original[0])["head"], field: value}
    reads = reads_with(tmp_path / "x", [changed(original[0], {"head": head}), *original[1:]], intact)
    assert all(answered in (1, 2) for _, answered in reads.values())


def test_unknown_fields_of_a_newer_version_are_ignored(tmp_path: Path, lines: tuple[list[bytes], Path]) -> None:
    original, intact = lines
    head = json.loads(original[0])["head"]
    head = {**head, "moon": {"full": True}, "metrics": [[*row, "more"] for row in head["metrics"]]}
    newer = [
        changed(original[0], {"head": head, "weather": [1]}),
        *(changed(line, {"y": {"x": 1}}) for line in original[1:]),
    ]
    assert reads_with(tmp_path / "x", newer, intact) == reads_with(tmp_path / "y", original, intact)


@pytest.mark.parametrize("text", [b'{"t":' + b"[" * 200_000, b'{"t":' + b"[" * 200_000 + b"]" * 200_000, b"[1", b"5"])
def test_a_line_with_unexpected_json_is_damage(tmp_path: Path, lines: tuple[list[bytes], Path], text: bytes) -> None:
    original, intact = lines
    malformed = b'%s,"crc":"%08x"}\n' % (text, zlib.crc32(text))
    assert reads_with(tmp_path / "x", [*original[:3], malformed, *original[4:]], intact)[0] == (70, 2)


def test_metrics_of_different_kinds_are_not_aggregated(tmp_path: Path) -> None:
    """Other casstat versions may use the same name for a different kind of metric."""
    folders = []
    for number, kind in enumerate((Kind.COUNTER, Kind.GAUGE, Kind.TEXT)):
        metric = Metric("unheard_of", kind, "", "")
        ticks = [_with(tick, ("unheard_of",), 5 * index) for index, tick in enumerate(busy(str(number), 12))]
        single = record(tmp_path / "single", busy("single", 1))
        folders.append(record(tmp_path / str(number), ticks, metrics=(metric, *_metrics(single))))
    merged, _ = merge_both(*folders)
    assert cluster_reads(merged)[1] == (150, 3)
    assert all(("unheard_of",) not in interval.sample.values for interval in merged.cluster.values())
    node_intervals = [interval for node in merged.nodes for interval in node.product.values()]
    assert all(("unheard_of",) in interval.sample.values for interval in node_intervals)


def _with(tick: Snapshot, series: tuple[str, ...], value: int) -> Snapshot:
    (scrape,) = tick.scrapes
    return replace(tick, scrapes=(replace(scrape, values={**scrape.values, series: value}),))


def _metrics(folder: Path) -> tuple[Metric, ...]:
    from collector.recording.reader import entries, read

    return next(entries(read(next(folder.glob("*.zst"))))).head.metrics


def test_the_changed_lines_have_the_writers_format(lines: tuple[list[bytes], Path]) -> None:
    content = {key: value for key, value in json.loads(lines[0][1]).items() if key != "crc"}
    assert sealed(content) == lines[0][1]
