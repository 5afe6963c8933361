"""Node addresses: casstat agents, Jolokia agents and invalid addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.agents.addresses import NodeAddressError, parse_address
from tests.every import every


@every(
    ("text", "url", "is_agent"),
    [
        ("10.0.0.7", "http://10.0.0.7:17199", True),
        ("node7:9000", "http://node7:9000", True),
        ("https://node7", "https://node7:17199", True),
        ("https://node7:17199/", "https://node7:17199", True),
        ("fe80::1", "http://[fe80::1]:17199", True),
        ("[fe80::1]:5", "http://[fe80::1]:5", True),
        ("10.0.0.7:8778", "http://10.0.0.7:8778/jolokia", False),
        ("http://10.0.0.7:8778/jolokia/", "http://10.0.0.7:8778/jolokia", False),
        ("https://10.0.0.7/jolokia", "https://10.0.0.7:443/jolokia", False),
    ],
)
def test_addresses_are_parsed(text: str, url: str, is_agent: bool) -> None:
    address = parse_address(text)
    assert (address.url, address.is_agent) == (url, is_agent)
    assert address.with_host("10.0.0.8").host == "10.0.0.8"


@every("text", ["", "http://", "ftp://a", "a:b", "a:99999", "a b", "http://a/?x=1", "a:0", "\x1b[2J"])
def test_invalid_addresses_are_rejected(text: str) -> None:
    with pytest.raises(NodeAddressError, match=r"is not a valid node address \(hint: use an address such as"):
        parse_address(text)


def test_a_password_in_an_address_is_rejected_and_not_repeated() -> None:
    with pytest.raises(NodeAddressError) as rejected:
        parse_address("http://me:secret@host")
    assert "secret" not in str(rejected.value)


def test_addresses_for_ssh_are_rejected_with_a_reason() -> None:
    with pytest.raises(NodeAddressError, match=r"^only 'casstat record' can reach nodes over SSH \(hint: "):
        parse_address("ssh://me:secret@host")


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_rejected_in_one_printable_line(text: str) -> None:
    message = ""
    try:
        parse_address(text)
    except NodeAddressError as error:
        message = str(error)
    assert message == "" or message.isprintable()
