"""All formats of client results, how a user names one, how a file's format is recognised, and how a file is read."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path

from collector.load_results import client_format, formats, unpacked_files
from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, FormatChoice, GrowingResult
from collector.load_results.client_result import ClientResult, with_joined_intervals, with_unique_names
from collector.load_results.command_output import plain_text
from collector.load_results.result_checks import doubts, require_sound
from collector.load_results.unpacked_files import LogPrefix
from collector.printable import one_line


@cache
def client_formats() -> Mapping[str, Format]:
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    modules = [importlib.import_module(f"{formats.__name__}.{name}") for name in names]
    known = [form for module in modules for form in module.FORMATS]
    return {form.name: form for form in sorted(known, key=attrgetter("name"))}


def choice_of(text: str) -> tuple[FormatChoice, Path]:
    """Return what `FILE`, `FORMAT:FILE` or `FORMAT,OPTION=VALUE:FILE` states, and the file.

    Raises ClientFormatError if the format does not have an option or does not accept its value.
    """
    words, colon, path = text.partition(":")
    name, *settings = words.split(",")
    if not (colon and name in client_formats()):
        return FormatChoice(), Path(text)
    options = dict(setting.partition("=")[::2] for setting in settings)
    accepted = client_formats()[name].options
    for option, value in options.items():
        if option not in accepted:
            known = f"options: {', '.join(accepted)}" if accepted else "it has no options"
            raise ClientFormatError(f"{name}: unknown option '{one_line(option)}' ({known})")
        if not value or value not in (accepted[option] or (value,)):
            values = f" (one of {', '.join(accepted[option])})" if accepted[option] else ""
            raise ClientFormatError(f"{name}: invalid value of {option}: '{one_line(value)}'{values}")
    return FormatChoice(name, options), Path(path)


def read_file(path: Path, choice: FormatChoice, times: CommandTimes) -> ClientResult:
    """Read a file of any format; notes of the result state what is doubtful. Raises ClientFormatError and OSError.

    The file may be compressed with gzip, and its lines may have the prefixes of a container's log.
    """
    notes: list[str] = []
    with unpacked_files.unpacked(path, notes) as unpacked_path:
        form, prefix = _format_in(unpacked_path, choice.format)
        with unpacked_files.without_prefix(unpacked_path, prefix, notes) as plain_path:
            result = read_as(form, plain_path, times, choice.options)
    require_sound(result)
    notes = [*notes, *result.notes, *doubts(result)]
    result = replace(result, source=path.name, notes=tuple(notes), stated=())
    return with_joined_intervals(result)


def read_as(form: Format, path: Path, times: CommandTimes, options: Mapping[str, str] | None = None) -> ClientResult:
    """Read a file of a format, without the checks of `read_file`. Raises ClientFormatError and OSError."""
    try:
        result = form.read(client_format.SourceFile(form.name, path, times, options or {}))
    except ClientFormatError:
        raise
    except client_format.MALFORMED as error:
        raise ClientFormatError(f"not a usable {form.name} file: {client_format.reason_of(error)}") from None
    return replace(result, operations=with_unique_names(result.operations))


def recognised_format(path: Path) -> Format:
    """Return the format of a file. Raises ClientFormatError if none or several recognise it, and OSError."""
    return _format_in(path, "")[0]


def _format_in(path: Path, name: str) -> tuple[Format, LogPrefix | None]:
    """Return the format of a file and the prefix of its lines; the arguments and errors are as in `_format_of`."""
    head = unpacked_files.head_of(path)
    if name or not head.strip() or _matching_formats(head) or unpacked_files.log_prefix(head):
        return _format_of(head, name, partial(unpacked_files.texts_in, path))
    for text in unpacked_files.further_texts(path):
        if forms := [form for form in _matching_formats(text) if form.follows_output]:
            return _only(forms), None
    return _only([]), None


def _format_of(
    head: str, name: str, texts_of: Callable[[LogPrefix], Mapping[str, str]]
) -> tuple[Format, LogPrefix | None]:
    """Return the format of a file that begins with `head`: `name` or, if it is "", any; and the prefix of its lines.

    `texts_of` returns what `LogPrefix.texts` does for the whole file. Raises ClientFormatError and as `texts_of` does.
    """
    if not head.strip():
        raise client_format.UnknownFormatError("empty")
    # Some formats are recognised in spite of a prefix, but not read completely.
    if prefix := unpacked_files.log_prefix(head):
        matching = {container: _matching_formats(text, name) for container, text in texts_of(prefix).items()}
        recognised = {container: forms for container, forms in matching.items() if forms}
        if len(recognised) > 1:
            names = one_line(", ".join(sorted(recognised)))[:200]
            raise client_format.AmbiguousFormatError(
                f"results of several containers: {names} (hint: write the log of each to its own file)"
            )
        for container, forms in recognised.items():
            return _only(forms), replace(prefix, container=container)
        if not name and not _matching_formats(head):
            raise client_format.UnknownFormatError(
                f"unknown format; lines have the prefix '{one_line(prefix.example)}' of {prefix.writer} "
                f"(hint: write the output to a file without it; known formats: {', '.join(client_formats())})"
            )
    return client_formats()[name] if name else _only(_matching_formats(head)), None


def growing_result(head: bytes, choice: FormatChoice, *, is_final: bool) -> GrowingResult | None:
    """Return a reader for a growing file that begins with `head`, without a byte order mark.

    Returns None if the format is not recognised yet. Raises ClientFormatError if the format cannot be recognised, or
    cannot be read while the file is being written; `is_final` states that `head` will not grow.
    """
    unpacked_files.require_not_compressed(head)
    text = head.decode(errors="replace")
    try:
        form, prefix = _format_of(text, choice.format, lambda prefix: prefix.texts(text.splitlines(keepends=True)))
    except ClientFormatError:
        if is_final:
            raise
        return None
    if prefix:
        raise ClientFormatError(f"a log with prefixes of {prefix.writer} is read only after the command has ended")
    if form.growing is None:
        raise ClientFormatError(f"results in the format {form.name} are read only after the command has ended")
    return form.growing(head, choice.options)


def _matching_formats(head: str, name: str = "") -> list[Format]:
    """Return the formats that recognise a file that begins with `head`; only the format `name` if it is not ""."""
    known, text = client_formats(), plain_text(head)
    return [form for form in ([known[name]] if name else known.values()) if form.recognises(text)]


def _only(matching: Sequence[Format]) -> Format:
    """Return the only format that recognises a file. Raises ClientFormatError if there is none, or several."""
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise client_format.UnknownFormatError(f"unknown format (known formats: {', '.join(client_formats())})")
    names = ", ".join(form.name for form in matching)
    raise client_format.AmbiguousFormatError(f"ambiguous format: {names} (hint: specify one as FORMAT:FILE)")
