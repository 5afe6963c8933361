"""The help page of `casstat` itself: examples, the common options or all of them by subject, and the commands."""

import inspect

import click

from cli.command_list import command_names, description_of

EXAMPLES = (
    ("casstat 10", "this node, every 10 s"),
    ("casstat top --seed 10.0.0.7", "the cluster on a screen"),
    ("casstat record --seed 10.0.0.7 -- ./load.sh", "a load test on all nodes"),
)
COMMON = "Common options"
OPTION_GROUPS = {
    COMMON: (
        *("with_time", "percentiles", "keyspace", "table", "tables", "compactions", "log", "write"),
        *("wide", "columns", "output", "jolokia"),
    ),
    "Rows": ("interval_option", "count_option", "epoch", "no_header", "caches", "read_repair", "disk", "net_interface"),
    "Events from the log": ("events", "log_pattern"),
    "Recording": ("journal_limit", "journal_sync"),
    "Node": ("node", "source", "jmx_port", "trusted_user", "wait"),
    "Jolokia": (
        *("jolokia_user", "jolokia_password_file", "jolokia_ca", "jolokia_cert", "jolokia_key"),
        *("jolokia_target", "jolokia_target_user", "jolokia_target_password_file"),
    ),
    "nodetool": ("nodetool", "jmx_user", "jmx_password_file"),
}
"""The options of the default command by subject; those that are not listed print something and exit."""
PRINTING = "Options that print and exit"
COMMAND_GROUPS = ("watch", "record", "analyse", "experiment", "monitor")


def help_page(context: click.Context, *, is_complete: bool = False) -> str:
    """Return the help page: the common options, or all options and what a row means if `is_complete`."""
    formatter = context.make_formatter()
    formatter.write_usage("casstat", "[OPTIONS] [INTERVAL] [COUNT]")
    formatter.write_usage("casstat", "COMMAND [ARGUMENT]...", prefix="       ")
    with formatter.section("Examples"):
        formatter.write_dl(EXAMPLES, col_max=50)
    _write_description(context, formatter, is_complete=is_complete)
    for title, rows in option_rows(context).items():
        if is_complete or title in (COMMON, PRINTING):
            with formatter.section(title):
                formatter.write_dl(rows)
    _write_commands(formatter)
    formatter.write_paragraph()
    rest = "" if is_complete else ", and 'casstat --help-all' lists all options"
    formatter.write_text(f"'casstat help COMMAND' describes a command{rest}.")
    return formatter.getvalue().rstrip("\n")


def option_rows(context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the flags and the help of all options that are not hidden, by subject."""
    titles = {name: title for title, names in OPTION_GROUPS.items() for name in names}
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (*OPTION_GROUPS, PRINTING)}
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            rows[titles.get(str(parameter.name), PRINTING)].append(record)
    return rows


def _write_description(context: click.Context, formatter: click.HelpFormatter, *, is_complete: bool) -> None:
    paragraphs = inspect.cleandoc(context.command.help or "").split("\n\n")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("\n\n".join(paragraphs if is_complete else paragraphs[:2]))


def _write_commands(formatter: click.HelpFormatter) -> None:
    descriptions = {name: description_of(name) for name in command_names()}
    longest = max(map(len, descriptions))
    for group in COMMAND_GROUPS:
        with formatter.section(f"Commands to {group}"):
            rows = [(name.ljust(longest), text) for name, (of, text) in descriptions.items() if of == group]
            formatter.write_dl(rows)
