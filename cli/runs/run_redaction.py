"""Replaces the secrets in the files of a run, a sweep or a search, for `casstat runs redact` and `casstat record`.

The files are casstat's own, and text, also if it is compressed with gzip.
"""

import gzip
import json
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from re import Pattern
from typing import Any, BinaryIO, cast

from cli import run_folder
from cli.errors import CasstatError, echo, note
from cli.run_folder import LOG_FILE, RUNS_SUBFOLDER, STATE_FILE, UNFINISHED_SUBFOLDER, run_folder_name, try_lock
from cli.runs.marks_file import FILE as MARKS_FILE
from cli.runs.run_summary import SUMMARY_FILE
from collector.file_access import UnsuitableFileError, file_errors, read_whole, write_json
from collector.load_results import result_file
from collector.load_results.client_result import redacted_result
from collector.load_results.result_file import ResultFileError, read_result, write_result
from collector.printable import count_text, indented_json, one_line, printable_json
from collector.redaction.redactor import RedactedJson, RedactedStream, Redactor
from collector.redaction.secret_forms import REDACTED
from collector.runs import parameter_sweep, run_file
from collector.runs.parameter_sweep import Sweep, SweptParameter
from collector.runs.run_file import CLIENT_HOSTS_FOLDER, NODES_FOLDER, is_run
from collector.runs.run_file import FILE as RUN_FILE
from exporters.charts.gnuplot_page import KINDS, GnuplotError, draw

CHUNK_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
# What strings(1) finds: successive printable characters, in UTF-8. Random bytes seldom contain a setting of eight.
_MIN_STRING_CHARS, _MAX_CHARACTER_BYTES, _MAX_STRING_BYTES = 8, 4, 1 << 24
_STRING = re.compile(
    rb"(?:[\t -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){%d,}" % _MIN_STRING_CHARS
)
RESULTS_FOLDER = "results"
"""The directory with the output and the files of client hosts."""
JOURNAL_FOLDERS = (NODES_FOLDER, CLIENT_HOSTS_FOLDER)
"""The directories with recordings, which contain neither command lines nor output."""
METADATA_FILES = {
    RUN_FILE: run_file.KEPT_FIELDS,
    parameter_sweep.FILE: parameter_sweep.KEPT_FIELDS,
    STATE_FILE: parameter_sweep.KEPT_IN_SEARCHES,
}
"""The files of runs, sweeps and searches, each with the fields that remain as they are."""
DOCUMENTS = (*METADATA_FILES, SUMMARY_FILE, MARKS_FILE)
"""casstat's own files, whose texts are redacted one at a time, so that the files remain JSON."""


def redact_runs(folder: Path, patterns: Sequence[Pattern[str]]) -> int:
    """Replace the secrets in the run, sweep or search in a directory; return how many files still contain one.

    Prints how many secrets were replaced in each file. Raises CasstatError.
    """
    if not any((folder / name).is_file() for name in METADATA_FILES):
        raise CasstatError(f"{folder}: not the directory of a run, a sweep or a search")
    for run in (folder, *_runs(folder)):
        run_folder.require_not_recorded(run)
    with ExitStack() as stack:
        lock = folder / run_folder.LOCK_FILE
        if lock.exists() and not stack.enter_context(try_lock(lock)):
            raise CasstatError(f"{folder}: in use by another process (hint: wait until it ends)")
        with file_errors(folder, CasstatError):
            return _Redaction(folder, patterns).run()


def _runs(folder: Path) -> list[Path]:
    """Return the directories of the runs of a sweep or search; none for a run."""
    parents = (folder / RUNS_SUBFOLDER, folder / UNFINISHED_SUBFOLDER)
    return [path for parent in parents if parent.is_dir() for path in sorted(parent.iterdir()) if is_run(path)]


