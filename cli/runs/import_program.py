"""The work of `casstat import`."""

from collections.abc import Sequence
from pathlib import Path
from re import Pattern

import click

from cli.errors import CasstatError, echo, note
from cli.recordings.recording_arguments import read_run_in, run_in
from cli.run_folder import recovery_hint, require_not_recorded
from cli.runs.client_results import expanded, imported, result_lines
from cli.runs.finish import summarise
from collector.load_results.client_result import ClientResult
from collector.redaction.redactor import Redactor
from collector.runs.run import Run


def import_files(
    folder: Path, texts: Sequence[str], client_clock_s: float | None, patterns: Sequence[Pattern[str]] = ()
) -> None:
    """Import files, each FILE or FORMAT:FILE, into the run in a directory; print and update its summary.

    Secrets, which include the matches of `patterns`, are replaced. If some files cannot be imported, the
    others are. Raises CasstatError and click.UsageError.
    """
    run_in(folder)
    require_not_recorded(folder)
    if client_clock_s is not None and not abs(client_clock_s) < 1e10:
        raise click.BadParameter("must be a number of seconds", param_hint="--client-clock")
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run is incomplete {recovery_hint(folder)}")
    results, errors = _imported(folder, run, texts, client_clock_s, Redactor(tuple(patterns)))
    for line in result_lines(results):
        echo(line)
    if results:
        summarise(folder, run)
    for error in errors[:-1]:
        note(str(error))
    if errors:
        raise errors[-1]


def _imported(
    folder: Path, run: Run, texts: Sequence[str], client_clock_s: float | None, redactor: Redactor
) -> tuple[list[ClientResult], list[CasstatError]]:
    """Import files; return the results, and why others cannot be imported."""
    results: list[ClientResult] = []
    errors: list[CasstatError] = []
    for text in texts:
        try:
            for path, choice in expanded(text):
                try:
                    results.append(imported(folder, run, path, choice, client_clock_s, redactor=redactor))
                except CasstatError as error:
                    errors.append(error)
        except CasstatError as error:
            errors.append(error)
    return results, errors
