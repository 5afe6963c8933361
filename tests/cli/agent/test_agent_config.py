"""The agent's settings: flags take precedence over environment variables, which take precedence over the file."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.agent.agent_config import settings_of
from cli.commands.agent import command
from cli.main import main


def printed(*arguments: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the output of --print-config: each key with its value and source."""
    result = CliRunner().invoke(command, [*arguments, "--print-config"], env=environ, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = [line.partition(" = ") for line in result.stdout.splitlines() if not line.startswith("#")]
    return {key: value for key, _, value in rows}


def written(folder: Path, text: str) -> str:
    path = folder / "agent.toml"
    path.write_text(text)
    return str(path)


def test_a_flag_overrides_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 'listen = ":1"\ntables = 1\ninterval = 5\n')
    environ = {"CASSTAT_LISTEN": ":2", "CASSTAT_TABLES": "2"}
    settings = printed("--config", file, "--listen", ":3", environ=environ)
    assert settings["listen"] == '":3"  # command line'
    assert settings["tables"] == "2  # environment"
    assert settings["interval"] == "5.0  # file"
    assert settings["series_limit"] == "10000  # default"


@pytest.mark.parametrize("name", sorted(settings_of(command)))
def test_every_setting_has_the_same_name_everywhere(name: str) -> None:
    option = settings_of(command)[name]
    assert f"--{name.replace('_', '-')}" in option.opts
    assert option.envvar == f"CASSTAT_{name.upper()}"
    assert option.help


def test_the_printed_configuration_is_a_file_with_the_same_settings(tmp_path: Path) -> None:
    file = written(tmp_path, 'to = ["graphite://127.0.0.1:2003/a\\"b", "graphite://127.0.0.1:2004"]\nnode = "é"\n')
    arguments = ["--config", file, "--buckets", "0.001", "--buckets", "1", "--no-node-metrics", "--journal-limit", "3G"]
    original = printed(*arguments)
    output = CliRunner().invoke(command, [*arguments, "--print-config"], catch_exceptions=False).stdout
    reread = printed("--config", written(tmp_path, output))
    assert without_sources(reread) == without_sources(original)
    assert reread["buckets"] == "[0.001, 1.0]  # file"
    assert reread["node_metrics"] == "false  # file"
    assert reread["journal_limit"] == "3221225472  # file"
    assert reread["node"] == '"é"  # file'


@pytest.mark.parametrize("scheme", ["http://", "//"])
def test_the_printed_configuration_contains_no_password(scheme: str) -> None:
    assert printed("--jolokia", f"{scheme}joe:x1@h:8778/jolokia")["jolokia"].startswith(f'"{scheme}***@h:8778/jolokia"')


def without_sources(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value.rpartition("  # ")[0] for key, value in settings.items()}


def test_passwords_in_urls_are_masked(tmp_path: Path) -> None:
    file = written(tmp_path, 'jolokia = "http://me:secret@127.0.0.1:8778/jolokia"\nto = ["graphite://x:secret@h:1"]\n')
    assert "secret" not in str(printed("--config", file))
    assert "secret" not in str(printed("--to", "influxdb+http://joe:a/secret?#[b@h/db"))
    assert printed("--jolokia", "http://[::1")["jolokia"].startswith('"http://[::1"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervall = 2", "unknown setting 'intervall' (hint: did you mean 'interval'?)"),
        ("web-config-file = 'x'", "unknown setting 'web-config-file' (hint: did you mean 'web_config_file'?)"),
        ("zzzzzz = 2", "unknown setting 'zzzzzz' (hint: choose from allow_anonymous_reads, allow_host, "),
        ("config = 'x'", "unknown setting 'config'"),
        ("interval = 0.01", "'interval': '0.01' is out of range: must be between 0.1 s and 3600 s"),
        ("interval = true", "'interval' must be a number of seconds or a duration such as \"30s\", not true"),
        ("interval = '1x'", "'interval': '1x' is not a valid duration (hint: use 30, 30s, 5m or 1.5h)"),
        ("tables = 1.5", "'tables' must be a whole number, not 1.5"),
        ("tables = true", "'tables' must be a whole number, not true"),
        ("node_metrics = 1", "'node_metrics' must be true or false, not 1"),
        ("listen = 17199", "'listen' must be a string, not 17199"),
        ("to = 'graphite://h:1'", "'to' must be a list"),
        ("to = [1]", "'to' must be a list of strings, not [1]"),
        ("journal_limit = 'much'", "'journal_limit': 'much' is not a valid size"),
        ("source = 'telepathy'", "'source': 'telepathy' is not one of"),
        ("[agent]\nlisten = ':1'", "unknown setting 'agent'"),
        ("listen = ", "invalid TOML"),
        ("listen = '\xff'", "invalid TOML"),
    ],
)
def test_an_invalid_file_is_a_one_line_error_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(text.encode("latin-1"))
    assert main(["agent", "--config", str(path), "--print-config"]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"casstat: {path}: ")
    assert message in stderr
    assert stderr.count("\n") == 1


def test_an_invalid_flag_is_not_blamed_on_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "interval = 2")
    assert main(["agent", "--config", file, "--interval", "0", "--print-config"]) == 2
    assert "Invalid value for '-i' / '--interval'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
def test_an_unreadable_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["agent", "--config", str(tmp_path / name), "--print-config"]) == 1
    assert capsys.readouterr().err.startswith(f"casstat: {tmp_path / name}: ")


def test_an_endless_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "--config", "/dev/zero", "--print-config"]) == 1
    assert capsys.readouterr().err == "casstat: /dev/zero: larger than 1 MiB\n"


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"STATE_DIRECTORY": "/run/a:/run/b"}, "/run/a"),
        ({"CASSTAT_JOURNAL_DIR": "/run/c", "STATE_DIRECTORY": "/run/a"}, "/run/c"),
    ],
)
def test_the_journal_defaults_to_the_service_managers_directory(environ: dict[str, str], folder: str) -> None:
    assert printed(environ=environ)["journal_dir"].startswith(f'"{folder}"')