class _Redaction:
    """Replaces the secrets in a directory, and counts them."""

    def __init__(self, folder: Path, patterns: Sequence[Pattern[str]]) -> None:
        self._folder = folder
        self._total = self._left = 0
        self._redactor = Redactor(tuple(patterns))
        self._metadata = {
            path: content
            for path in (run / name for run in (folder, *_runs(folder)) for name in METADATA_FILES)
            if path.is_file() and (content := _content(path)) is not None
        }
        for content in self._metadata.values():
            self._redactor = _knowing(self._redactor, content)

    def run(self) -> int:
        """Return how many files still contain a secret. Raises OSError."""
        if (sweep := self._metadata.get(self._folder / parameter_sweep.FILE)) is not None:
            self._rename_runs(sweep)
        scripts: list[Path] = []
        runs = _runs(self._folder)
        # What contains the command lines, from which secrets are known, comes last: the work can be interrupted.
        for part in (*runs, self._folder):
            omitted = (RUNS_SUBFOLDER, UNFINISHED_SUBFOLDER) if part == self._folder and runs else ()
            self._replace_results(part)
            files = _text_files(part, (*JOURNAL_FOLDERS, *omitted))
            for path in sorted(files, key=lambda path: path.name in METADATA_FILES):
                if self._replace_in(path, part) and path.suffix == ".gp":
                    scripts.append(path)
            self._rename_files(part, (*JOURNAL_FOLDERS, *omitted))
        self._draw(scripts)
        if self._redactor.text(self._folder.resolve().name) != self._folder.resolve().name:
            note("the name of the directory contains a secret (hint: rename the directory)")
            self._left += 1
        echo(f"{count_text(self._total, 'secret')} replaced")
        return self._left

    def _count(self, path: Path, number: int) -> None:
        self._total += number
        name = self._redactor.text(str(path.relative_to(self._folder)))
        echo(f"{one_line(name)}: {count_text(number, 'secret')} replaced")

    def _rename_runs(self, content: Mapping[str, Any]) -> None:
        """Rename the runs of a sweep whose directories contain values of secret parameters. Raises OSError."""
        try:
            sweep = parameter_sweep.redacted_sweep(parameter_sweep.sweep_of(content), self._redactor)
            raw = _raw_parameters(content)
        except (parameter_sweep.SweepFileError, KeyError, TypeError, AttributeError):
            return
        names = dict(_renamed_runs(sweep, replace(sweep, parameters=raw)))
        moved = {old: new for old, new in names.items() if old != new and (self._folder / old).is_dir()}
        for old, new in moved.items():
            (self._folder / old).rename(self._folder / new)
        runs = [{**run, "folder": names.get(run["folder"], run["folder"])} for run in content.get("runs", ())]
        if runs != content.get("runs", []):
            write_json(self._folder / parameter_sweep.FILE, {**content, "runs": runs})
        if moved:
            echo(f"{RUNS_SUBFOLDER}: {count_text(len(moved), 'directory', 'directories')} renamed")

    def _replace_results(self, run: Path) -> None:
        """Replace the secrets in imported results, so that the names of operations remain unique. Raises OSError."""
        for path in sorted((run / result_file.FOLDER).glob("*.json")):
            try:
                result = read_result(path)
            except ResultFileError:
                continue
            redacted = redacted_result(result, self._redactor)
            if redacted != result:
                write_result(path, redacted)
                self._count(path, 1)

    def _replace_in(self, path: Path, part: Path) -> bool:
        """Replace the secrets in a file of a run's directory `part`; return whether there were any. Raises OSError."""
        number = 0
        try:
            if _is_document(path, part):
                number, remaining = redact_document(path, self._redactor)
                if remaining:
                    fields = ", ".join(sorted(remaining))
                    self._note_left(path, f"a secret remains in {fields}, because casstat needs it to read the file")
            else:
                number = redact_file(path, self._redactor)
        except NotTextError as error:
            self._note_left(path, error)
        if number:
            self._count(path, number)
        return bool(number)

    def _note_left(self, path: Path, problem: object) -> None:
        note(one_line(f"{self._redactor.text(str(path))}: {problem}"))
        self._left += 1

    def _rename_files(self, part: Path, omitted: tuple[str, ...]) -> None:
        for path in list(_text_files(part, omitted)):
            parent = _own_parent(path, part)
            relative = str(path.relative_to(parent))
            name = self._redactor.text(relative)
            if name != relative and not _is_document(path, part) and not (parent / name).exists():
                (parent / name).parent.mkdir(parents=True, exist_ok=True)
                path.rename(parent / name)
                with suppress(OSError):
                    # Removes only empty directories.
                    path.parent.rmdir()
                self._count(parent / name, 1)

    def _draw(self, scripts: Sequence[Path]) -> None:
        """Draw plots again; delete those that cannot be drawn. Raises OSError."""
        for script in scripts:
            for kind in KINDS:
                script.with_suffix(f".{kind}").unlink(missing_ok=True)
            try:
                draw([script])
            except GnuplotError as error:
                note(self._redactor.text(f"{error}; the plot has been deleted"))


