"""All formats of client results, how a user names one, how a file's format is recognised, and how a file is read."""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from collector.clients import formats
from collector.clients.client_format import (
    HEAD_BYTES,
    ClientFormat,
    ClientFormatError,
    CommandTimes,
    FormatChoice,
    FormatWithOptions,
    GrowingFormat,
    GrowingResult,
)
from collector.clients.client_result import ClientResult
from collector.clients.sound_results import doubts, require_sound
from collector.printable import one_line


def client_formats() -> Mapping[str, ClientFormat]:
    """Return all formats by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__) if not module.ispkg)
    modules = [cast("ClientFormat", importlib.import_module(f"{formats.__name__}.{name}")) for name in names]
    return {module.NAME: module for module in modules}


def choice_of(text: str) -> tuple[FormatChoice, Path]:
    """Return what `FILE`, `FORMAT:FILE` or `FORMAT,OPTION=VALUE:FILE` states, and the file.

    Raises ClientFormatError if the format does not have an option or does not accept its value.
    """
    words, colon, path = text.partition(":")
    name, *settings = words.split(",")
    if not (colon and name in client_formats()):
        return FormatChoice(), Path(text)
    options = dict(setting.partition("=")[::2] for setting in settings)
    accepted = _options_of(client_formats()[name])
    for option, value in options.items():
        if option not in accepted:
            known = f"options: {', '.join(accepted)}" if accepted else "it has no options"
            raise ClientFormatError(f"{name}: unknown option '{one_line(option)}' ({known})")
        if not value or value not in (accepted[option] or (value,)):
            values = f" (one of {', '.join(accepted[option])})" if accepted[option] else ""
            raise ClientFormatError(f"{name}: invalid value of {option}: '{one_line(value)}'{values}")
    return FormatChoice(name, options), Path(path)


def _options_of(form: ClientFormat) -> Mapping[str, tuple[str, ...]]:
    return cast("FormatWithOptions", form).OPTIONS if hasattr(form, "OPTIONS") else {}


def read_file(path: Path, choice: FormatChoice, times: CommandTimes) -> ClientResult:
    """Read a file of any format; notes of the result state what is doubtful. Raises ClientFormatError and OSError."""
    form = client_formats()[choice.format] if choice.format else recognised_format(path)
    if choice.options:
        result = cast("FormatWithOptions", form).read(path, times, choice.options)
    else:
        result = form.read(path, times)
    require_sound(result)
    return replace(result, notes=(*result.notes, *doubts(result)), stated=())


def recognised_format(path: Path) -> ClientFormat:
    """Return the format of a file. Raises ClientFormatError if none or several recognise it, and OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode(errors="replace").removeprefix("\ufeff")
    if not head.strip():
        raise ClientFormatError("empty")
    return _matching_format(head)


def growing_result(head: bytes, choice: FormatChoice, *, is_final: bool) -> GrowingResult | None:
    """Return a reader for a growing file that begins with `head`, without a byte order mark.

    Returns None if the format is not recognised yet. Raises ClientFormatError if the format cannot be recognised, or
    cannot be read while the file is being written; `is_final` states that `head` will not grow.
    """
    try:
        form = client_formats()[choice.format] if choice.format else _matching_format(head.decode(errors="replace"))
    except ClientFormatError:
        if is_final:
            raise
        return None
    if not hasattr(form, "growing"):
        raise ClientFormatError(f"results in the format {form.NAME} are read only after the command has ended")
    growing = cast("GrowingFormat", form).growing
    return growing(head, choice.options) if choice.options else growing(head)


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
