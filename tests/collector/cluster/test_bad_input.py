"""Whatever happens to recordings: a marked hole or a note, never a wrong sum, and both ways of merging agree."""

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

from collector.journal.footer import last_footer
from collector.journal.frames import MAGIC
from collector.journal.record_lines import sealed
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Kind, Metric
from collector.model.snapshot import Snapshot
from tests.collector.cluster.malformed_records import (
    HEADS,
    NONSENSE,
    changed,
)
from tests.collector.cluster.recorded_nodes import (
    BEGIN_S,
    READ_DURATION,
    both,
    busy,
    cluster_reads,
    reads_of,
    record,
)

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)


def file_of(folder: Path) -> Path:
    (file,) = folder.glob("*.zst")
    return file


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Path]:
    """A recording of a node, that is spoilt, its bytes as they were, and another one."""
    folder = tmp_path_factory.mktemp("pair")
    spoilt = record(folder / "a", busy("a", 23))
    return spoilt, file_of(spoilt).read_bytes(), record(folder / "b", busy("b", 23))


def check_spoilt(pair: tuple[Path, bytes, Path], content: bytes) -> None:
    spoilt, _, other = pair
    file_of(spoilt).write_bytes(content)
    merged, _ = both(spoilt, other)
    for node in merged.nodes:
        # Ten reads each second: what is told of a gap covers all of it.
        assert all(increase == pytest.approx(10 * covers_s) for increase, covers_s in reads_of(node.product).values())
    assert sum(increase for increase, _ in reads_of(merged.nodes[-1].product).values()) == 220
    told = [increase for node in merged.nodes for increase, _ in reads_of(node.product).values()]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == pytest.approx(sum(told))


@given(st.data())
@shared
def test_cut_anywhere_the_sums_are_those_of_what_remains(pair: tuple[Path, bytes, Path], data: st.DataObject) -> None:
    check_spoilt(pair, pair[1][: data.draw(st.integers(0, len(pair[1])))])


@given(st.data())
@shared
def test_so_they_are_with_a_byte_that_is_another(pair: tuple[Path, bytes, Path], data: st.DataObject) -> None:
    content = bytearray(pair[1])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    check_spoilt(pair, bytes(content))


def test_files_of_somebody_else_are_named(tmp_path: Path) -> None:
    good = record(tmp_path / "good", busy("a", 12))
    foreign = [b"", b"text\n" * 99, b"\x1f\x8b" + bytes(99), zstandard.compress(b"{}\n" * 99), b"\x28\xb5\x2f\xfd" * 99]
    for number, content in enumerate(foreign):
        (good / f"{number}.jsonl.zst").write_bytes(content)
    (good / "folder.jsonl.zst").mkdir()
    merged, notes = both(good)
    assert [note.partition(": ")[2] for note in notes] == ["no recording found"] * len(foreign)
    assert cluster_reads(merged) == {0: (50, 1), 1: (50, 1), 2: (10, 1)}


def test_a_file_whose_own_ticks_are_gone_is_named_with_their_number(tmp_path: Path) -> None:
    good, other = record(tmp_path / "a", busy("a", 12)), record(tmp_path / "b", busy("b", 7))
    footer = last_footer(file_of(other))
    assert footer is not None
    first_frame = MAGIC + file_of(good).read_bytes().split(MAGIC)[1]
    end = file_of(other).read_bytes()[footer.offset :]
    for content in (end, first_frame + end):
        file_of(other).write_bytes(content)
        _, notes = both(good, other)
        assert f"{file_of(other)}: no readable tick: 7 ticks lost" in notes


def test_a_node_that_is_missing_for_a_third_is_a_hole(tmp_path: Path) -> None:
    two = [record(tmp_path / name, busy(name, 30)) for name in ("a", "b")]
    ticks = busy("c", 30)
    record(tmp_path / "c", ticks[:11], session="1")
    restarted = record(tmp_path / "c", ticks[20:], session="2")
    merged, notes = both(*two, restarted)
    assert notes == []
    # The first tick of a recording tells of nothing before it.
    assert [each[1] for each in cluster_reads(merged).values()] == [3, 3, 2, 2, 3, 3]
    assert [each[0] for each in cluster_reads(merged).values()] == [150, 150, 100, 100, 150, 120]


