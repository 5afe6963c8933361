"""Reads JSON in casstat's own formats into frozen dataclasses; sampling and the agent do not need it."""

import json
import re
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from collector.file_access import MAX_BYTES, UnsuitableFileError, read_whole
from collector.printable import one_line

Value = TypeVar("Value")
Failure = Callable[[str], Exception]
"""Returns an exception with a message of one line."""
_KINDS = {
    "str": "a string",
    "int": "a count",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def read_content(
    path: Path, failure: Failure, max_bytes: int = MAX_BYTES, *, constant: Callable[[str], Any] = str
) -> Any:
    """Return the decoded JSON of a file for `value_of`. Raises `failure` and OSError.

    `constant` returns what NaN and the infinities stand for: by default a text, which is refused as a number.
    """
    try:
        return json.loads(read_whole(path, max_bytes), parse_float=_number, parse_constant=constant)
    except UnsuitableFileError as error:
        raise failure(str(error)) from None
    except (ValueError, RecursionError):
        raise failure("not JSON") from None


def _number(text: str) -> float | str:
    """Return a whole number as an integer, which floats accept as well; a number beyond all floats remains a text."""
    number = float(text)
    if not isfinite(number):
        return text
    return int(number) if number.is_integer() else number


def require_version(content: Any, version: int, noun: str, failure: Failure) -> None:
    """Raise `failure` unless decoded JSON is that of a file of this version; `noun` is what the file describes."""
    if not isinstance(content, dict) or type(content.get("schema_version")) is not int:
        raise failure(f"not a {noun}")
    if content["schema_version"] != version:
        found = str(content["schema_version"])[:20]
        raise failure(f"schema version {found} is not supported (hint: update casstat)")


def value_of(content: Any, kind: type[Value], failure: Failure, require_possible: Callable[[Value], None]) -> Value:
    """Return the value of a type that decoded JSON describes; unknown fields are ignored.

    `require_possible` raises ValueError if a value has the right types and is still impossible. Raises `failure`, which
    states the wrong value and where it is.
    """
    try:
        value = msgspec.convert(content, kind)
        require_possible(value)
        return value
    except msgspec.ValidationError as error:
        reason = _reason(str(error), content)
    except ValueError as error:
        reason = str(error)
    raise failure(f"malformed field: {one_line(reason)}")


def _reason(text: str, content: Any) -> str:
    """Return the reason in an error of msgspec, such as "Expected `int`, got `str` - at `$.nodes[0].ticks`"."""
    what, _, path = text.rstrip("`").partition(" - at `$")
    shown = "a value"
    # msgspec writes the keys of mappings as "[...]", so a value below them is unknown.
    if "[...]" not in path:
        for name, index in _STEP.findall(path):
            content = content[name] if name else content[int(index)]
        shown = str(content)[:40]
    named = what.split("`")
    if what.startswith("Expected"):
        kind = named[1].removesuffix(" | null")
        what = f"{shown} is not {_KINDS.get(kind, kind)}"
    else:
        # The field that is missing, or "Number out of range", in the words of `float`.
        what = f"'{named[1]}'" if len(named) > 1 else "int too large to convert to float"
    return f"{what} (at {path.lstrip('.')})" if path else what
