"""Creates pipes for a command, and opens /dev/null for standard streams of this process that are closed."""

import os
from contextlib import ExitStack


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
