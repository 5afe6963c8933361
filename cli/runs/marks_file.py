"""The marks of a run that is being recorded: a file to which several processes may append."""

import json
import os
import time
from collections.abc import Callable
from math import isfinite
from pathlib import Path

import msgspec

from cli.errors import CasstatError
from cli.run_folder import FOLDER_VARIABLE, RUNS_FOLDER, is_being_recorded
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from collector.runs.run import MAX_TEXT_CHARS, RunMark
from collector.runs.run_file import is_run

FILE = "marks.jsonl"
MAX_LINE_BYTES = 16 << 10
MAX_MARKS = 10_000
MAX_READ_BYTES = 16 << 20


def mark_text(text: str) -> str:
    """Return a mark's text, without secrets, as one printable line of limited length; "" if it has none."""
    return one_line(Redactor().text(text)).strip()[:MAX_TEXT_CHARS]


def active_run(folder: Path | None) -> Path:
    """Return the directory of the run to mark: `folder`, else $CASSTAT_RUN_DIR, else that of the only active run.

    Raises CasstatError if there is no such run, or if it is not being recorded.
    """
    given = folder or (Path(os.environ[FOLDER_VARIABLE]) if os.environ.get(FOLDER_VARIABLE) else None)
    if given is not None:
        if not is_run(given):
            raise CasstatError(f"{given}: not a run directory")
        if not is_being_recorded(given):
            raise CasstatError(f"{given}: the run is not being recorded")
        return given
    try:
        active = sorted(path for path in RUNS_FOLDER.iterdir() if is_run(path) and is_being_recorded(path))
    except OSError:
        active = []
    if not active:
        raise CasstatError(f"no run is being recorded in {RUNS_FOLDER} (hint: use --run DIR)")
    if len(active) > 1:
        names = ", ".join(path.name for path in active)
        raise CasstatError(f"several runs are being recorded: {names} (hint: use --run DIR)")
    return active[0]


def append_mark(run: Path, text: str, clock: Callable[[], float] = time.time) -> RunMark:
    """Add a mark with the current time to the run in a directory. Raises OSError."""
    mark = RunMark(clock(), text)
    line = json.dumps({"time_s": mark.time_s, "text": mark.text}) + "\n"
    # A single write to a file opened for appending is not interleaved with writes of other processes.
    descriptor = os.open(run / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    return mark


class MarksReader:
    """Reads a run's marks as they are added."""

    def __init__(self, run: Path, redactor: Redactor) -> None:
        self._path = run / FILE
        self._redactor = redactor
        self._position = 0
        self.marks: list[RunMark] = []

    def new_marks(self) -> list[RunMark]:
        """Return the marks since the last call; lines that are not marks are ignored."""
        try:
            # Opening a named pipe would block.
            if not self._path.is_file():
                return []
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(MAX_READ_BYTES)
        except OSError:
            return []
        complete, _, rest = data.rpartition(b"\n")
        if len(data) == MAX_READ_BYTES and not complete:
            # An endless line is no mark.
            complete, rest = data, b""
        self._position += len(data) - len(rest)
        if not complete:
            return []
        marks = [mark for line in complete.split(b"\n") if (mark := self._mark_in(line)) is not None]
        marks = marks[: MAX_MARKS - len(self.marks)]
        self.marks += marks
        return marks

    def _mark_in(self, line: bytes) -> RunMark | None:
        if len(line) > MAX_LINE_BYTES:
            return None
        try:
            mark = msgspec.convert(json.loads(line), RunMark)
        except (ValueError, RecursionError):
            return None
        text = mark_text(self._redactor.text(mark.text))
        return RunMark(mark.time_s, text) if isfinite(mark.time_s) and text else None
