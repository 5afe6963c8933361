"""Record to a spool for casstat on another host

`casstat record ssh://HOST` runs this command on HOST.
"""

from pathlib import Path

import click


@click.command(help=__doc__)
@click.argument("folder", metavar="DIR")
@click.option("--existing", is_flag=True, help="Do not create DIR if it does not exist.")
@click.option("--keep", is_flag=True, help="Run the agent without a client.")
@click.option("--source", default="auto", metavar="SOURCE", help="The agent's source.")
@click.option("--lease", type=float, metavar="SECONDS", help="Time without a heartbeat after which the agent stops.")
def command(folder: str, existing: bool, keep: bool, source: str, lease: float | None) -> None:
    from cli.record.ssh import remote_spool
    from cli.run_folder import SPOOL_FOLDER

    if not SPOOL_FOLDER.fullmatch(folder):
        raise click.UsageError("DIR is not the name of a spool")
    lease_s = remote_spool.LEASE_S if lease is None else lease
    if keep:
        remote_spool.keep(Path(folder), lease_s, source)
    else:
        remote_spool.attend(Path(folder), lease_s, source, may_create=not existing)