def test_a_node_that_did_not_answer_for_a_third_covers_the_gap(tmp_path: Path) -> None:
    silent = busy("b", 30)
    for number in range(10, 20):
        (scrape,) = silent[number].scrapes
        silent[number] = replace(silent[number], scrapes=(replace(scrape, values={}, problem="no answer"),))
    merged, _ = both(record(tmp_path / "a", busy("a", 30)), record(tmp_path / "b", silent))
    told = reads_of(merged.nodes[1].product)
    assert all(increase == 10 * covers_s for increase, covers_s in told.values())
    assert sum(increase for increase, _ in told.values()) == 290
    assert 1 in [answered for _, answered in cluster_reads(merged).values()]


@given(st.integers(-600, 600))
@shared
def test_clocks_minutes_apart_are_brought_together(tmp_path: Path, ahead_s: int) -> None:
    for folder in tmp_path.glob("*"):
        shutil.rmtree(folder)
    right = [record(tmp_path / "right" / name, busy(name, 12)) for name in ("a", "b")]
    wrong = [record(tmp_path / "a", busy("a", 12, begin_s=BEGIN_S + ahead_s)), right[1]]
    one, other = both(*right)[0], both(*wrong, offsets_s={"a": float(ahead_s)})[0]
    assert cluster_reads(one) == cluster_reads(other)


@pytest.mark.parametrize("step_s", [3600, -3600, -BEGIN_S + 5])
def test_a_clock_that_is_set_while_it_is_recorded_loses_and_doubles_nothing(tmp_path: Path, step_s: float) -> None:
    ticks = busy("a", 30)
    for number in range(10, 20):
        tick = ticks[number].tick
        ticks[number] = replace(ticks[number], tick=replace(tick, time_s=tick.time_s + step_s))
    whole = record(tmp_path / "whole", ticks)
    until_then = record(tmp_path / "then", [replace(tick, node="b") for tick in ticks[:20]])
    merged, _ = both(whole, until_then, record(tmp_path / "c", busy("c", 30)))
    assert [sum(increase for increase, _ in reads_of(node.product).values()) for node in merged.nodes] == [
        290,
        190,
        290,
    ]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == 770


def test_two_recordings_years_apart_take_no_more_room_than_they_have(tmp_path: Path) -> None:
    early = record(tmp_path / "early", busy("a", 12, begin_s=1000.0))
    merged, _ = both(early, record(tmp_path / "late", busy("b", 12)))
    assert [answered for _, answered in cluster_reads(merged).values()] == [1] * 6


@pytest.mark.parametrize("interval_s", [5.0, 10.0])
def test_intervals_may_be_mixed(tmp_path: Path, interval_s: float) -> None:
    folders = []
    for number, each_s in enumerate((0.1, 1.0, 5.0)):
        per_tick = dict.fromkeys(range(401), (500,) * round(10 * each_s))
        ticks = busy(f"{number}", round(40 / each_s) + 1, per_tick.__getitem__, interval_s=each_s)
        folders.append(record(tmp_path / f"{number}", ticks, interval_s=each_s))
    merged, _ = both(*folders, interval_s=interval_s)
    assert cluster_reads(merged) == dict.fromkeys(range(round(40 / interval_s)), (30 * interval_s, 3))


@given(
    st.lists(st.integers(1, 10**7), min_size=1, max_size=60), st.lists(st.integers(1, 10**7), min_size=1, max_size=60)
)
@shared
def test_percentiles_of_mixed_versions_are_those_of_the_values(
    tmp_path: Path, nanoseconds: list[int], microseconds: list[int]
) -> None:
    for folder in tmp_path.glob("*"):
        shutil.rmtree(folder)
    old = record(tmp_path / "old", busy("a", 3, lambda tick: nanoseconds if tick == 1 else (), buckets=165))
    new = record(tmp_path / "new", busy("b", 3, lambda tick: microseconds if tick == 1 else ()))
    merged, _ = both(old, new)
    (buckets,) = [each.sample.values[READ_DURATION] for each in merged.cluster.values()]
    assert isinstance(buckets, Buckets)
    values = sorted([*nanoseconds, *microseconds])
    assert buckets.total == pytest.approx(len(values))
    for q in (0.5, 0.95, 0.99):
        true_us = values[ceil(round(q * len(values), 9)) - 1]
        found_us = (histogram.quantile(buckets, q) or 0.0) * 1e6
        # Whole microseconds in the lowest buckets, a factor of 1.2 above.
        assert true_us / 1.2 - 1 <= found_us <= true_us * 1.2 + 1


