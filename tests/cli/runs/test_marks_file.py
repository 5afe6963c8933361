"""Marks are read as they are added, despite unfinished and malformed lines."""

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.runs.marks_file import FILE, MAX_LINE_BYTES, MarksReader, append_mark, mark_text
from collector.redaction.redactor import Redactor
from collector.runs.run import RunMark


def test_marks_are_read_as_they_are_added(tmp_path: Path) -> None:
    reader = MarksReader(tmp_path, Redactor())
    assert reader.new_marks() == []
    append_mark(tmp_path, "a", lambda: 1.0)
    assert reader.new_marks() == [RunMark(1.0, "a")]
    append_mark(tmp_path, "b", lambda: 2.0)
    append_mark(tmp_path, "c", lambda: 3.0)
    assert reader.new_marks() == [RunMark(2.0, "b"), RunMark(3.0, "c")]
    assert reader.marks == [RunMark(1.0, "a"), RunMark(2.0, "b"), RunMark(3.0, "c")]


def test_an_unfinished_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    line = json.dumps({"time_s": 1.0, "text": "a"})
    (tmp_path / FILE).write_text(line[:5])
    reader = MarksReader(tmp_path, Redactor())
    assert reader.new_marks() == []
    with (tmp_path / FILE).open("a") as file:
        file.write(line[5:] + "\n")
    assert reader.new_marks() == [RunMark(1.0, "a")]


def test_an_endless_line_is_skipped_without_reading_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.runs.marks_file.MAX_READ_BYTES", 100)
    (tmp_path / FILE).write_bytes(b"x" * 250 + b"\n")
    append_mark(tmp_path, "good", lambda: 1.0)
    reader = MarksReader(tmp_path, Redactor())
    assert [reader.new_marks() for _ in range(4)] == [[], [], [RunMark(1.0, "good")], []]


def test_a_named_pipe_has_no_marks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    assert MarksReader(tmp_path, Redactor()).new_marks() == []


def test_malformed_lines_are_ignored(tmp_path: Path) -> None:
    bad = [b"", b"{", b"[]", b"null", b'{"time_s": "x", "text": "a"}', b'{"time_s": NaN, "text": "a"}', b"\xff"]
    bad += [b'{"time_s": 1, "text": %s}' % value for value in (b'["x"]', b"{}", b"1", b"null")]
    bad += [b'{"time_s": 1, "text": " "}', b'{"time_s": 1, "text": "%s"}' % (b"x" * MAX_LINE_BYTES)]
    (tmp_path / FILE).write_bytes(b"\n".join(bad) + b"\n")
    append_mark(tmp_path, "good", lambda: 1.0)
    assert MarksReader(tmp_path, Redactor()).new_marks() == [RunMark(1.0, "good")]


def test_a_pattern_that_matches_the_rest_of_a_text_keeps_the_mark(tmp_path: Path) -> None:
    append_mark(tmp_path, "phase pin=1234", lambda: 1.0)
    reader = MarksReader(tmp_path, Redactor((re.compile(r"pin=(\S+)"),)))
    assert reader.new_marks() == [RunMark(1.0, "phase pin=REDACTED")]


@given(st.text())
def test_a_marks_text_is_one_printable_line(text: str) -> None:
    shown = mark_text(text)
    assert shown == shown.strip()
    assert shown.isprintable()
