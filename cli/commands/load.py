"""Generate load on the demo's nodes

`casstat demo up --load RATE` runs this command.
"""

import click


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    from cli.setup.demo.load_generator import main

    main(words)
