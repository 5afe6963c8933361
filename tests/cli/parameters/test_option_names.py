"""The names of options, and the variables that set them."""

from collections.abc import Sequence

import pytest

from cli.commands.attach import command as attach_command
from cli.commands.line import command as line_command
from cli.setup.attach.attach_steps import Agent


def test_the_disk_has_the_short_name_of_the_original_script() -> None:
    assert line_command.make_context("casstat", ["-o", "sda"]).params["disk"] == "sda"


def test_options_and_variables_of_the_journal_set_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    context = line_command.make_context("casstat", ["--journal-limit", "3G", "--journal-sync", "tick"])
    assert (context.params["journal_limit"], context.params["journal_sync"]) == (3 << 30, "tick")
    monkeypatch.setenv("CASSTAT_JOURNAL_LIMIT", "4G")
    monkeypatch.setenv("CASSTAT_JOURNAL_SYNC", "never")
    context = line_command.make_context("casstat", [])
    assert (context.params["journal_limit"], context.params["journal_sync"]) == (4 << 30, "never")


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
