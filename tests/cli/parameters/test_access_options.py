"""The Jolokia options are the same for every command; passwords come only from files or the environment."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from cli.parameters.access_options import PASSWORD, JolokiaSettings, access_from, connect, jolokia_options
from collector.node.jolokia.client import JolokiaAccess

SECRET, OTHER_SECRET = "hunter2", "correct horse"


def password_file(folder: Path, password: str = SECRET) -> Path:
    path = folder / f"password{len(list(folder.iterdir()))}"
    path.write_text(f"{password}\n")
    path.chmod(0o600)
    return path


def run(arguments: list[str], **environ: str) -> tuple[dict[str, Any], str]:
    """Run a command that has the Jolokia options; return the arguments that it received and its output."""
    received: dict[str, Any] = {}

    @click.command()
    @click.option("--before")
    @jolokia_options
    @click.option("--after")
    def command(**options: Any) -> None:
        received.update(options)

    result = CliRunner().invoke(command, arguments, env=environ, auto_envvar_prefix="CASSTAT_ANY")
    return received, result.output


def test_the_command_gets_the_options_as_one_argument() -> None:
    received, _ = run(["--jolokia", "node7", "--jolokia-ca", "ca.pem", "--before", "1", "--after", "2"])
    assert received == {"before": "1", "after": "2", "jolokia": JolokiaSettings("node7", jolokia_ca=Path("ca.pem"))}


def test_defaults_give_anonymous_access() -> None:
    received, _ = run([])
    assert received["jolokia"] == JolokiaSettings()
    assert access_from(received["jolokia"], {}) == JolokiaAccess()


def test_environment_variables_are_the_same_for_every_command() -> None:
    received, _ = run(["--jolokia", "node8"], CASSTAT_JOLOKIA="node7", CASSTAT_JOLOKIA_TARGET_USER="me")
    assert received["jolokia"] == JolokiaSettings("node8", jolokia_target_user="me")


def test_several_users_may_be_trusted() -> None:
    received, _ = run(["--trusted-user", "dse", "--trusted-user", "999"])
    assert received["jolokia"].trusted_user == ("dse", "999")
    received, _ = run([], CASSTAT_TRUSTED_USER="dse 999")
    assert received["jolokia"].trusted_user == ("dse", "999")


def test_help_lists_all_options_and_the_password_variable() -> None:
    _, output = run(["--help"])
    words = " ".join(output.split())
    assert all(f"--{name.replace('_', '-')} " in words for name in JolokiaSettings.__dataclass_fields__)
    assert PASSWORD in words
    assert words.index("--before") < words.index("--jolokia") < words.index("--after")


def test_passwords_are_read_from_files(tmp_path: Path) -> None:
    settings = JolokiaSettings(
        jolokia_user="me",
        jolokia_password_file=password_file(tmp_path),
        jolokia_target="node7",
        jolokia_target_user="you",
        jolokia_target_password_file=password_file(tmp_path, OTHER_SECRET),
    )
    assert access_from(settings, {}) == JolokiaAccess(
        "me", SECRET, target="node7", target_user="you", target_password=OTHER_SECRET
    )


def test_without_a_file_the_password_comes_from_the_environment(tmp_path: Path) -> None:
    environ = {PASSWORD: OTHER_SECRET}
    assert access_from(JolokiaSettings(jolokia_user="me"), environ).password == OTHER_SECRET
    both = JolokiaSettings(jolokia_user="me", jolokia_password_file=password_file(tmp_path))
    assert access_from(both, environ).password == SECRET
    # The variable may be set for another command, so it is ignored if no user is specified.
    assert access_from(JolokiaSettings(), environ) == JolokiaAccess()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (JolokiaSettings(jolokia_user="me"), f"--jolokia-password-file, or set {PASSWORD}"),
        (JolokiaSettings(jolokia_target_user="me", jolokia_target="n"), "use --jolokia-target-password-file"),
        (JolokiaSettings(jolokia_password_file=Path("none")), "requires --jolokia-user"),
        (JolokiaSettings(jolokia_target_password_file=Path("none")), "requires --jolokia-target-user"),
        (JolokiaSettings(jolokia_user="me", jolokia_password_file=Path("/none")), "--jolokia-password-file: /none: No"),
        (JolokiaSettings(jolokia_key=Path("key.pem")), "use --jolokia-cert"),
        (JolokiaSettings(jolokia_ca=Path("ca.pem")), "https://"),
        (JolokiaSettings(jolokia_target="no node"), "--jolokia-target"),
    ],
)
def test_contradictory_options_are_a_usage_error(settings: JolokiaSettings, words: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        connect("node7", settings, {})
    assert words in caught.value.format_message()


def test_a_malformed_url_is_a_usage_error() -> None:
    with pytest.raises(click.BadParameter) as caught:
        connect(f"http://me:{SECRET}@node7", JolokiaSettings(), {})
    assert "--jolokia" in caught.value.format_message()
    assert SECRET not in caught.value.format_message()


def test_a_password_file_readable_by_others_is_a_usage_error(tmp_path: Path) -> None:
    path = password_file(tmp_path)
    path.chmod(0o644)
    with pytest.raises(click.UsageError, match="chmod 600") as caught:
        connect("node7", JolokiaSettings(jolokia_user="me", jolokia_password_file=path), {})
    assert SECRET not in caught.value.format_message()


def test_creating_a_client_does_not_connect() -> None:
    jolokia = connect("node7", JolokiaSettings(jolokia_user="me"), {PASSWORD: SECRET})
    assert (jolokia.host, jolokia.port) == ("node7", 8778)
