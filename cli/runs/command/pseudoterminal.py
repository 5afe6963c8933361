"""A pseudoterminal for a command, and the modes of the real terminal that it stands in for."""

import contextlib
import fcntl
import os
import pty
import struct
import termios
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Pseudoterminal:
    """A new pseudoterminal; the stack `ours` closes `master`, and `theirs` closes `slave`."""

    def __init__(self, ours: ExitStack, theirs: ExitStack) -> None:
        self.master, self.slave = pty.openpty()
        ours.callback(os.close, self.master)
        theirs.callback(os.close, self.slave)
        os.set_blocking(self.master, False)
        self._path = os.ttyname(self.slave)

    def copy_size(self) -> None:
        """Set the pseudoterminal's size to that of the real terminal, which is standard output."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def turns_ctrl_c_into_a_signal(self) -> bool:
        """Return whether Ctrl-C sends SIGINT; full-screen programs turn this off."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ISIG)

    def discard_input(self) -> None:
        """Discard input that the command has not read; Ctrl-C would have no effect if the buffer were full."""
        with contextlib.suppress(OSError, termios.error):
            slave = os.open(self._path, os.O_RDWR | os.O_NOCTTY)
            try:
                termios.tcflush(slave, termios.TCIFLUSH)
            finally:
                os.close(slave)


def is_in_foreground(descriptor: int) -> bool:
    """Return whether this process may read from a terminal; the kernel stops background jobs that do."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def raw_mode(descriptor: int) -> Iterator[None]:
    """Put a terminal into raw mode; characters that have already been typed are kept."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)
    try:
        yield
    finally:
        # The terminal may have been closed.
        with contextlib.suppress(termios.error):
            if is_in_foreground(descriptor):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
