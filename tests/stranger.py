"""Runs part of a test without permission to open a path."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Remove all permissions of a path that this user owns; if this user is root, become another one in the block.

    Other users must be able to enter the directories above, unlike those above pytest's tmp_path. All modules that are
    needed should have been imported before.
    """
    mode = path.stat().st_mode
    is_root = not os.geteuid()
    path.chmod(0)
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        path.chmod(mode)