def test_a_node_that_is_renamed_is_one_node(tmp_path: Path) -> None:
    ticks = busy("old", 30)
    early = record(tmp_path / "early", ticks[:10], process="7@a")
    late = [replace(tick, node="old" if number < 10 else "new") for number, tick in enumerate(ticks[10:])]
    merged, notes = both(early, record(tmp_path / "late", late, process="7@a"))
    assert [node.node for node in merged.nodes] == ["new"]
    assert notes == ["new was also recorded as old (same process)"]
    assert sum(increase for increase, _ in cluster_reads(merged).values()) == 280


def test_what_is_recorded_twice_counts_once(tmp_path: Path) -> None:
    once = record(tmp_path / "a", busy("a", 30))
    alone = cluster_reads(both(once)[0])
    assert both(once, once, tmp_path / "a" / ".." / "a") == both(once)
    shutil.copytree(once, tmp_path / "copy" / "a")
    (tmp_path / "link").symlink_to(once)
    merged, notes = both(tmp_path / "copy", once, tmp_path / "link")
    assert cluster_reads(merged) == alone
    assert [note.partition(": ")[2] for note in notes] == [f"ignored: a is also recorded in {tmp_path}/a"] or len(
        notes
    ) == 1
    # Another recorder at the same time, a little later.
    second = record(tmp_path / "second", busy("a", 30)[2:28])
    merged, notes = both(once, second)
    assert cluster_reads(merged) == alone
    assert notes == [f"{second}: ignored: a is also recorded in {once}"]


def test_a_copy_of_a_single_tick_counts_once(tmp_path: Path) -> None:
    once = record(tmp_path / "a", busy("a", 1))
    shutil.copytree(once, tmp_path / "copy")
    merged, notes = both(once, tmp_path / "copy")
    assert cluster_reads(merged) == {}
    assert len(notes) == 1


def test_two_nodes_of_one_name_are_two(tmp_path: Path) -> None:
    folders = [record(tmp_path / name, busy("a", 12), process=name) for name in ("x", "y")]
    merged, notes = both(*folders)
    assert [node.node for node in merged.nodes] == ["a", "a~2"]
    assert notes == [f"two nodes are called a at the same time: the one in {tmp_path}/y is called a~2"]
    assert cluster_reads(merged)[1] == (100, 2)


def test_a_node_may_not_be_called_as_all_of_them(tmp_path: Path) -> None:
    merged, notes = both(record(tmp_path / "x", busy("cluster", 12)))
    assert [node.node for node in merged.nodes] == ["cluster~2"]
    assert len(notes) == 1


def test_a_run_without_any_operation_is_nothing_special(tmp_path: Path) -> None:
    merged, notes = both(record(tmp_path / "a", busy("a", 12, lambda _: ())))
    assert cluster_reads(merged) == {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    assert notes == []


def test_buckets_of_an_unknown_layout_are_left_out(tmp_path: Path) -> None:
    strange = [
        replace(tick, scrapes=(replace(tick.scrapes[0], values={**tick.scrapes[0].values, READ_DURATION: (7,) * 99}),))
        for tick in busy("a", 12)
    ]
    merged, _ = both(record(tmp_path / "a", strange), record(tmp_path / "b", busy("b", 12)))
    assert cluster_reads(merged)[1] == (100, 2)
    # They would be those of the other alone.
    assert all(READ_DURATION not in each.sample.values for each in merged.cluster.values())


# Hostile lines: every one fits its checksum, and says something that no recorder writes.


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], Path]:
    """The lines of a recording, and another recording."""
    folder = tmp_path_factory.mktemp("lines")
    file = file_of(record(folder / "a", busy("a", 8), full_every=8))
    whole = zstandard.decompress(file.read_bytes(), max_output_size=1 << 24).splitlines(keepends=True)
    return whole, record(folder / "b", busy("b", 12))