def _content(path: Path) -> Mapping[str, Any] | None:
    """Return the content of a file with metadata; None if it is not a JSON object. Raises OSError."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _knowing(redactor: Redactor, content: Mapping[str, Any]) -> Redactor:
    """Return a redactor that also knows the secrets in a file with metadata."""
    parameters: tuple[SweptParameter, ...] = ()
    with suppress(KeyError, TypeError, AttributeError):
        parameters = _raw_parameters(content)
    redactor = parameter_sweep.knowing_parameters(redactor, parameters, list(_commands(content)))
    tags = content.get("tags")
    for key, value in tags.items() if isinstance(tags, dict) else ():
        redactor = redactor.knowing_command([f"{key}={value}"])
    return redactor


def _commands(content: Mapping[str, Any]) -> Iterator[list[str]]:
    command, settings = content.get("command"), content.get("settings")
    parts = [command.get("words") if isinstance(command, dict) else command]
    parts += [settings.get(name) for name in ("command", "before", "after")] if isinstance(settings, dict) else []
    yield from (list(map(str, words)) for words in parts if isinstance(words, list))


def _raw_parameters(content: Mapping[str, Any]) -> tuple[SweptParameter, ...]:
    """Return the parameters of a sweep as they are in its file. Raises KeyError, TypeError and AttributeError."""
    parameters = content.get("parameters", ())
    return tuple(
        SweptParameter(str(parameter["name"]), tuple(map(str, parameter["values"]))) for parameter in parameters
    )


def _renamed_runs(new: Sweep, old: Sweep) -> Iterator[tuple[str, str]]:
    """Yield the directory of each run of a sweep before and after its parameters have been redacted."""
    before, after = old.combinations(), new.combinations()
    for index, repeat in new.schedule():
        yield (
            run_folder_name(index + 1, len(after), before[index], repeat),
            run_folder_name(index + 1, len(after), after[index], repeat),
        )


class NotTextError(Exception):
    """A secret in a file cannot be replaced; the message is one line without the path."""


def _is_document(path: Path, folder: Path) -> bool:
    """Return whether a file in the directory of a run, a sweep or a search is one of casstat's own."""
    return path.parent == folder and path.name in DOCUMENTS


def _own_parent(path: Path, folder: Path) -> Path:
    """Return the deepest directory above a file whose name casstat needs, in the directory of a run."""
    *parents, _ = path.relative_to(folder).parts
    # The directories of client hosts are in the run's file.
    depth = {result_file.FOLDER: 1, RESULTS_FOLDER: 2}.get(parents[0] if parents else "", 0)
    return folder.joinpath(*parents[:depth])


def _text_files(folder: Path, omitted: tuple[str, ...] = JOURNAL_FOLDERS) -> Iterator[Path]:
    """Yield the regular files below a directory, except in `omitted` and hidden directories; follow no links."""
    for parent, folders, names in os.walk(folder):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in omitted and not name.startswith(".")]
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            with suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path


