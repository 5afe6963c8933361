"""Imports the results of load generators into a run, and reads them."""

import glob
import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, errors_as, note
from cli.recordings.recording_arguments import RESULT_SUFFIX, results_in, stored_results
from cli.run_folder import LOG_FILE
from cli.runs.isolated_read import read_isolated, read_limited
from collector.file_access import file_errors
from collector.load_results import client_format, result_file
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientInterval, ClientResult, redacted_result
from collector.load_results.format_registry import choice_of, client_formats, recognised_format
from collector.load_results.load_span import (
    MAX_OUTSIDE_S,
    LoadTimes,
    on_run_clock,
    parts_within,
    with_outside_note,
    with_stall,
)
from collector.load_results.result_checks import have_same_operations
from collector.load_results.result_file import write_result
from collector.merge.clock_correction import MAX_DRIFT, ClockPart, times_when_shown
from collector.merge.clock_correction import clock_parts as recorded_parts
from collector.printable import local_time, one_line
from collector.recording.header import TooManySeriesError
from collector.recording.writer import folder_name
from collector.redaction.redactor import KNOWN_FORMS, Redactor
from collector.runs.run import ClientHost, Run
from collector.runs.run_clock import clock_of, clock_parts
from exporters.results.summary.client_values import total_within

Result = TypeVar("Result")
Reading = Callable[[Path, FormatChoice, CommandTimes], ClientResult]
Take = Callable[[Path, FormatChoice], None]
"""Imports a file, and prints the notes of its result. Raises CasstatError."""
CHUNK_BYTES = 1 << 20
PERCENTAGES = (50, 95, 99)
WAITING_COMMANDS = ("sleep",)
"""Commands that end when a load is expected to have ended; the load itself is run by something else."""
FILES_FOLDER = "files"


def require_valid_choices(texts: Sequence[str]) -> None:
    """Raise click.BadParameter if a text (see `expanded`) has options that its format does not accept."""
    with errors_as(partial(click.BadParameter, param_hint="--client"), ClientFormatError):
        for text in texts:
            choice_of(text)


def expanded(text: str) -> list[tuple[Path, FormatChoice]]:
    """Return the files that `FILE`, `FORMAT:FILE` or `FORMAT,OPTION=VALUE:FILE` names, and what it states about them.

    FILE may be a shell pattern. Raises CasstatError.
    """
    with errors_as(CasstatError, ClientFormatError):
        choice, path = choice_of(text)
    with file_errors(path, CasstatError):
        if path.exists():
            return [(path, choice)]
    names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - the pattern may be absolute
    if not names:
        raise CasstatError(f"{path}: no such file")
    return [(Path(name), choice) for name in names]


def imported(
    folder: Path,
    run: Run,
    path: Path,
    choice: FormatChoice,
    client_clock_s: float | None = None,
    load_s: float | None = None,
    read: Reading = read_limited,
    redactor: Redactor = KNOWN_FORMS,
) -> ClientResult:
    """Import a file into the run in a directory, replacing an earlier import of the same path; return its result.

    `client_clock_s` states how far the client's clock was ahead of the run's throughout. If it is None, the clock of
    the client host from which the file was collected is used, or this machine's for any other file: times are corrected
    by its offset and its changes, or the result is refused. `load_s` states how long the load was to run; None if that
    is unknown. `read` reads the file. The secrets that `redactor` recognises, for instance in the names of operations,
    are replaced. Raises CasstatError.
    """
    try:
        _require_regular(path)
        result = _read(run, path, choice, read)
        result = _on_run_clock(folder, run, path, result) if client_clock_s is None else result.shifted(-client_clock_s)
        result = replace(result, source=_source(folder, path), checksum=_checksum(path))
        times = _load_times(folder, run, path, load_s)
        _require_overlap(run, result, times)
        result = with_stall(with_outside_note(result, times), times)
        result = redacted_result(result, redactor)
        target = _target(folder, path, result.source)
        _require_new(folder, target, result)
        target.parent.mkdir(exist_ok=True)
        write_result(target, result)
    except ClientFormatError as error:
        raise CasstatError(redactor.text(f"{path}: {error}")) from None
    except OSError as error:
        raise CasstatError(redactor.text(f"{error.filename or path}: {error.strerror}")) from None
    return result