def merged_with(folder: Path, found: list[bytes], other: Path) -> dict[int, tuple[float, int]]:
    folder.mkdir(exist_ok=True)
    (folder / "x.jsonl.zst").write_bytes(zstandard.compress(b"".join(found)))
    merged, _ = both(folder, other)
    (told,) = [reads_of(node.product) for node in merged.nodes if node.node == "b"]
    assert sum(increase for increase, _ in told.values()) == 110
    return cluster_reads(merged)


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_in_a_line_breaks_nothing(tmp_path: Path, lines: tuple[list[bytes], Path], what: str) -> None:
    whole, other = lines
    merged_with(tmp_path / "x", [*whole[:3], changed(whole[3], NONSENSE[what]), *whole[4:]], other)


@pytest.mark.parametrize("field", HEADS)
def test_nonsense_in_a_head_breaks_nothing(tmp_path: Path, lines: tuple[list[bytes], Path], field: str) -> None:
    whole, other = lines
    for value in HEADS[field]:
        head = {**json.loads(whole[0])["head"], field: value}
        merged_with(tmp_path / "x", [changed(whole[0], {"head": head}), *whole[1:]], other)


def test_a_newer_version_says_more_and_is_understood(tmp_path: Path, lines: tuple[list[bytes], Path]) -> None:
    whole, other = lines
    head = json.loads(whole[0])["head"]
    head = {**head, "moon": {"full": True}, "metrics": [[*row, "more"] for row in head["metrics"]]}
    said = [changed(whole[0], {"head": head, "weather": [1]}), *(changed(line, {"y": {"x": 1}}) for line in whole[1:])]
    assert merged_with(tmp_path / "x", said, other) == merged_with(tmp_path / "y", whole, other)


@pytest.mark.parametrize("text", [b'{"t":' + b"[" * 200_000, b'{"t":' + b"[" * 200_000 + b"]" * 200_000, b"[1", b"5"])
def test_json_that_is_no_line_is_damage(tmp_path: Path, lines: tuple[list[bytes], Path], text: bytes) -> None:
    whole, other = lines
    strange = b'%s,"crc":"%08x"}\n' % (text, zlib.crc32(text))
    assert merged_with(tmp_path / "x", [*whole[:3], strange, *whole[4:]], other)[0] == (70, 2)


def test_metrics_that_mean_two_things_are_not_added_up(tmp_path: Path) -> None:
    """Two versions of casstat from which this one differs: all they have in common is the name."""
    folders = []
    for number, kind in enumerate((Kind.COUNTER, Kind.GAUGE, Kind.TEXT)):
        metric = Metric("unheard_of", kind, "", "")
        ticks = [_with(tick, ("unheard_of",), 5 * place) for place, tick in enumerate(busy(str(number), 12))]
        known = record(tmp_path / "one", busy("one", 1))
        folders.append(record(tmp_path / str(number), ticks, metrics=(metric, *_metrics(known))))
    merged, _ = both(*folders)
    assert cluster_reads(merged)[1] == (150, 3)
    assert all(("unheard_of",) not in each.sample.values for each in merged.cluster.values())
    assert all(("unheard_of",) in each.sample.values for node in merged.nodes for each in node.product.values())


def _with(tick: Snapshot, series: tuple[str, ...], value: int) -> Snapshot:
    (scrape,) = tick.scrapes
    return replace(tick, scrapes=(replace(scrape, values={**scrape.values, series: value}),))


def _metrics(folder: Path) -> tuple[Metric, ...]:
    from collector.journal.reader import entries, read

    return next(entries(read(next(folder.glob("*.zst"))))).head.metrics


def test_sealed_lines_are_what_the_tests_change(lines: tuple[list[bytes], Path]) -> None:
    content = {key: value for key, value in json.loads(lines[0][1]).items() if key != "crc"}
    assert sealed(content) == lines[0][1]