def redact_file(path: Path, redactor: Redactor) -> int:
    """Replace the secrets in a file atomically, keeping its times and permissions; return how many there were.

    A file without secrets is not written. Raises OSError, and NotTextError if the secrets cannot be replaced.
    """
    with path.open("rb") as file:
        begin = file.read(1 << 13)
    is_compressed = begin.startswith(_GZIP)
    try:
        count, is_text = _copied(path, redactor, is_compressed, None)
    except (EOFError, zlib.error, OSError) as error:
        if is_compressed and not isinstance(error, PermissionError):
            raise NotTextError("cannot be decompressed, so secrets in it are not replaced") from None
        raise
    if not count or not (is_text or _has_secret_strings(path, redactor, is_compressed)):
        return 0
    if not is_text:
        raise NotTextError("not text, but contains a secret")
    _replace(path, lambda target: _copied(path, redactor, is_compressed, target))
    return count


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file's content atomically, keeping its times and permissions. Raises OSError."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as target:
            os.fchmod(target.fileno(), 0o600)
            write(target)
            target.flush()
            os.fsync(target.fileno())
        shutil.copystat(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def redact_document(path: Path, redactor: Redactor) -> tuple[int, Collection[str]]:
    """Replace the secrets in one of casstat's own files, or as in other text if it is malformed.

    Return how many there were, and the fields in which others remain because casstat needs them.
    Raises OSError and NotTextError.
    """
    try:
        text = read_whole(path).decode()
        is_marks = path.name == MARKS_FILE
        before = [json.loads(line) for line in text.splitlines()] if is_marks else json.loads(text)
        redaction = RedactedJson(redactor, METADATA_FILES.get(path.name, ()))
        after = redaction.redacted(before)
        text, new = map(_lines if is_marks else indented_json, (before, after))
    except (UnsuitableFileError, ValueError, RecursionError):
        return redact_file(path, redactor), ()
    if new == text:
        return 0, redaction.remaining
    _replace(path, lambda target: target.write(new.encode()))
    return max(new.count(REDACTED) - text.count(REDACTED), 1), redaction.remaining


def _lines(content: list[Any]) -> str:
    return "".join(printable_json(json.dumps(line, ensure_ascii=False, allow_nan=False)) + "\n" for line in content)


def _copied(path: Path, redactor: Redactor, is_compressed: bool, target: BinaryIO | None) -> tuple[int, bool]:
    """Copy a file without its secrets to `target`, unless that is None.

    Return the number of secrets, and whether the file is text. Raises OSError, EOFError and zlib.error.
    """
    stream = RedactedStream(redactor)
    is_text = True
    with cast(BinaryIO, gzip.open(path) if is_compressed else path.open("rb")) as source:
        compressed = gzip.GzipFile("", "wb", 6, target, mtime=0) if target and is_compressed else None
        output = cast(BinaryIO, compressed) if compressed else target
        while data := source.read(CHUNK_BYTES):
            is_text = is_text and b"\0" not in data
            written = stream.add(data)
            if output is not None:
                output.write(written)
        written = stream.end()
        if output is not None:
            output.write(written)
        if compressed is not None:
            compressed.close()
    return stream.count, is_text


def _has_secret_strings(path: Path, redactor: Redactor, is_compressed: bool) -> bool:
    """Return whether the strings in a file that is not text contain secrets. Raises OSError, EOFError and zlib.error.

    Compressed data, such as that of an image, often contains the likes of `pw=`, followed by a byte that is not text.
    """
    stream, rest = RedactedStream(redactor), b""
    with cast(BinaryIO, gzip.open(path) if is_compressed else path.open("rb")) as source:
        while data := source.read(CHUNK_BYTES):
            data = rest + data
            if redactor.knows_any_in(data):
                return True
            strings = list(_STRING.finditer(data))
            # A string, or a character, may continue in the next piece.
            end = len(data) - _MAX_CHARACTER_BYTES
            begin = end - _MIN_STRING_CHARS
            if strings and strings[-1].end() > end and len(strings[-1][0]) < _MAX_STRING_BYTES:
                begin = strings.pop().start()
            rest = data[max(begin, 0) :]
            for string in strings:
                stream.add(string[0] + b"\n")
        for string in _STRING.finditer(rest):
            stream.add(string[0] + b"\n")
    stream.end()
    return stream.count > 0


def redact_written(folder: Path, redactor: Redactor, report: Callable[[str], None]) -> None:
    """Replace the secrets in the files that a run's command has written to its directory; report what is left."""
    for path in _text_files(folder):
        is_log = path.name == LOG_FILE and path.parent.parent in (folder.parent, folder / RESULTS_FOLDER)
        if is_log or path == folder / RUN_FILE:
            # These have been redacted as they were written.
            continue
        try:
            if _is_document(path, folder):
                redact_document(path, redactor)
            else:
                redact_file(path, redactor)
        except (NotTextError, OSError) as error:
            report(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
