"""The results of a sweep: reads the values of each run, and writes the tables after it and the plots at the end.

The values are kept in a file of the run, so that a long sweep need not read them again.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from shlex import join

import click

from cli.errors import CasstatError, note
from cli.experiments import experiment_runs
from cli.parameters.recording_options import memory_limit
from cli.recordings.recording_arguments import results_in
from cli.recordings.views import NoDataError, View
from cli.runs.run_summary import SUMMARY_FILE, measured_phases, read_summaries
from cli.runs.run_views import run_views
from collector.file_access import file_errors, read_whole, replace_file
from collector.merge.grid import SpanGrid
from collector.node.metrics.requests import COUNTED
from collector.printable import count_text, local_time, one_line
from collector.recording.header import MAX_MEMORY_BYTES
from collector.runs.parameter_sweep import Sweep, SweepRun
from collector.runs.run import WARM_UP, Run, command_name
from collector.runs.run_file import RunFileError, read_run
from exporters.results.summary.phase_summary import NEEDS, coverage_texts, phase_values, time_of_day
from exporters.results.sweep.sweep_output import csv_text, json_text, markdown_text
from exporters.results.sweep.sweep_rows import (
    SERVER,
    Outcome,
    RunValues,
    SweepTable,
    client_run_values,
    content_of_values,
    server_run_values,
    sweep_table,
    values_of_content,
)

VALUES_FILE = "sweep-values.json"


class Outcomes:
    """The outcomes of the runs that have ended, by combination."""

    def __init__(self, sweep: Sweep) -> None:
        self._combinations = sweep.combinations()
        self._outcomes: list[list[Outcome]] = [[] for _ in self._combinations]

    def add(self, folder: Path, index: int, run: SweepRun) -> None:
        """Add a run of the combination with this index; `folder` is the sweep's directory."""
        outcome: Outcome = run.problem
        if not outcome:
            try:
                outcome = run_values(folder / run.folder)
            except CasstatError as error:
                outcome = one_line(error)
            except click.ClickException as error:
                outcome = one_line(error.format_message())
            if isinstance(outcome, str):
                note(f"{run.folder}: {outcome}")
        self._outcomes[index].append(outcome)

    def table(self, sweep: Sweep) -> SweepTable:
        return sweep_table(sweep.name, self._combinations, self._outcomes, sweep.repeats, sweep.items_per_op)


def write_tables(folder: Path, sweep: Sweep, table: SweepTable) -> None:
    """Write the results as Markdown, CSV and JSON. Raises CasstatError."""
    markdown = markdown_text(table, facts_of(sweep))
    experiment_runs.write_tables(folder, markdown=markdown, csv=csv_text(table), json=json_text(table))


def facts_of(sweep: Sweep) -> Sequence[str]:
    """Return lines about the settings of a sweep."""
    settings = sweep.settings
    combinations = count_text(sweep.run_count // sweep.repeats, "combination")
    repeats = count_text(sweep.repeats, "run") if sweep.repeats > 1 else "one run"
    times = [f"{settings.duration_s:g} s each"] if settings.duration_s is not None else []
    times += [f"warm-up {settings.warm_up_s:g} s"] if settings.warm_up_s else []
    return [
        f"load generator: {command_name(settings.command)}",
        f"command: {join(settings.command)}",
        ", ".join([f"{combinations} with {repeats} of each", *times, f"{sweep.order} order"]),
        f"begun {local_time(sweep.begin_s)}, casstat {sweep.casstat}",
    ]


def run_values(folder: Path) -> RunValues:
    """Return the values of the run in a directory.

    They are read again if the run's summary is newer, for instance because client results have been imported. Raises
    CasstatError and click.ClickException.
    """
    file = folder / VALUES_FILE
    try:
        if file.stat().st_mtime >= (folder / SUMMARY_FILE).stat().st_mtime:
            return values_of_content(json.loads(read_whole(file)))
    except (OSError, ValueError, RecursionError):
        # The values are read from the run instead.
        pass
    with memory_limit(MAX_MEMORY_BYTES):
        values = _with_coverage(folder, _measured(folder))
    _keep(file, values)
    return values


def _with_coverage(folder: Path, values: RunValues) -> RunValues:
    """Return the values with the intervals that nodes lack according to the run's summary.

    Raises CasstatError if the servers' values do not include all nodes.
    """
    summaries = read_summaries(folder)
    if not summaries:
        return values
    last = summaries[-1]
    texts = "; ".join(coverage_texts(last.incomplete, time_of_day))
    if values.source == SERVER and last.values.get("nodes_missing"):
        raise CasstatError(f"not all nodes are included, so the servers' throughput is unknown: {texts}")
    missing = last.values.get("node_intervals_missing")
    return replace(values, intervals_missing=missing if isinstance(missing, int | float) else None, remark=texts)


def _keep(file: Path, values: RunValues) -> None:
    with file_errors(file, CasstatError):
        replace_file(file, json.dumps(content_of_values(values), allow_nan=False).encode())


def _measured(folder: Path) -> RunValues:
    """Return the values of the measured phases: the clients', or the servers' if there are no client results.

    Raises CasstatError and click.ClickException.
    """
    try:
        run = read_run(folder)
    except (OSError, RunFileError) as error:
        raise CasstatError(f"{folder}: {error}") from None
    phases = measured_phases(run)
    if not phases:
        return RunValues(SERVER, None)
    measured = (phases[0].begin_s, phases[-1].end_s)
    warm_up = next(((phase.begin_s, phase.end_s) for phase in run.phases if phase.name == WARM_UP), None)
    results = results_in(folder)
    if results:
        return client_run_values(results, measured, None if warm_up is None else (warm_up[0], measured[1]))
    return _server_values(folder, run, measured, warm_up)


def _server_values(
    folder: Path, run: Run, measured: tuple[float, float], warm_up: tuple[float, float] | None
) -> RunValues:
    missing = [node.name or node.address for node in run.nodes if not node.folder]
    if missing:
        raise CasstatError(f"not recorded, so the servers' throughput is unknown: {', '.join(missing)}")
    spans = (measured,) if warm_up is None else (warm_up, measured)
    try:
        whole, operations = View(run_views(folder, run).nodes, _nothing, NEEDS, SpanGrid(inf, spans=spans)).merged()
    except NoDataError:
        return RunValues(SERVER, None)
    nodes = len(whole.nodes)
    main = whole.cluster.get(len(spans) - 1)
    if main is None:
        return RunValues(SERVER, None)
    before = whole.cluster.get(0) if warm_up is not None else None
    return server_run_values(
        phase_values(operations, main, nodes),
        [operations.buckets(main.sample, operation.scope) for operation in COUNTED],
        None
        if before is None or warm_up is None
        else (phase_values(operations, before, nodes), warm_up[1] - warm_up[0], measured[1] - measured[0]),
    )


def _nothing(*_: object) -> None:
    """Return None for each node of a merge, whose other processes cannot receive a lambda function."""
