"""The option --redact, which names secrets that have no known form."""

import re

import click


class SecretPattern(click.ParamType["re.Pattern[str]"]):
    """The parameter type of --redact."""

    name = "pattern"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> "re.Pattern[str]":
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(str(value), re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            # The pattern itself may be a secret.
            self.fail(f"not a regular expression: {getattr(error, 'msg', error)}", param, ctx)


redact_option = click.option(
    "--redact",
    type=SecretPattern(),
    multiple=True,
    metavar="REGEX",
    help="Also replace matches of REGEX, or its first group, in all that is written (repeatable).  [known forms]",
)