def _read(run: Run, path: Path, choice: FormatChoice, read: Reading) -> ClientResult:
    """Read a file. Raises ClientFormatError and OSError."""
    times = _command_times(run)
    try:
        return read(path, choice, times)
    except (client_format.UnknownFormatError, client_format.AmbiguousFormatError):
        raise
    except ClientFormatError as error:
        if len(parts_within(times.clock, times)) > 1:
            raise ClientFormatError(f"the clock was set during the load: {error}") from None
        raise


def _require_regular(path: Path) -> None:
    """Raise ClientFormatError for a pipe, which can be read only once, and OSError if there is no file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ClientFormatError("not a regular file (hint: write the result to a file)")


def import_after_run(
    folder: Path, run: Run, texts: Sequence[str], load_s: float | None = None, redactor: Redactor = KNOWN_FORMS
) -> None:
    """Import the files that `--client` names, the files collected from client hosts, and the commands' output.

    `load_s` and `redactor` are as in `imported`.
    The output is ignored if a file has the command's result, because it has the same operations. Other files are
    ignored if they are not the results of a known load generator. Prints why any other file cannot be imported.
    """
    take = partial(_import, folder, run, load_s, redactor)
    for text in texts:
        for path, choice in _attempt(partial(expanded, text), "--client ") or ():
            _attempt(partial(_import_from_run, take, run, path, choice), "--client ")
    hosts = [host.results for host in run.client_hosts if host.results]
    for results in hosts:
        for path in sorted((folder / results / FILES_FOLDER).rglob("*")):
            _attempt(partial(_import_recognised, take, path))
    for results in ("", *hosts):
        _attempt(partial(_import_output, take, folder, results, hosts))


def _attempt(step: Callable[[], Result], prefix: str = "") -> Result | None:
    """Return the result of a step; if it fails, print the error and return None."""
    try:
        return step()
    except CasstatError as error:
        note(f"{prefix}{error}")
        return None


def _import_from_run(take: Take, run: Run, path: Path, choice: FormatChoice) -> None:
    """Import a file, unless it was last changed before the run's command began. Raises CasstatError."""
    with file_errors(path, CasstatError):
        changed_s = _changed_s(run, path)
    if max(changed_s) < _command_times(run).begin_s:
        raise CasstatError(f"{path}: last changed before the command began (hint: check the load generator's options)")
    take(path, choice)


def _import(folder: Path, run: Run, load_s: float | None, redactor: Redactor, path: Path, choice: FormatChoice) -> None:
    """Import a file in a way that cannot disturb this process, and print the result's notes. Raises CasstatError."""
    try:
        result = imported(folder, run, path, choice, load_s=load_s, read=read_isolated, redactor=redactor)
    except CasstatError as error:
        hint = "" if "(hint: " in str(error) else f" (hint: 'casstat import {folder} {path}' imports it later)"
        raise CasstatError(redactor.text(f"{error}{hint}")) from None
    for text in result.notes:
        note(redactor.text(f"{path}: {one_line(text)}"))


def _import_recognised(take: Take, path: Path) -> None:
    """Import a file if its format is recognised. Raises CasstatError."""
    if form := _recognised(path):
        take(path, FormatChoice(form))


def _import_output(take: Take, folder: Path, results: str, hosts: Sequence[str]) -> None:
    """Import a command's output unless a file has its result; the arguments are as in `_have_files`."""
    output = folder / results / LOG_FILE
    if not (form := _recognised(output)):
        return
    if _have_files(folder, results, hosts):
        command = f"casstat import {folder} {output}"
        note(f"{output}: not imported, because a file contains the result (hint: '{command}' imports it as well)")
        return
    take(output, FormatChoice(form))


def _have_files(folder: Path, results: str, hosts: Sequence[str]) -> bool:
    """Return whether a file with the result of a command has been imported.

    `results` is the directory with the results of the client host that ran the command, "" for this machine; `hosts`
    has the directories of all client hosts. Raises CasstatError.
    """
    sources = [result.source for result in results_in(folder)]
    if results:
        return any(source.startswith(f"{results}/{FILES_FOLDER}/") for source in sources)
    return any(source != LOG_FILE and not source.startswith(tuple(f"{host}/" for host in hosts)) for source in sources)


