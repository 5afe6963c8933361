"""Reads the settings of a run's cluster from its recordings."""

from collections.abc import Mapping
from dataclasses import fields, replace
from math import inf
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import NoDataError, merged
from cli.recordings.run_defaults import read_run_in
from collector.cluster.grid import SpanGrid
from collector.cluster.merge_job import NodeRun
from collector.cluster.node_settings import NodeSettings, first_settings, settings_of
from collector.journal.segments import journal_files
from collector.runs.run import Run
from exporters.comparison.run_settings import RunSettings


def run_settings(folder: Path) -> RunSettings:
    """Return the settings of a run in a directory. Raises CasstatError and click.UsageError."""
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended (hint: run 'casstat fetch --recover {folder}')")
    grid = SpanGrid(inf, spans=((run.begin_s, run.end_s),))
    try:
        result, _ = merged(MergeSettings((folder,)), node_settings, grid=grid, quiet=True)
    except NoDataError as error:
        raise CasstatError(f"{folder}: {error}") from None
    return completed_settings(folder, run, {node.node: node.product for node in result.nodes})


def node_settings(_: object, node: NodeRun) -> NodeSettings:
    """Return a node's settings; merges can call it in another process."""
    return settings_of(node)


def completed_settings(folder: Path, run: Run, merged_settings: Mapping[str, NodeSettings]) -> RunSettings:
    """Return the run's settings; those that are unknown in its merged nodes are read from before the run.

    Raises CasstatError.
    """
    settings = dict(merged_settings)
    folders = {node.name: node.folder for node in run.nodes if node.folder}
    for name in folders.keys() & settings.keys():
        try:
            settings[name] = _completed(settings[name], folder / folders[name])
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
    return RunSettings(run, settings)


def _completed(settings: NodeSettings, folder: Path) -> NodeSettings:
    """Return a node's settings with those that are unknown taken from its recording's beginning. Raises OSError."""
    unknown = {item.name for item in fields(settings) if not getattr(settings, item.name)}
    if not unknown:
        return settings
    earlier = first_settings(journal_files(folder))
    return replace(settings, **{name: value for name, value in earlier.items() if name in unknown})
