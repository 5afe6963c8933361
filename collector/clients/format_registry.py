"""All formats of client results, and how a file's format is recognised."""

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from collector.clients import formats
from collector.clients.client_format import HEAD_BYTES, ClientFormat, ClientFormatError, GrowingFormat


def client_formats() -> Mapping[str, ClientFormat]:
    """Return all formats by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__) if not module.ispkg)
    modules = [cast("ClientFormat", importlib.import_module(f"{formats.__name__}.{name}")) for name in names]
    return {module.NAME: module for module in modules}


def recognised_format(path: Path) -> ClientFormat:
    """Return the format of a file. Raises ClientFormatError if none or several recognise it, and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode(errors="replace").removeprefix("\ufeff")
    if not head.strip():
        raise ClientFormatError("empty")
    return _matching_format(head)


def growing_format(head: bytes, name: str, *, is_final: bool) -> GrowingFormat | None:
    """Return the format `name` or, if `name` is "", the format of a file that begins with `head`.

    Returns None if the format is not recognised yet. Raises ClientFormatError if the format cannot be recognised, or
    cannot be read while the file is being written; `is_final` states that `head` will not grow.
    """
    try:
        form = client_formats()[name] if name else _matching_format(head.decode(errors="replace"))
    except ClientFormatError:
        if is_final:
            raise
        return None
    if not hasattr(form, "growing"):
        raise ClientFormatError(f"results in the format {form.NAME} are read only after the command has ended")
    return cast("GrowingFormat", form)


def _matching_format(head: str) -> ClientFormat:
    """Return the format of a file that begins with `head`. Raises ClientFormatError if none or several match."""
    known = client_formats()
    matching = [candidate for candidate in known.values() if candidate.recognises(head)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise ClientFormatError(f"unknown format (known formats: {', '.join(known)})")
    names = ", ".join(candidate.NAME for candidate in matching)
    raise ClientFormatError(f"ambiguous format: {names} (hint: specify one as FORMAT:FILE)")
