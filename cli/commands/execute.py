"""Run the command of a run on this client host

`casstat record --client-host ssh://HOST` runs this command on HOST.
"""

from pathlib import Path

import click


@click.command(help=__doc__)
@click.argument("folder", metavar="SPOOL")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND [ARG]...]")
@click.option("--collect", is_flag=True, help="Send the files that the command left behind.")
@click.option("--run", "run_name", default="", metavar="NAME", help="Name of the run.")
@click.option("--lease", type=float, metavar="SECONDS", help="Time without a heartbeat after which the command ends.")
def command(folder: str, words: tuple[str, ...], collect: bool, run_name: str, lease: float | None) -> None:
    from cli.record.clients import remote_command
    from cli.run_folder import SPOOL_FOLDER

    if not SPOOL_FOLDER.fullmatch(folder):
        raise click.UsageError("SPOOL is not the name of a spool")
    if collect:
        remote_command.collect(Path(folder))
    elif words:
        remote_command.attend(Path(folder), run_name, words, remote_command.LEASE_S if lease is None else lease)
    else:
        raise click.UsageError("no command given")
