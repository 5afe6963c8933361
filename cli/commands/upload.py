"""Upload recordings or a run to object storage

PATH is the DIR given to `casstat -w DIR`, its subdirectory DIR/NODE, the journal of an agent, or a run directory.
URL is s3://BUCKET/PREFIX or file:///DIRECTORY; another server than Amazon's is given as
s3://BUCKET/PREFIX?endpoint=URL or in AWS_ENDPOINT_URL, and credentials in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY or a profile. Journals are uploaded in parts to URL/NODE, runs to URL/NAME. What the store
has already is not uploaded again.

merge, plot, replay, report, runs and fetch accept such URLs, and read only what a time range needs. `casstat agent
--to s3://BUCKET/PREFIX` uploads every five minutes.
"""

from pathlib import Path

import click

GROUP = "monitor"


@click.command(help=__doc__)
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("url")
@click.option("--node", default="", metavar="NAME", help="Name of the node's directory in the store.  [as recorded]")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for a checkpoint to resume from.  [resume after the last part in the store]",
)
def command(path: Path, url: str, node: str, state: Path | None) -> None:
    from cli.recordings.object_storage import upload

    upload(path, url, node, state)
