"""The totals of a changed recording are right, or it is reported as damaged with the number of lost ticks."""

import shutil
from pathlib import Path

import pytest
import zstandard

from collector.recording.frames import MAGIC, last_footer
from collector.recording.header import Header
from collector.recording.journal_files import Summary, info, is_being_written
from collector.recording.reader import Integrity
from collector.recording.writer import Journal, Limits, files_of
from tests.collector.merge.recorded_nodes import busy, merge_both, reads_of, record

TICKS = 40
FORMAT_1 = Path(__file__).with_name("format_1.jsonl")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 40 ticks with ten reads each, in eight frames and a footer."""
    return record(tmp_path_factory.mktemp("recorded") / "a", busy("a", TICKS))


@pytest.fixture
def folder(tmp_path: Path, recorded: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "a"))


def file_of(folder: Path) -> Path:
    (file,) = files_of(folder)
    return file


def frames_of(file: Path) -> list[bytes]:
    return [MAGIC + frame for frame in file.read_bytes().split(MAGIC)[1:]]


def checked(folder: Path) -> tuple[Summary, Integrity, float]:
    """Assert that the summary and both merges report the same integrity; return both, and the number of reads."""
    summary = info([folder])
    merged, _ = merge_both(folder)
    (node,) = merged.nodes
    assert node.integrity == summary.integrity
    return summary, summary.integrity, sum(increase for increase, _ in reads_of(node.product).values())


def test_a_closed_recording_is_complete(folder: Path) -> None:
    summary, integrity, _ = checked(folder)
    assert (summary.ticks, summary.state, integrity) == (TICKS, "complete", Integrity())


def test_a_copy_under_another_name_counts_once(folder: Path) -> None:
    shutil.copy(file_of(folder), folder / "copy.jsonl.zst")
    summary, integrity, reads = checked(folder)
    assert (summary.ticks, integrity.repeated, integrity.lost) == (TICKS, TICKS, 0)
    assert reads == 10 * (TICKS - 1)


@pytest.mark.parametrize("name", ["0.jsonl.zst", "z.jsonl.zst"])
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_partial_copy_counts_once(folder: Path, name: str, share: float) -> None:
    content = file_of(folder).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    summary, integrity, reads = checked(folder)
    assert (summary.ticks, integrity.lost) == (TICKS, 0)
    assert integrity.repeated > 0
    assert reads == 10 * (TICKS - 1)


def test_files_are_read_in_the_order_in_which_they_were_created(tmp_path: Path) -> None:
    limits = Limits(file_bytes=1500, sync="never")
    journal = Journal(tmp_path, lambda: Header("1", 1.0, "s"), limits, pytest.fail)
    for snapshot in busy("a", 600):
        journal.append(snapshot)
    journal.close()
    files = files_of(tmp_path)
    assert len(files) > 3
    for number, file in enumerate(reversed(files)):
        file.rename(tmp_path / f"{number}.jsonl.zst")
    summary = info([tmp_path])
    assert (summary.ticks, summary.integrity) == (600, Integrity())
    files_of(tmp_path)[0].unlink()
    assert info([tmp_path]).state == "a later file is missing"


def test_a_duplicated_frame_counts_once(folder: Path) -> None:
    frames = frames_of(file_of(folder))
    file_of(folder).write_bytes(b"".join([*frames[:3], frames[1], *frames[3:]]))
    summary, integrity, reads = checked(folder)
    assert (summary.ticks, integrity) == (TICKS, Integrity(repeated=5))
    assert reads == 10 * (TICKS - 1)


@pytest.mark.parametrize("index", [0, 3])
def test_a_footer_before_its_ticks_excludes_none_of_them(folder: Path, index: int) -> None:
    frames = frames_of(file_of(folder))
    file_of(folder).write_bytes(b"".join([*frames[:index], frames[-1], *frames[index:]]))
    summary, integrity, _ = checked(folder)
    assert (summary.ticks, integrity) == (TICKS, Integrity())


def test_swapped_frames_are_excluded_and_counted(folder: Path) -> None:
    frames = frames_of(file_of(folder))
    file_of(folder).write_bytes(b"".join([*frames[:2], frames[3], frames[2], *frames[4:]]))
    summary, integrity, reads = checked(folder)
    assert (summary.ticks, integrity) == (TICKS - 5, Integrity(lost=5, repeated=5))
    # The increase in the first tick after the gap covers the gap.
    assert reads == 10 * (TICKS - 1)


@pytest.mark.parametrize("frame", range(8))
def test_the_ticks_of_a_missing_frame_are_lost(folder: Path, frame: int) -> None:
    frames = frames_of(file_of(folder))
    file_of(folder).write_bytes(b"".join(frames[:frame] + frames[frame + 1 :]))
    summary, integrity, _ = checked(folder)
    assert (summary.ticks, integrity) == (TICKS - 5, Integrity(lost=5))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_truncated_file_is_not_complete(folder: Path, share: float) -> None:
    content = file_of(folder).read_bytes()
    file_of(folder).write_bytes(content[: int(share * len(content))])
    summary = info([folder])
    assert summary.ticks < TICKS
    assert not summary.is_sound


def test_overwritten_bytes_are_reported_as_one_damaged_range_and_lost_ticks(tmp_path: Path) -> None:
    folder = record(tmp_path / "a", busy("a", 398), full_every=600)
    content = bytearray(file_of(folder).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    file_of(folder).write_bytes(bytes(content))
    summary, integrity, _ = checked(folder)
    assert integrity.damaged == 1
    assert integrity.lost == 398 - summary.ticks > 0


def test_two_recordings_in_one_file_are_both_read(tmp_path: Path, folder: Path) -> None:
    other = record(tmp_path / "b", busy("b", TICKS, begin_s=1_796_000_000.0))
    file_of(folder).write_bytes(file_of(folder).read_bytes() + file_of(other).read_bytes())
    shutil.rmtree(other)
    assert info([folder]).ticks == 2 * TICKS
    merged, _ = merge_both(folder)
    reads = sum(increase for node in merged.nodes for increase, _ in reads_of(node.product).values())
    assert reads == 2 * 10 * (TICKS - 1)


def test_a_recording_is_open_while_its_writer_holds_the_lock(tmp_path: Path) -> None:
    ticks = busy("a", TICKS)
    first = Journal(tmp_path, lambda: Header("1", 1.0, "first"), Limits(sync="never"), pytest.fail)
    first.append(ticks[0])
    assert is_being_written(tmp_path)
    assert info([tmp_path]).state == "open"
    # A recorder killed by SIGKILL leaves a file without a footer.
    file = files_of(tmp_path)[0]
    content = file.read_bytes()
    first.close()
    file.write_bytes(content)
    assert not is_being_written(tmp_path)
    assert info([tmp_path]).state == "no footer"
    second = Journal(tmp_path, lambda: Header("1", 1.0, "second"), Limits(sync="never"), pytest.fail)
    second.append(ticks[1])
    summary = info([tmp_path])
    assert (summary.open, summary.integrity.unfinished) == (1, 1)
    second.close()


def test_files_removed_by_rotation_are_not_damage(tmp_path: Path) -> None:
    journal = Journal(
        tmp_path, lambda: Header("1", 1.0, "s"), Limits(1500, total_bytes=6000, sync="never"), lambda _: None
    )
    for snapshot in busy("a", 600):
        journal.append(snapshot)
    journal.close()
    assert journal.removed > 0
    summary = info([tmp_path])
    assert summary.ticks < 600
    assert summary.state == "complete"
    footer = last_footer(files_of(tmp_path)[-1])
    assert footer is not None
    assert footer.next == 600


def test_a_recording_in_format_1_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "20261118T110640.jsonl.zst").write_bytes(zstandard.compress(FORMAT_1.read_bytes()))
    summary, integrity, reads = checked(folder)
    assert (summary.ticks, summary.state, integrity) == (8, "complete", Integrity())
    assert reads == 70
