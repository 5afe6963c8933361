"""The line below a command's output that shows the cluster's throughput, latency and errors while a run is recorded."""

import os
import re
import shutil
import time
from collections.abc import Callable
from typing import Protocol

from cli.runs.command.output_observer import OutputObserver
from exporters.live.frame import Frame, History
from exporters.live.live_columns import other_operations, value
from exporters.rows.operation_columns import TOTAL_RATE

ERRORS = ("timeouts_per_s", "unavailables_per_s")
COLUMNS = frozenset({"reads_per_s", "read_p99_ms", "writes_per_s", "write_p99_ms", TOTAL_RATE, *ERRORS})
# Minimum time between redraws: while the line is visible, and after output has erased it.
REDRAW_S, AFTER_OUTPUT_S = 0.5, 0.1
ERASE = "\r\x1b[K"
# A full-screen program switches to the alternate screen and back.
_SCREEN = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
# The length of the longest such sequence, which may be split between two reads.
_CARRY_BYTES = 8


class LiveSource(Protocol):
    """Frames of a live cluster."""

    history: History


class StatusLine(OutputObserver):
    """Draws the line on a terminal whenever the cursor is at the beginning of a line.

    It is not drawn while a full-screen program runs, or after output that does not end with a newline.
    """

    def __init__(self, frames: LiveSource, descriptor: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._frames = frames
        self._descriptor = descriptor
        self._clock = clock
        self._began_s = clock()
        self._drawn_s = -REDRAW_S
        self._is_drawn = self._is_full_screen = False
        self._is_line_start = True
        self._carry = b""

    def before_output(self, data: bytes, _stream: int) -> None:
        """Erase the line, and note whether the output ends a line and whether a full-screen program is running."""
        self.erase()
        switches = _SCREEN.findall(self._carry + data)
        if switches:
            self._is_full_screen = switches[-1] == b"h"
        self._carry = data[-_CARRY_BYTES:]
        self._is_line_start = data.endswith((b"\n", b"\r"))

    def after_output(self) -> None:
        """Draw the line, unless it has just been drawn."""
        if self._is_full_screen or not self._is_line_start:
            return
        if self._clock() - self._drawn_s < (REDRAW_S if self._is_drawn else AFTER_OUTPUT_S):
            return
        self._drawn_s = self._clock()
        frames = self._frames.history.frames
        text = status_text(frames[-1] if frames else None, self._clock() - self._began_s)
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{ERASE}\x1b[2m{text[:width]}\x1b[m\r")
        self._is_drawn = True

    def erase(self) -> None:
        """Erase the line if it is shown."""
        if self._is_drawn:
            self._write(ERASE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        try:
            os.write(self._descriptor, text.encode())
        except OSError:
            # The terminal has been closed; the run continues.
            self._is_full_screen = True


def status_text(frame: Frame | None, elapsed_s: float) -> str:
    """Return the status as text; `frame` is the latest interval, or None before the first one."""
    minutes, seconds = divmod(int(elapsed_s), 60)
    hours, minutes = divmod(minutes, 60)
    time_text = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    if frame is None:
        return f"{time_text}  waiting for the first interval"

    def number(name: str, digits: int = 0) -> str:
        cell = value(frame.cluster, name)
        return "-" if cell is None else f"{cell:,.{digits}f}"

    errors = [cell for name in ERRORS if (cell := value(frame.cluster, name)) is not None]
    all_operations = [f"all operations {number(TOTAL_RATE)}/s"] if other_operations(frame.cluster) else []
    return "  ".join(
        (
            time_text,
            *all_operations,
            f"reads {number('reads_per_s')}/s p99 {number('read_p99_ms', 2)} ms",
            f"writes {number('writes_per_s')}/s p99 {number('write_p99_ms', 2)} ms",
            f"errors {f'{sum(errors):,.0f}' if errors else '-'}/s",
            f"{frame.counted} of {len(frame.nodes)} nodes",
        )
    )
