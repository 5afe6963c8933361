"""The help of `casstat` itself: short by default, complete on request, and the same for every command."""

import re

import click
import pytest

from cli.command_list import command_names, complete, description_of
from cli.commands.line import COMMAND_GROUPS, EXAMPLES, OPTION_GROUPS, command, option_rows
from cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    return out


def options_in(page: str) -> list[str]:
    """Return the names of the options that a help page describes, each by its last form."""
    return [line.split("  ")[1] for line in page.splitlines() if re.match(r"  -", line)]


def test_help_shows_examples_first_and_a_dozen_options(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "--help")
    assert page.index("Examples:") < page.index("Common options:") < page.index("Commands to watch:")
    assert len(EXAMPLES) == 3
    assert len(options_in(page)) <= 15
    assert len(page.splitlines()) < 80
    assert "--help-all" in page


def test_help_all_shows_every_option_under_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    page = printed(capsys, "--help-all")
    rows = option_rows(click.Context(command))
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    grouped = {name for names in OPTION_GROUPS.values() for name in names}
    assert {option.name for option in options} - grouped == {"help_all", "version"}
    assert [title for title in rows if f"{title}:\n" not in page] == []
    assert len(options_in(page)) == sum(map(len, rows.values())) == len(options) + 1


@pytest.mark.parametrize("name", command_names())
def test_every_command_is_in_one_group_of_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    group, summary = description_of(name)
    assert group in COMMAND_GROUPS
    section = printed(capsys, "--help").partition(f"Commands to {group}:\n")[2].partition("\n\n")[0]
    assert re.search(rf"^  {name} +{re.escape(summary)}$", section, re.MULTILINE)


@pytest.mark.parametrize("words", [["record"], ["demo", "up"], []])
def test_help_of_a_command_is_that_of_its_option(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "help", *words) == printed(capsys, *words, "--help")


def test_help_of_an_unknown_command_suggests_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "recrod"]) == 2
    assert "did you mean 'record'?" in capsys.readouterr().err


def completions(words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what bash is offered for the last word of a command line."""
    monkeypatch.setenv("_CASSTAT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert main([]) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    return [line.partition(",")[2] for line in out.splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("casstat re", {"record", "replay", "report"}),
        ("casstat help ca", {"capacity"}),
        ("casstat --wi", {"--wide"}),
        ("casstat 10 5 --wi", {"--wide"}),
        ("casstat 10 --format ", {"text", "json", "csv"}),
        ("casstat record --see", {"--seed"}),
        ("casstat demo u", {"up"}),
        ("casstat demo up --nod", {"--nodes"}),
        ("casstat merge --max-s", {"--max-series"}),
    ],
)
def test_the_shell_completes_commands_options_and_values(
    words: str, wanted: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(completions(words, capsys, monkeypatch)) == wanted


@pytest.mark.parametrize("name", command_names())
def test_the_shell_completes_the_options_of_every_command(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--help" in completions(f"casstat {name} --", capsys, monkeypatch)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_completion_script_names_the_variable(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CASSTAT_COMPLETE", f"{shell}_source")
    assert f"_CASSTAT_COMPLETE={shell}_complete" in printed(capsys)


def test_an_unknown_request_for_completion_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    for instruction in ("1", "bash", "tcsh_source"):
        assert complete(instruction) == 2
        assert "bash_source" in capsys.readouterr().err
