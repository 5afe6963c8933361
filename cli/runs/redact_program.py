"""The work of `casstat runs redact`: replaces the secrets in a run, a sweep or a search that exists."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from re import Pattern
from typing import Any

from cli import run_folder
from cli.errors import CasstatError, echo, note
from cli.run_folder import RUNS_SUBFOLDER, run_folder_name, try_lock
from cli.runs.redacted_files import (
    JOURNAL_FOLDERS,
    METADATA_FILES,
    NotTextError,
    is_document,
    own_parent,
    redact_document,
    redact_file,
    text_files,
)
from cli.runs.unfinished_runs import UNFINISHED_SUBFOLDER
from collector.file_access import write_json
from collector.load_results import result_file
from collector.load_results.client_result import redacted_result
from collector.load_results.result_file import ResultFileError, read_result, write_result
from collector.printable import count_text, one_line
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import FILE as SWEEP_FILE
from collector.runs.parameter_sweep import (
    Sweep,
    SweepFileError,
    SweptParameter,
    knowing_parameters,
    redacted_sweep,
    sweep_of,
)
from collector.runs.run_file import is_run
from exporters.charts.gnuplot_process import KINDS, GnuplotError, draw


def redact_runs(folder: Path, patterns: Sequence[Pattern[str]]) -> int:
    """Replace the secrets in the run, sweep or search in a directory; return how many files still contain one.

    Prints how many secrets were replaced in each file. Raises CasstatError.
    """
    if not any((folder / name).is_file() for name in METADATA_FILES):
        raise CasstatError(f"{folder}: not the directory of a run, a sweep or a search")
    for run in (folder, *_runs(folder)):
        if run_folder.is_being_recorded(run):
            raise CasstatError(f"{run}: the run is being recorded (hint: wait until it ends)")
    with ExitStack() as stack:
        lock = folder / run_folder.LOCK_FILE
        if lock.exists() and not stack.enter_context(try_lock(lock)):
            raise CasstatError(f"{folder}: in use by another process (hint: wait until it ends)")
        try:
            return _Redaction(folder, patterns).run()
        except OSError as error:
            raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


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
        if (sweep := self._metadata.get(self._folder / SWEEP_FILE)) is not None:
            self._rename_runs(sweep)
        scripts: list[Path] = []
        runs = _runs(self._folder)
        # What contains the command lines, from which secrets are known, comes last: the work can be interrupted.
        for part in (*runs, self._folder):
            omitted = (RUNS_SUBFOLDER, UNFINISHED_SUBFOLDER) if part == self._folder and runs else ()
            self._replace_results(part)
            files = text_files(part, (*JOURNAL_FOLDERS, *omitted))
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
            sweep = redacted_sweep(sweep_of(content), self._redactor)
            raw = _raw_parameters(content)
        except (SweepFileError, KeyError, TypeError, AttributeError):
            return
        names = dict(_renamed_runs(sweep, replace(sweep, parameters=raw)))
        moved = {old: new for old, new in names.items() if old != new and (self._folder / old).is_dir()}
        for old, new in moved.items():
            (self._folder / old).rename(self._folder / new)
        runs = [{**run, "folder": names.get(run["folder"], run["folder"])} for run in content.get("runs", ())]
        if runs != content.get("runs", []):
            write_json(self._folder / SWEEP_FILE, {**content, "runs": runs})
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
            if is_document(path, part):
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
        for path in list(text_files(part, omitted)):
            parent = own_parent(path, part)
            relative = str(path.relative_to(parent))
            name = self._redactor.text(relative)
            if name != relative and not is_document(path, part) and not (parent / name).exists():
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
    redactor = knowing_parameters(redactor, parameters, list(_commands(content)))
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
