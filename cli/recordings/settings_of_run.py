"""Reads the settings of a run's cluster from its recordings."""

from math import inf
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import NoDataError, merged
from cli.recordings.run_defaults import read_run_in
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import NodeRun
from collector.merge.node_settings import NEEDS, NodeSettings, settings_of
from exporters.results.comparison.run_settings import RunSettings


def run_settings(folder: Path) -> RunSettings:
    """Return the settings of a run in a directory. Raises CasstatError and click.UsageError."""
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended (hint: run 'casstat fetch --recover {folder}')")
    grid = SpanGrid(inf, spans=((run.begin_s, run.end_s),))
    try:
        result, _ = merged(MergeSettings((folder,)), node_settings, NEEDS, grid=grid, quiet=True)
    except NoDataError as error:
        raise CasstatError(f"{folder}: {error}") from None
    return RunSettings(run, {node.node: node.product for node in result.nodes})


def node_settings(_: object, node: NodeRun) -> NodeSettings:
    """Return a node's settings; merges can call it in another process."""
    return settings_of(node)
