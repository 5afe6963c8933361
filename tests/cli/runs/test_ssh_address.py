"""Addresses of hosts that are reached through ssh."""

import pytest

from cli.parameters.parameter_types import SshAddress, SshAddressError, parse_ssh_address
from cli.record.ssh.ssh_agent import ssh_command


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://db1", SshAddress("db1")),
        ("ssh://db_1.example.org/", SshAddress("db_1.example.org")),
        ("ssh://cassandra@10.0.0.7:2222", SshAddress("10.0.0.7", "cassandra", 2222)),
        ("ssh://[fd00::7]", SshAddress("fd00::7")),
        ("ssh://u.v-w@[fe80::1%eth0]:22", SshAddress("fe80::1%eth0", "u.v-w", 22)),
    ],
)
def test_addresses_are_parsed_and_shown(text: str, address: SshAddress) -> None:
    assert parse_ssh_address(text) == address
    assert address.url == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://@db1",
        "ssh://db1:",
        "ssh://db1:0",
        "ssh://db1:65536",
        "ssh://db1:22x",
        "ssh://db1/path",
        "ssh://db1 ",
        "ssh://db1\n",
        "ssh://db1\n-oProxyCommand=x",
        "ssh://-oProxyCommand=touch x",
        "ssh://-F",
        "ssh://-u@db1",
        "ssh://u@-db1",
        "ssh://a@b@c",
        "ssh://$(touch x)",
        "ssh://`x`@db1",
        "ssh://db1;x",
        "ssh://%h",
        "ssh://fd00::7",
        "ssh://[fd00::7",
        "ssh://[-x]",
        "ssh://[::1%$(x)]",
        "ssh://dß1",
        "ssh://x\x1b]52;c;eA==\x07",
        "SSH://db1",
        "ssh://" + "a" * 254,
    ],
)
def test_an_address_that_could_be_an_option_or_a_command_is_rejected(text: str) -> None:
    with pytest.raises(SshAddressError) as raised:
        parse_ssh_address(text)
    assert str(raised.value).isprintable()
    assert "is not a valid address (hint: use an address such as ssh://" in str(raised.value)


def test_a_password_is_rejected_and_not_repeated() -> None:
    with pytest.raises(SshAddressError, match=r"^an SSH address must not contain a password \(hint: use a key\)$"):
        parse_ssh_address("ssh://me:secret@db1")


def test_the_destination_follows_the_end_of_the_options() -> None:
    command = ssh_command(SshAddress("db1", "me", 2222), ["casstat", "spool", "a b;c"], ("/run/a", "/run/b"))
    assert command[:4] == ["ssh", "-T", "-a", "-x"]
    assert command[-8:] == ["/run/a:/run/b", "-l", "me", "-p", "2222", "--", "db1", "casstat spool 'a b;c'"]
    assert "BatchMode=yes" in command
    assert not any("StrictHostKeyChecking" in word for word in command)
