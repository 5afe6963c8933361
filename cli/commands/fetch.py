"""Fetch the recordings of a past period from agents

NODE is the address of a node's agent (10.0.0.7, https://10.0.0.7:17199). Agents record continuously, so any period
that their journals still contain can be fetched. It can also be the URL of object storage that agents upload to
(see `casstat upload --help`). DIR becomes a run: a directory with each node's recording and
clock offset; merge, plot and top --replay correct times by these offsets.

The exit code is 1 if a node could not be fetched completely; the other nodes are still fetched.
"""

from pathlib import Path
from typing import Any

import click

from cli.parameters.access_options import agent_options
from cli.parameters.parameter_types import Duration, range_options, run_name
from cli.parameters.recording_options import RecordingPath, output_option

GROUP = "record"


@click.command(help=__doc__)
@click.argument("nodes", nargs=-1, metavar="NODE...")
@click.option("--last", type=Duration(1.0), metavar="DURATION", help="Length of the period, which ends now.")
@range_options
@output_option("Directory to create for the run, or its URL in object storage.", RecordingPath())
@click.option(
    "--recover",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of a run to complete, for example after its recorder died. Not with NODE or options for a new run.",
)
@click.option("--name", type=run_name, metavar="NAME", help="Name of the run.  [the directory's name]")
@agent_options
def command(**options: Any) -> None:
    recovered: Path | None = options.pop("recover")
    if recovered is not None:
        from cli.record.recovery import recover

        if any(value for name, value in options.items() if name != "agent"):
            raise click.UsageError("--recover cannot be combined with NODE or options for a new run")
        recover(recovered, options["agent"])
        return
    if not options["nodes"]:
        raise click.UsageError("no node given (hint: run 'casstat fetch 10.0.0.7 --last 1h -o DIR')")
    if options["folder"] is None:
        raise click.UsageError("no directory given (hint: use -o DIR)")
    from cli.recordings.object_storage import local_output
    from cli.runs.fetch_program import FetchSettings, fetch

    with local_output(options.pop("folder")) as output:
        fetch(FetchSettings(folder=output.folder, **options))
