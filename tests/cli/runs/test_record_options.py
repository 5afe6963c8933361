"""The options in a run's file are those of the command line that recorded it, without secrets."""

import shlex
from collections.abc import Sequence

import pytest

import cli.record.record_program
from cli.main import main
from cli.record.record_program import RecordSettings, _planned, _start
from collector.redaction.redactor import Redactor
from collector.runs.run_file import content_of, redacted_run, run_of


def settings_of(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> RecordSettings:
    """Return the settings that `casstat record` receives."""
    received: list[RecordSettings] = []

    def record(settings: RecordSettings) -> int:
        received.append(settings)
        return 0

    monkeypatch.setattr(cli.record.record_program, "record", record)
    assert main(["record", *words]) == 0
    return received[0]


WORDS = (
    *(
        "--client",
        "hdr-log,unit=us:a b.log",
        "--mark-regex",
        r"phase (\w+)\.",
        "--redact",
        r"geheim\d+",
        "--redact",
        "x y",
    ),
    *("--serve", "0.0.0.0:9100", "--require-all", "--cool-down", "90s", "--trusted-user", "me", "--jolokia-user", "u"),
    *("--jolokia-password-file", "/etc/jolokia", "--agent-ca", "ca.pem", "http://10.0.0.1:8778/jolokia", "10.0.0.2"),
)


def test_a_run_has_the_options_with_which_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of([*WORDS, "--", "load"], monkeypatch)
    monkeypatch.setattr(cli.record.record_program, "agent_clients", lambda _: _Clients())
    run = _planned(_start(settings))
    assert run.options is not None
    again = settings_of([*shlex.split(shlex.join(run.options)), "--", "load"], monkeypatch)
    assert again == settings
    # The file can be read, also without the options, as earlier versions wrote it.
    content = content_of(run)
    assert run_of(content).options == run.options
    del content["options"]
    assert run_of(content).options is None


def test_the_options_of_a_run_contain_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--redact", "geh3im-1", "--client", "result-geh3im-1.csv", "http://me:pa55word@10.0.0.1:8778/jolokia")
    settings = settings_of([*words, "--", "load"], monkeypatch)
    monkeypatch.setattr(cli.record.record_program, "agent_clients", lambda _: _Clients())
    run = redacted_run(_planned(_start(settings)), Redactor(settings.redact))
    assert "geh3im-1" not in str(run)
    assert "pa55word" not in str(run)


class _Clients:
    def addresses(self, _nodes: Sequence[str]) -> list[object]:
        return []
