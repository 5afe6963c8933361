"""The signal handlers, standard streams and pipes of this process, and the command line of its child processes."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import cli

Handler = Callable[[int, FrameType | None], object]
PROGRAM = Path(cli.__file__).absolute().parents[1] / "casstat.py"


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Handle signals, except those that are ignored, for instance because of nohup."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interruptible() -> AbstractContextManager[None]:
    """In the block, SIGTERM and SIGHUP act like Ctrl-C, unless they are ignored."""
    return handling({signal.SIGTERM: interrupt, signal.SIGHUP: interrupt})


def interrupt(*_: object) -> None:
    """Handle a signal like Ctrl-C. Raises KeyboardInterrupt."""
    raise KeyboardInterrupt


def open_standard_streams() -> None:
    """Open /dev/null for each standard stream that is closed; otherwise, another file would get its descriptor."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # `os.open` uses the lowest free descriptor, which is this one.
            os.open(os.devnull, os.O_RDWR)


def new_pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """Return the read end of a new pipe, which `ours` closes, and its write end, which `theirs` closes."""
    read_end, write_end = os.pipe()
    ours.callback(os.close, read_end)
    theirs.callback(os.close, write_end)
    return read_end, write_end


def casstat_command(*arguments: str | Path) -> list[str]:
    """Return the command line of a child process, which imports casstat's packages from this installation."""
    return [sys.executable, str(PROGRAM), *map(str, arguments)]
