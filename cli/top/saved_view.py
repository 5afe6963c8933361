"""The columns and sort order of the last session: saved if possible, and validated when they are read."""

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.top.column_sets import SETS
from cli.top.view_state import ViewState
from exporters.live.live_columns import COLUMN_INDEX

MAX_BYTES = 4096
MAX_COLUMNS = 40


def state_path(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the state file, or None if neither $XDG_STATE_HOME nor $HOME is an absolute path."""
    folder = environ.get("XDG_STATE_HOME", "")
    if folder.startswith("/"):
        return Path(folder) / "casstat" / "top.json"
    home = environ.get("HOME", "")
    return Path(home) / ".local" / "state" / "casstat" / "top.json" if home.startswith("/") else None


def remembered(path: Path | None) -> ViewState:
    """Return the saved columns and sort order; anything missing or invalid is replaced by its default."""
    content = _content(path)
    sets = {column_set.name: index for index, column_set in enumerate(SETS)}
    chosen, sort, columns = content.get("set"), content.get("sort"), content.get("columns")
    names = columns[:MAX_COLUMNS] if isinstance(columns, list) else []
    return ViewState(
        chosen=sets.get(chosen, 0) if isinstance(chosen, str) else 0,
        picked=tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name in COLUMN_INDEX)),
        sort=sort if isinstance(sort, str) and (sort == "node" or sort in COLUMN_INDEX) else "",
        reverse=content.get("reverse") is True,
    )


def remember(path: Path | None, view: ViewState) -> None:
    """Save the columns and the sort order; errors are ignored."""
    if path is None:
        return
    content = {"set": SETS[view.chosen].name, "columns": view.picked, "sort": view.sort, "reverse": view.reverse}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        temporary.replace(path)


def _content(path: Path | None) -> Mapping[str, Any]:
    """Return the JSON object in the file; an empty one if the file is missing, unreadable, invalid or not regular."""
    if path is None:
        return {}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return {}
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = json.loads(os.read(descriptor, MAX_BYTES)) if is_file else {}
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(descriptor)
    return content if isinstance(content, dict) else {}