def _changed_s(run: Run, path: Path) -> list[float]:
    """Return when a file may have been changed last; there are several times if the clock was set. Raises OSError."""
    shown_s = path.stat().st_mtime
    if not run.clock_steps:
        return [shown_s]
    now_s = clock_of(run)()
    times_s = [time_s for time_s in times_when_shown(shown_s, clock_parts(run.clock_steps)) if time_s <= now_s]
    return times_s or [shown_s]


def _recognised(path: Path) -> str:
    """Return the name of a file's format; "" if it is not recognised. Prints if it has results of several formats."""
    try:
        return recognised_format(path).name if path.is_file() else ""
    except client_format.AmbiguousFormatError as error:
        note(f"{path}: not imported: {error}")
        return ""
    except (ClientFormatError, OSError):
        return ""


def _command_times(run: Run) -> CommandTimes:
    clock = clock_parts(run.clock_steps) if run.clock_steps else ()
    begin_s, end_s = run.begin_s, run.begin_s if run.end_s is None else run.end_s
    if run.command is None:
        return CommandTimes(begin_s, end_s, clock=clock)
    end_s = end_s if run.command.end_s is None else run.command.end_s
    return CommandTimes(run.command.begin_s, end_s, run.command.words, clock)


def _load_times(folder: Path, run: Run, path: Path, load_s: float | None) -> LoadTimes:
    """Return when the load of a file ran, as far as the run's command shows."""
    times, command = _command_times(run), run.command
    if command is None:
        return LoadTimes(times.begin_s, times.end_s, load_s)
    is_written_by_command = (
        not _path_from(folder, path).is_absolute()
        or any(times.begin_s <= time_s <= times.end_s + MAX_OUTSIDE_S for time_s in _changed_s(run, path))
    ) and Path(command.words[0]).name not in WAITING_COMMANDS
    until_s = None
    if command.ended_by_duration and command.duration_s is not None:
        until_s = command.begin_s + command.duration_s
    return LoadTimes(times.begin_s, times.end_s, load_s, until_s, is_written_by_command)


def _on_run_clock(folder: Path, run: Run, path: Path, result: ClientResult) -> ClientResult:
    """Return the result of a file on the run's clock. Raises ClientFormatError and OSError."""
    times = _command_times(run)
    kind = client_formats()[result.format].clock
    hosts = [host for host in run.client_hosts if host.results]
    for host in hosts:
        if path.resolve().is_relative_to((folder / host.results).resolve()):
            return on_run_clock(result, _parts_of(folder, host, result), times, kind)
    is_from_here = not hosts and run.command is not None and Path(run.command.words[0]).name not in WAITING_COMMANDS
    if kind == client_format.ResultClock.SHOWN and not is_from_here:
        # The clock of another machine may not have been set.
        kind = client_format.ResultClock.EITHER
    return on_run_clock(result, times.clock or clock_parts(()), times, kind)


def _parts_of(folder: Path, host: ClientHost, result: ClientResult) -> tuple[ClockPart, ...]:
    """Return the periods between the changes of a client host's clock. Raises ClientFormatError and OSError."""
    measured = [(clock.at_s, clock.offset_s) for clock in host.clocks]
    with suppress(TooManySeriesError):
        recording = folder / host.folder
        if host.folder and recording.is_dir() and (parts := recorded_parts(recording, measured)):
            return parts
    for before, after in pairwise(host.clocks):
        change_s = after.offset_s - before.offset_s
        if abs(change_s) > MAX_DRIFT * abs(after.at_s - before.at_s) + before.error_s + after.error_s:
            reason = f"the clock of its client host changed by {change_s:+.1f} s during the run, at an unknown time"
            hint = "'casstat import' with --client-clock SECONDS states how far it was ahead"
            raise ClientFormatError(f"not imported, because {reason} (hint: {hint})")
    begin_s = result.span_s[0] if result.span_s else 0.0
    return (ClockPart(-inf, inf, begin_s - host.clock_correction().reference_s(begin_s)),)


def _source(folder: Path, path: Path) -> str:
    """Return the path of a file in the run's directory relative to that directory, or the name of another file."""
    relative = _path_from(folder, path)
    return one_line(path.name if relative.is_absolute() else relative)


