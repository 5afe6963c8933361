"""The documentation matches the code."""

import importlib
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest

from acceptance.readme_walk import commands
from cli.agent.agent_config import settings_of
from cli.commands.agent import command as agent_command
from cli.commands.line import command as line_command
from cli.main import LINE, command_names, short_help
from cli.parameters.renamed_options import Renamed
from collector.catalogue import CATALOGUE
from collector.journal.format_version import FULL_EVERY
from exporters.catalogue_page import page
from exporters.line.view import View

ROOT = Path(__file__).parent.parent
README_COMMANDS = [line for line, _ in commands((ROOT / "README.md").read_text()) if line.startswith("casstat")]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_the_metrics_page_is_current() -> None:
    wanted = page(metric for _, metric in sorted(CATALOGUE.items()))
    assert (ROOT / "docs" / "metrics.md").read_text() == wanted, "run `make metrics`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_have_a_target(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def command_of(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    return command


def all_commands() -> dict[str, click.Command]:
    """Return all commands and subcommands by their names."""
    commands = {name: command_of(name) for name in (LINE, *command_names())}
    for name, command in list(commands.items()):
        if isinstance(command, click.Group):
            commands |= {f"{name} {sub}": subcommand for sub, subcommand in command.commands.items()}
    return commands


COMMANDS = all_commands()


def test_the_readme_mentions_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in command_names():
        assert f"casstat {name}" in readme


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_summary_is_short_and_has_no_period(name: str) -> None:
    summary, _, rest = (COMMANDS[name].help or "").partition("\n")
    assert summary[0].isupper()
    assert len(summary) <= 60
    assert not summary.endswith(".")
    assert not rest.partition("\n")[0].strip()


@pytest.mark.parametrize("name", command_names())
def test_the_list_of_commands_shows_their_summaries(name: str) -> None:
    assert short_help(name) == (COMMANDS[name].help or "").partition("\n")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_option_help_is_a_sentence_that_does_not_start_with_a_question_word(name: str) -> None:
    options = [option for option in COMMANDS[name].params if isinstance(option, click.Option) and not option.hidden]
    for option in options:
        text, _, default = (option.help or "").partition("  [")
        assert re.match(r"(?!Who|What|When|Where|Which|Whether|How|Why)[A-Z]", text), option.name
        assert text.endswith((".", "…")), option.name
        assert not default or default.endswith("]"), option.name


def test_options_of_the_same_name_take_the_same_kind_of_value() -> None:
    kinds: dict[str, set[tuple[str, str]]] = {}
    for option in (option for command in COMMANDS.values() for option in command.params):
        if isinstance(option, click.Option) and not option.is_flag:
            former = option.former if isinstance(option, Renamed) else frozenset()
            for flag in set(option.opts) - former:
                kinds.setdefault(flag, set()).add((option.type.name, option.metavar or ""))
    # merge selects nodes by name, `demo up` starts a number of them; top also has sets of columns.
    assert {flag for flag, kind in kinds.items() if len(kind) > 1} == {"--nodes", "--columns"}


def test_help_states_the_default_of_journal_sync() -> None:
    texts = [
        option.help or ""
        for command, name in ((line_command, "journal_sync"), (agent_command, "journal_sync"))
        for option in command.params
        if option.name == name and isinstance(option, click.Option)
    ]
    assert [text.endswith(f"[frame: every {FULL_EVERY} ticks]") for text in texts] == [True, True]


@pytest.mark.parametrize("line", README_COMMANDS)
def test_every_command_in_the_readme_is_valid(line: str) -> None:
    words = shlex.split(line.partition(">")[0].partition("&")[0])[1:]
    name = words.pop(0) if words and words[0] in command_names() else LINE
    command = command_of(name)
    if isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    # The paths do not exist here.
    with suppress(click.BadParameter):
        command.make_context("casstat", words)


def test_the_readme_explains_every_column_of_the_line() -> None:
    readme = (ROOT / "README.md").read_text()
    explained = set(re.findall(r"`([^`\s]+)`", readme[readme.index("## Columns") :]))
    for column in View(disk="vda", interface="eth0", percentiles=True).text_columns:
        in_a_range = re.fullmatch(r"%(system|idle|iowait)|Rd95th|Wrt99th", column.header)
        assert column.header in explained or in_a_range, column.header


def test_the_agent_page_lists_every_setting() -> None:
    """UPDATE_GOLDEN=1 rewrites the table."""
    path = ROOT / "docs" / "agent.md"
    before, _, rest = path.read_text().partition("<!-- settings -->\n")
    _, _, after = rest.partition("<!-- /settings -->\n")
    rows = [setting_row(name, option) for name, option in sorted(settings_of(agent_command).items())]
    wanted = "\n".join(
        [before + "<!-- settings -->", "| setting | description |", "|---|---|", *rows, "<!-- /settings -->", after]
    )
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(wanted)
    assert path.read_text() == wanted, "run UPDATE_GOLDEN=1 make check"


def setting_row(name: str, option: click.Option) -> str:
    default = option.default
    default_text = f" [{default}]" if option.show_default and default not in (None, ()) else ""
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"| `{name}` | {text}{default_text} |"


def test_make_targets_in_the_documentation_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in PAGES:
        assert set(re.findall(r"`(?:UPDATE_GOLDEN=1 )?make (\w+)`", path.read_text())) <= targets
