"""The views of a run: of its nodes and of its client hosts, whose recordings are read once for all views."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cli.errors import CasstatError, errors_as
from cli.parameters.parameter_types import SshAddressError, labels_of, parse_ssh_address
from cli.recordings.merge_program import recording_views
from cli.recordings.recording_arguments import MergeSettings, clocks_of, read_run_in
from cli.recordings.views import View, Views, job_of
from collector.file_access import file_errors
from collector.merge.merge_job import Merged
from collector.merge.recordings import recordings, sessions
from collector.runs.run import ClientHost, Run
from exporters.rows.operation_columns import Operations


@dataclass(frozen=True)
class RunViews:
    """A run in a directory, and the views of its nodes and of its client hosts; the latter need a grid."""

    folder: Path
    run: Run
    nodes: Views
    client_hosts: Views

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.folder.resolve().name


def run_views(folder: Path, run: Run | None = None) -> RunViews:
    """Return an object for views of a run, which prints no notes about its recordings.

    `run` is what the directory will contain, unless it is what its file contains now. Raises CasstatError.
    """
    run = run or read_run_in(folder)
    nodes = recording_views(MergeSettings((folder,)), quiet=True)
    return RunViews(folder, run, nodes, Views(partial(_merged_client_hosts, folder, run)))


def _merged_client_hosts(folder: Path, run: Run, views: Sequence[View[Any]]) -> list[tuple[Merged[Any], Operations]]:
    """Return the results for the client hosts with a recording. Raises CasstatError and TooManySeriesError."""
    from collector.merge.merge import merge_all

    labels = _labels(run.client_hosts)
    hosts = {label: host for label, host in zip(labels, run.client_hosts, strict=True) if host.folder}
    operations = Operations()
    with file_errors(folder, CasstatError):
        # The sessions of hosts with the same name must not be combined, so they get the hosts' labels.
        host_recordings, _ = recordings(
            [
                replace(session, node=label)
                for label, host in hosts.items()
                for session in sessions([folder / host.folder])[0]
            ]
        )
        clocks = clocks_of(folder, run, host_recordings)
        jobs = []
        for view in views:
            if view.grid is None:
                raise ValueError("a view of client hosts without a grid")
            jobs.append(job_of(view, view.grid, clocks, operations))
        return [(merged, operations) for merged in merge_all(host_recordings, jobs)]


def _labels(hosts: Sequence[ClientHost]) -> list[str]:
    """Return the hosts' names or, if two hosts have the same name, labels for their addresses. Raises CasstatError."""
    names = [host.name for host in hosts]
    if len(set(names)) == len(names):
        return names
    with errors_as(CasstatError, SshAddressError):
        return labels_of([parse_ssh_address(host.address) for host in hosts])