def _target(folder: Path, path: Path, source: str) -> Path:
    """Return the file that stores the result of a path; different paths have different files, even if sources match."""
    digest = hashlib.blake2b(os.fsencode(_path_from(folder, path)), digest_size=8).hexdigest()
    return folder / result_file.FOLDER / f"{folder_name(source)}~{digest}{RESULT_SUFFIX}"


def _path_from(folder: Path, path: Path) -> Path:
    """Return the path of a file in a directory relative to that directory, or the absolute path of another file."""
    resolved, root = path.resolve(), folder.resolve()
    return resolved.relative_to(root) if resolved.is_relative_to(root) else resolved


def _checksum(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            digest.update(data)
    return digest.hexdigest()


def _require_new(folder: Path, target: Path, result: ClientResult) -> None:
    """Raise ClientFormatError if the file's operations would count twice, because another file has them, too."""
    for path, known in stored_results(folder):
        if path == target:
            continue
        if known.checksum == result.checksum:
            raise ClientFormatError(f"already imported as {known.source} (hint: delete {path} to import it again)")
        if _host_of(known) == _host_of(result) and have_same_operations(known, result):
            reason = f"not imported, because {known.source} has the same operations, which count once"
            raise ClientFormatError(f"{reason} (hint: delete {path} to import this file instead)")


def _host_of(result: ClientResult) -> str:
    """Return the directory of the client host from which a result was collected; "" for other results."""
    return result.source.partition(f"/{FILES_FOLDER}/")[0] if f"/{FILES_FOLDER}/" in result.source else ""


def _require_overlap(run: Run, result: ClientResult, times: LoadTimes) -> None:
    """Raise ClientFormatError if the result and the run have no time in common."""
    span_s = result.span_s
    if span_s is None:
        raise ClientFormatError("no operations")
    begin_s, end_s = span_s
    run_end_s = _command_times(run).end_s if run.end_s is None else run.end_s
    if begin_s < run_end_s and run.begin_s < end_s:
        return
    # How far the client's clock was ahead if the result began when the command did.
    offset_s = begin_s - times.begin_s
    ranges = (
        f"its operations, {_range_text(begin_s, end_s)}, do not overlap the run, {_range_text(run.begin_s, run_end_s)}"
    )
    raise ClientFormatError(f"{ranges} (hint: if the client's clock was wrong, use --client-clock {offset_s:.1f})")


def _range_text(begin_s: float, end_s: float) -> str:
    return f"{local_time(begin_s)} to {local_time(end_s, '%H:%M:%S')}"


def result_lines(results: Sequence[ClientResult]) -> list[str]:
    """Return a description of the results: a line for each operation, followed by notes."""
    lines = []
    for result in results:
        for operation in result.operations:
            total = total_within(operation, -inf, inf)
            if total is not None:
                name = f"{result.source}: {operation.name}".removesuffix(": ")
                lines.append(one_line(f"{name}: {_total_text(total)}"))
        if result.has_only_service_time:
            lines.append(f"{one_line(result.source)}: coordinated omission possible: only the service time is known")
        lines += [one_line(f"{result.source}: {text}") for text in result.notes]
    return lines


def _total_text(total: ClientInterval) -> str:
    """Return the throughput, errors and latencies of an operation; latencies that are unknown are left out."""
    length_s = max(total.end_s - total.begin_s, 0.001)
    parts = (
        f"{total.completed:,} operations in {length_s:.0f} s ({total.completed / length_s:,.0f}/s)",
        f"{total.failed:,} errors",
        _latency_text(total),
    )
    return "; ".join(filter(None, parts))


def _latency_text(total: ClientInterval) -> str:
    """Return the percentiles of the response time or, if it is unknown, of the service time; "" if there are none."""
    latency = total.response or total.service
    percentiles = latency.percentiles_s(PERCENTAGES) if latency else ()
    values = ", ".join(
        f"p{name} {value_s * 1000:.2f} ms"
        for name, value_s in zip(PERCENTAGES, percentiles, strict=False)
        if value_s is not None
    )
    return f"{values} ({'response' if total.response else 'service'} time)" if values else ""
