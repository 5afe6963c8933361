"""Read a client result for another casstat process

`casstat record` runs this command to import a file within limits of memory and time.
"""

import click


@click.command(help=__doc__)
def command() -> None:
    import json
    import sys

    from cli.runs.isolated_read import answer

    sys.stdout.buffer.write(answer(json.load(sys.stdin)))
