"""Former names of options still work but are omitted from the help."""

from collections.abc import Sequence

import pytest

from cli.commands.attach import command as attach_command
from cli.commands.line import command as line_command
from cli.main import main
from cli.setup.attach.attach_steps import Agent


@pytest.mark.parametrize("command", ["merge", "plot", "replay", "top"])
def test_the_former_name_of_until_works_and_help_omits_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--until" in out
    assert "--to " not in out
    assert main([command, "--to", "nonsense", "x"]) == 2
    assert "Invalid value for '--until': 'nonsense' is not a valid time" in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["write", "journal"])
def test_both_names_of_the_journal_options_set_the_same_setting(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    context = line_command.make_context("casstat", [f"--{prefix}-limit", "3G", f"--{prefix}-sync", "tick"])
    assert (context.params["journal_limit"], context.params["journal_sync"]) == (3 << 30, "tick")
    monkeypatch.setenv(f"CASSTAT_{prefix.upper()}_LIMIT", "4G")
    monkeypatch.setenv(f"CASSTAT_{prefix.upper()}_SYNC", "never")
    context = line_command.make_context("casstat", [])
    assert (context.params["journal_limit"], context.params["journal_sync"]) == (4 << 30, "never")


def test_help_omits_the_former_names_of_the_journal_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help-all"]) == 0
    out = capsys.readouterr().out
    assert "--journal-limit" in out
    assert "--write-" not in out


@pytest.mark.parametrize(
    ("arguments", "listen"),
    [
        ([], ("127.0.0.1", 8778)),
        (["--listen", "[::1]:8779"], ("::1", 8779)),
        (["--host", "::1", "--port", "8779"], ("::1", 8779)),
        (["--port", "8779"], ("127.0.0.1", 8779)),
    ],
)
def test_attach_accepts_listen_or_the_former_host_and_port(
    arguments: Sequence[str], listen: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agents: list[Agent] = []

    class Task:
        def __init__(self, *_: object) -> None:
            pass

        def attach(self, agent: Agent, _password_file: object) -> str:
            agents.append(agent)
            return ""

    monkeypatch.setattr("cli.commands.attach.Task", Task)
    monkeypatch.setattr("cli.commands.attach.chosen", lambda *_: None)
    with attach_command.make_context("attach", ["--jar", "agent.jar", *arguments]) as context:
        attach_command.invoke(context)
    assert [(agent.host, agent.port) for agent in agents] == [listen]
