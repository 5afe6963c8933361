"""Runs part of a test without permission to open a path."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """Remove all permissions of a path that the current user owns; within the block, root becomes another user.

    Other users must be able to enter the path's parent directories, so pytest's tmp_path is unsuitable. Import all
    modules that the block needs before it begins.
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
