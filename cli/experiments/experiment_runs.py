"""What sweeps and searches have in common: creating and resuming them, their settings, and writing results."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import join
from typing import Generic, TypeVar

from cli import run_folder
from cli.errors import CasstatError, note
from cli.record.command.supervisor import GRACE_S
from cli.record.record_program import RecordSettings
from cli.record.ssh.ssh_agent import report_spools
from cli.run_folder import RUNS_SUBFOLDER, UNFINISHED_SUBFOLDER, try_lock
from collector.file_access import file_errors, replace_file
from collector.printable import excerpts, one_line, single_line
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import SweepSettings
from collector.runs.run_file import RunFileError, is_run, read_run
from exporters.charts.all_plots import Plot, write
from exporters.charts.gnuplot_page import GnuplotError, draw
from exporters.charts.plot_data import PlotData

PLOTS_FOLDER = "plots"
_SHOWN_CHARS = 80
_LABELS = {"clients": "--client", "client_hosts": "--client-host", "seeds": "--seed", "tags": "--tag"}
State = TypeVar("State")


@dataclass(frozen=True)
class Experiment(Generic[State]):
    """How a kind of experiment, sweeps or searches, keeps its state: the settings, and the runs that have ended.

    kind         what messages call the experiment.
    file         the name of the file with the state.
    read         returns the state in a directory. Raises CasstatError.
    write        replaces the state in a directory. Raises OSError.
    differences  yields how an existing state differs from the planned one, so that it cannot be resumed.
    resumed      returns the state with which the existing one in a directory is resumed as planned; by default, that.
    """

    kind: str
    file: str
    read: Callable[[Path], State]
    write: Callable[[Path, State], None]
    differences: Callable[[State, State], Iterator[str]]
    resumed: Callable[[Path, State, State], State] = lambda _folder, existing, _planned: existing

    @contextmanager
    def opened(self, folder: Path, planned: State, *, resume: bool) -> Iterator[State]:
        """Create a directory with the planned state or resume an existing one, lock it, and yield the state.

        Raises CasstatError.
        """
        exists = (folder / self.file).exists()
        if resume and not exists:
            raise CasstatError(f"{folder}: there is no {self.kind} to resume")
        if exists and not resume:
            raise CasstatError(f"{folder}: already contains a {self.kind} (hint: continue it with --resume)")
        with (
            nullcontext() if resume else run_folder.created(folder),
            try_lock(folder / run_folder.LOCK_FILE, creating=True) as is_free,
        ):
            if not is_free:
                raise CasstatError(f"{folder}: another process is running this {self.kind}")
            if resume:
                planned = self._resumed(folder, planned)
            else:
                run_folder.require_empty(folder)
            self.save(folder, planned)
            yield planned

    def _resumed(self, folder: Path, planned: State) -> State:
        existing = self.read(folder)
        if found := list(self.differences(existing, planned)):
            text = f"{folder}: contains another {self.kind}: {'; '.join(found)}"
            raise CasstatError(single_line(f"{text} (hint: use the same options, or choose another directory with -o)"))
        return self.resumed(folder, existing, planned)

    def save(self, folder: Path, state: State) -> None:
        """Replace the state in a directory. Raises CasstatError."""
        with file_errors(folder, CasstatError):
            self.write(folder, state)


def common_settings(
    record: RecordSettings, redactor: Redactor, before: Sequence[str] = (), after: Sequence[str] = ()
) -> SweepSettings:
    """Return the settings that runs have in common, without secrets.

    `before` and `after` are the words of the commands that run before and after each run.
    """
    return SweepSettings(
        redactor.words(record.command),
        redactor.words(tuple(before)),
        redactor.words(tuple(after)),
        record.nodes,
        record.seeds,
        record.client_hosts,
        tuple(map(redactor.text, record.clients)),
        record.duration,
        record.warm_up,
        record.cool_down,
        "" if record.mark_regex is None else redactor.text(record.mark_regex.pattern.decode(errors="backslashreplace")),
        tuple(redactor.text(f"{key}={value}") for key, value in record.tags),
    )


def settings_differences(existing: SweepSettings, planned: SweepSettings) -> Iterator[str]:
    """Yield how existing settings differ from the planned ones."""
    for field in fields(existing):
        before, after = (_value_text(getattr(settings, field.name)) for settings in (existing, planned))
        if before != after:
            label = _LABELS.get(field.name, field.name.removesuffix("_s").replace("_", "-"))
            before, after = excerpts(single_line(before), single_line(after), _SHOWN_CHARS)
            yield f"its {label} is {before} instead of {after}"


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"'{join(value)}'" if value else "absent"
    if isinstance(value, float):
        return f"{value:g} s"
    return f"'{value}'" if value else "absent"


def set_aside_unfinished(folder: Path, ended: Collection[str]) -> None:
    """Move the runs of the sweep or search in `folder` that are not in `ended` to UNFINISHED_SUBFOLDER.

    `ended` has the directories of the runs that ended, relative to `folder`. If another run has only just been
    interrupted, wait until its command has certainly ended. Raises CasstatError.
    """
    runs = folder / RUNS_SUBFOLDER
    with file_errors(folder, CasstatError):
        for path in sorted(runs.iterdir()) if runs.is_dir() else []:
            if f"{RUNS_SUBFOLDER}/{path.name}" not in ended:
                _set_aside(folder, path)


def _set_aside(folder: Path, run: Path) -> None:
    if run_folder.is_being_recorded(run):
        raise CasstatError(f"{run}: another process is recording this run")
    alive_s = run_folder.last_alive_s(run)
    if alive_s is not None:
        # The supervisor of a command ends it within this time after its owner has died.
        time.sleep(min(GRACE_S, max(0.0, alive_s + GRACE_S - time.time())))
    parent = folder / UNFINISHED_SUBFOLDER
    parent.mkdir(exist_ok=True)
    names = (run.name, *(f"{run.name}~{number}" for number in range(2, 10_000)))
    target = next(parent / name for name in names if not (parent / name).exists())
    run.rename(target)
    note(f"{run.name} did not end; it will be repeated, and its files are in {target}")
    if is_run(target):
        try:
            report_spools(read_run(target))
        except (OSError, RunFileError) as error:
            note(f"{target}: {one_line(error)}")


def write_tables(folder: Path, *, markdown: str, csv: str, json: str) -> None:
    """Write the results. Raises CasstatError."""
    with file_errors(folder, CasstatError):
        for suffix, text in (("md", markdown), ("csv", csv), ("json", json)):
            replace_file(folder / f"results.{suffix}", text.encode(errors="replace"))


def draw_plots(folder: Path, name: str, facts: Sequence[str], plots: Sequence[Plot]) -> None:
    """Draw plots with the facts as their footer; if that fails, print why."""
    try:
        draw(write(PlotData(name, 1.0, (), {}, footer=facts), folder / PLOTS_FOLDER, plots=plots))
    except GnuplotError as error:
        note(str(error))
    except OSError as error:
        note(f"{error.filename or folder}: {error.strerror}")
