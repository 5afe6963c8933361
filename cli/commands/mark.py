"""Mark the run that is being recorded

A mark begins a phase with TEXT as its name. Without --run, it is added to the run whose command calls casstat mark
($CASSTAT_RUN_DIR) or, outside a run's command, to the only run that is being recorded in casstat-runs.
"""

from pathlib import Path

import click

from collector.file_access import file_errors

GROUP = "record"


@click.command(help=__doc__)
@click.argument("text")
@click.option("--run", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Directory of the run.")
def command(text: str, folder: Path | None) -> None:
    from cli.errors import CasstatError
    from cli.runs.marks_file import active_run, append_mark, mark_text

    line = mark_text(text)
    if not line:
        raise click.BadParameter("a mark needs at least one printable character", param_hint="TEXT")
    run = active_run(folder)
    with file_errors(run, CasstatError):
        append_mark(run, line)
