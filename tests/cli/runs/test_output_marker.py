"""Lines of output that match a pattern mark the run, however the output is split."""

import re
from pathlib import Path

import pytest

from cli.record.command.output_observers import MAX_LINE_BYTES, OutputMarker
from cli.runs.marks_file import MarksReader
from collector.redaction.redactor import Redactor


def marks(folder: Path, pattern: bytes, *parts: tuple[bytes, int]) -> list[str]:
    """Return the texts of the marks that the output produces; `parts` are pairs of data and stream number."""
    marker = OutputMarker(re.compile(pattern), folder, Redactor())
    for data, stream in parts:
        marker.before_output(data, stream)
    marker.end()
    return [mark.text for mark in MarksReader(folder, Redactor()).new_marks()]


@pytest.mark.parametrize("split", range(len(b"rate 10\nrate 200\n") + 1))
def test_lines_may_arrive_in_parts(split: int, tmp_path: Path) -> None:
    output = b"rate 10\nrate 200\n"
    assert marks(tmp_path, rb"rate (\d+)", (output[:split], 1), (output[split:], 1)) == ["10", "200"]


def test_lines_of_both_streams_are_separate(tmp_path: Path) -> None:
    assert marks(tmp_path, rb"rate \d+", (b"rate 1", 1), (b"error\n", 2), (b"0\n", 1)) == ["rate 10"]


def test_a_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    assert marks(tmp_path, rb"done", (b"all done", 2)) == ["all done"[4:]]


def test_progress_lines_end_with_a_carriage_return(tmp_path: Path) -> None:
    assert marks(tmp_path, rb"\d+%", (b"10%\r20%\r\n", 1)) == ["10%", "20%"]


def test_a_group_that_does_not_match_is_replaced_by_the_whole_match(tmp_path: Path) -> None:
    assert marks(tmp_path, rb"rate(?: (\d+))?", (b"rate\n", 1)) == ["rate"]


def test_the_end_of_a_very_long_line_is_ignored(tmp_path: Path) -> None:
    assert marks(tmp_path, rb"late", (b"x" * MAX_LINE_BYTES, 1), (b"late\n", 1)) == []


def test_a_mark_that_cannot_be_written_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert marks(tmp_path / "missing", rb"x", (b"x\n", 1)) == []
    assert "cannot write the mark: No such file or directory" in capsys.readouterr().err
