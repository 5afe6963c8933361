"""The documents say what the code does."""

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
from collector.catalogue import CATALOGUE
from collector.journal.format_version import FULL_EVERY
from exporters.catalogue_page import page
from exporters.line.view import View

ROOT = Path(__file__).parent.parent
README_COMMANDS = [line for line, _ in commands((ROOT / "README.md").read_text()) if line.startswith("casstat")]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_the_page_of_metrics_is_current() -> None:
    wanted = page(metric for _, metric in sorted(CATALOGUE.items()))
    assert (ROOT / "docs" / "metrics.md").read_text() == wanted, "run `make metrics`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_every_command_has_a_line_of_help_and_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in command_names():
        assert short_help(name).endswith(".")
        assert f"casstat {name}" in readme


def test_help_states_how_often_the_journal_is_synchronised() -> None:
    stated = [
        option.help or ""
        for command, name in ((line_command, "write_sync"), (agent_command, "journal_sync"))
        for option in command.params
        if option.name == name and isinstance(option, click.Option)
    ]
    assert [text.endswith(f"[frame: every {FULL_EVERY} ticks]") for text in stated] == [True, True]


@pytest.mark.parametrize("line", README_COMMANDS)
def test_every_command_in_the_readme_is_understood(line: str) -> None:
    words = shlex.split(line.partition(">")[0].partition("&")[0])[1:]
    name = words.pop(0) if words and words[0] in command_names() else LINE
    command: click.Command = importlib.import_module(f"cli.commands.{name}").command
    if isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    # A path need not exist here.
    with suppress(click.BadParameter):
        command.make_context("casstat", words)


def test_every_column_of_the_line_is_explained_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    explained = set(re.findall(r"`([^`\s]+)`", readme[readme.index("## Columns") :]))
    for column in View(disk="vda", interface="eth0", percentiles=True).text_columns:
        in_a_range = re.fullmatch(r"%(system|idle|iowait)|Rd95th|Wrt99th", column.header)
        assert column.header in explained or in_a_range, column.header


def test_every_setting_of_the_agent_is_on_its_page() -> None:
    """UPDATE_GOLDEN=1 writes them there."""
    path = ROOT / "docs" / "agent.md"
    before, _, rest = path.read_text().partition("<!-- settings -->\n")
    _, _, after = rest.partition("<!-- /settings -->\n")
    rows = [setting_row(name, option) for name, option in sorted(settings_of(agent_command).items())]
    wanted = "\n".join(
        [before + "<!-- settings -->", "| setting | what |", "|---|---|", *rows, "<!-- /settings -->", after]
    )
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(wanted)
    assert path.read_text() == wanted, "run UPDATE_GOLDEN=1 make check"


def setting_row(name: str, option: click.Option) -> str:
    default = option.default
    said = f" [{default}]" if option.show_default and default not in (None, ()) else ""
    text = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"| `{name}` | {text}{said} |"


def test_every_make_target_in_the_pages_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in PAGES:
        assert set(re.findall(r"`(?:UPDATE_GOLDEN=1 )?make (\w+)`", path.read_text())) <= targets
