"""The status line is drawn below the output, never inside a line or over a full-screen program."""

import os

import pytest

from cli.record.command.output_observers import ERASE, StatusLine, status_text
from exporters.live.frame import History
from tests.exporters.live.generated_frames import frames

FRAMES = frames(3)


class Terminal:
    """A status line and what it has written."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe2(os.O_NONBLOCK)
        self.now_s = 0.0
        history = History()
        for frame in FRAMES:
            history.add(frame)
        self.line = StatusLine(history, writer, lambda: self.now_s)

    def written(self) -> str:
        try:
            return os.read(self._reader, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def prints(self, data: bytes) -> str:
        """Pass output through, let a second go by, and return what was written after the output."""
        self.line.before_output(data, 1)
        self.written()
        self.now_s += 1
        self.line.after_output()
        return self.written()


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_the_line_is_drawn_only_after_a_complete_line(terminal: Terminal) -> None:
    assert "reads" in terminal.prints(b"a line\n")
    assert terminal.prints(b"50 %") == ""
    assert "reads" in terminal.prints(b" done\r\n")


def test_the_line_is_erased_before_output(terminal: Terminal) -> None:
    terminal.prints(b"a\n")
    terminal.line.before_output(b"b\n", 1)
    assert terminal.written() == ERASE
    terminal.line.before_output(b"c\n", 1)
    assert terminal.written() == ""


@pytest.mark.parametrize("split", range(9))
def test_the_line_is_not_drawn_over_a_full_screen_program(split: int, terminal: Terminal) -> None:
    on, off = b"\x1b[?1049h", b"\x1b[?1049l"
    terminal.line.before_output(on[:split], 1)
    assert terminal.prints(on[split:] + b"text\n") == ""
    assert terminal.prints(b"more\n") == ""
    terminal.line.before_output(off[:split], 1)
    assert "reads" in terminal.prints(off[split:] + b"\n")


def test_the_text_shows_rates_percentiles_errors_and_nodes() -> None:
    assert status_text(None, 3.2) == "0:03  waiting for the first interval"
    text = status_text(FRAMES[-1], 3725.0)
    assert text.startswith("1:02:05  reads ")
    assert text.endswith(f"{FRAMES[-1].counted} of {len(FRAMES[-1].nodes)} nodes")
