"""Generate load on the demo's nodes"""

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...]) -> None:
    """Generate load on the demo's nodes

    `casstat demo up --load RATE` runs this command.
    """
    from cli.setup.demo.load_generator import main

    main(words)
