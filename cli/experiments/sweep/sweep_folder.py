"""The directory of a sweep: creates it, or opens the one of an interrupted sweep, and locks it."""

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from cli import run_folder
from cli.errors import CasstatError
from cli.experiments.sweep.sweep_settings import SweepOptions
from cli.run_folder import try_lock
from cli.runs.common_settings import differences
from collector.printable import excerpts, single_line
from collector.runs.parameter_sweep import (
    FILE,
    Sweep,
    SweepFileError,
    SweptParameter,
    read_sweep,
    redacted_parameters,
    write_sweep,
)
from collector.runs.run_texts import accepted_name, command_name

SEED_BITS = 32
_SHOWN_CHARS = 80


def new_sweep(options: SweepOptions, begin_s: float) -> Sweep:
    """Return a sweep without runs."""
    return Sweep(
        accepted_name(options.redactor.text(options.record.name or command_name(options.record.command))),
        begin_s,
        version("casstat"),
        redacted_parameters(options.parameters, options.redactor),
        options.settings,
        options.order,
        secrets.randbits(SEED_BITS),
        options.repeats,
        options.pause_s,
        options.items_per_op,
    )


@contextmanager
def opened_sweep(options: SweepOptions) -> Iterator[tuple[Path, Sweep]]:
    """Create the directory of a new sweep or open an existing one, and lock it; yield the directory and the sweep.

    Raises CasstatError.
    """
    planned = new_sweep(options, time.time())
    folder = options.record.folder or run_folder.default_folder(planned.name, planned.begin_s)
    is_new = not options.resume
    if options.resume and not (folder / FILE).exists():
        raise CasstatError(f"{folder}: there is no sweep to resume")
    if not options.resume and (folder / FILE).exists():
        raise CasstatError(f"{folder}: already contains a sweep (hint: continue it with --resume)")
    with (
        run_folder.created(folder) if is_new else nullcontext(),
        try_lock(folder / run_folder.LOCK_FILE, creating=True) as is_free,
    ):
        if not is_free:
            raise CasstatError(f"{folder}: another process is running this sweep")
        if is_new:
            run_folder.require_empty(folder)
            save(folder, planned)
            yield folder, planned
        else:
            sweep = _resumed(folder, planned)
            save(folder, sweep)
            yield folder, sweep


def save(folder: Path, sweep: Sweep) -> None:
    """Write the sweep's file. Raises CasstatError."""
    try:
        write_sweep(folder, sweep)
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def _resumed(folder: Path, planned: Sweep) -> Sweep:
    """Return the sweep in a directory, which must have the planned parameters and settings. Raises CasstatError.

    The number of repeats may be higher than before; the pause and the items per operation are the planned ones. Runs
    without a directory are forgotten, so that they are repeated.
    """
    try:
        existing = read_sweep(folder)
    except (OSError, SweepFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CasstatError(f"{folder / FILE}: {reason}") from None
    found = list(_differences(existing, planned))
    if found:
        hint = "choose another directory with -o"
        raise CasstatError(f"{folder}: contains another sweep: {'; '.join(found)} (hint: {hint})")
    runs = tuple(run for run in existing.runs if (folder / run.folder).is_dir())
    return replace(
        existing, repeats=planned.repeats, pause_s=planned.pause_s, items_per_op=planned.items_per_op, runs=runs
    )


def _differences(existing: Sweep, planned: Sweep) -> Iterator[str]:
    """Yield how an existing sweep differs from the planned one."""
    if existing.parameters != planned.parameters:
        before, after = map(_parameters_text, (existing.parameters, planned.parameters))
        before, after = excerpts(before, after, _SHOWN_CHARS)
        yield f"its parameters are {before} instead of {after}"
    yield from differences(existing.settings, planned.settings)
    if existing.order != planned.order:
        yield f"its order is {existing.order} instead of {planned.order}"
    if existing.repeats > planned.repeats:
        yield f"it has {existing.repeats} repeats, and their number can only be raised"


def _parameters_text(parameters: Sequence[SweptParameter]) -> str:
    return single_line(" ".join(f"{parameter.name}={','.join(parameter.values)}" for parameter in parameters))
