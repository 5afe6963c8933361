"""Reads JSON objects from files that may also contain other programs' lines, such as a command's output."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from collector.whole_file import read_whole

MAX_BYTES = 64 << 20
# Without a limit, a file of many brackets would take quadratic time.
MAX_ATTEMPTS = 1000
# With `\s`, which matches newlines, empty lines would take quadratic time.
_BEGIN = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)


def json_objects(path: Path) -> list[Mapping[str, Any]]:
    """Return the objects in a file; each begins at the beginning of a line. Raises ValueError and OSError."""
    text = read_whole(path, MAX_BYTES).decode(errors="replace").removeprefix("\ufeff")
    decoder = json.JSONDecoder(parse_constant=_refuse)
    objects: list[Mapping[str, Any]] = []
    position, reason = 0, "no JSON object"
    for _ in range(MAX_ATTEMPTS):
        match = _BEGIN.search(text, position)
        if match is None:
            break
        try:
            content, position = decoder.raw_decode(text, match.end())
            objects.append(content)
        except ValueError:
            position, reason = match.end() + 1, "the JSON object is damaged or incomplete"
    if not objects:
        raise ValueError(reason)
    return objects


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")
