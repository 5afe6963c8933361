"""What the user last looked at, kept for the next start: best effort, and nothing that is read back is believed."""

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.top.column_sets import SETS
from cli.top.view_state import ViewState
from exporters.live.live_columns import PLACES

LARGEST_BYTES = 4096
MOST_COLUMNS = 40


def state_path(environ: Mapping[str, str]) -> Path | None:
    """Return the file; None where there is no home for it."""
    folder = environ.get("XDG_STATE_HOME", "")
    if folder.startswith("/"):
        return Path(folder) / "casstat" / "top.json"
    home = environ.get("HOME", "")
    return Path(home) / ".local" / "state" / "casstat" / "top.json" if home.startswith("/") else None


def remembered(path: Path | None) -> ViewState:
    """Return the columns and order that were shown last; the usual ones for whatever cannot be read."""
    content = _content(path)
    sets = {each.name: number for number, each in enumerate(SETS)}
    chosen, sort, columns = content.get("set"), content.get("sort"), content.get("columns")
    names = columns[:MOST_COLUMNS] if isinstance(columns, list) else []
    return ViewState(
        chosen=sets.get(chosen, 0) if isinstance(chosen, str) else 0,
        picked=tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name in PLACES)),
        sort=sort if isinstance(sort, str) and (sort == "node" or sort in PLACES) else "",
        reverse=content.get("reverse") is True,
    )


def remember(path: Path | None, look: ViewState) -> None:
    """Keep the columns and the order for the next start, if that can be written."""
    if path is None:
        return
    content = {"set": SETS[look.chosen].name, "columns": look.picked, "sort": look.sort, "reverse": look.reverse}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(content) + "\n", encoding="utf-8")
        beside.replace(path)


def _content(path: Path | None) -> Mapping[str, Any]:
    """Return the object in the file; an empty one for anything else, such as a pipe that never ends."""
    if path is None:
        return {}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return {}
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = json.loads(os.read(descriptor, LARGEST_BYTES)) if is_file else {}
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(descriptor)
    return content if isinstance(content, dict) else {}
