"""What is given to get access with: understood, or refused before anything is asked."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.parameters.access_advice import JOLOKIA, option_names
from collector.http.access import AccessError
from collector.jolokia.client import Jolokia
from collector.jolokia.jolokia_access import JolokiaAccess, service_url
from collector.jolokia.proxy_target import ProxyTarget

SECRET, OTHER_SECRET = "hunter2", "correct horse"
URL = "https://node7/jolokia"


def refused(given: dict[str, Any], url: str = URL) -> str:
    with pytest.raises(AccessError) as caught:
        Jolokia(url, JolokiaAccess(**given))
    message = caught.value.message(option_names(JOLOKIA))
    assert message.isprintable()
    assert SECRET not in message
    return message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"user": f"me:{SECRET}"}, "must not contain a colon (--jolokia-user)"),
        ({"password": SECRET}, "give --jolokia-user"),
        ({"key": Path("key.pem")}, "give --jolokia-cert"),
        ({"target_user": "me"}, "give --jolokia-target"),
        ({"target": "node7", "target_password": SECRET}, "give --jolokia-target-user"),
        ({"target": f"me:{SECRET}@node7:7199"}, "give --jolokia-target-user"),
        ({"target": f"service:jmx:rmi:///jndi/rmi://me:{SECRET}@node7:7199/jmxrmi"}, "give --jolokia-target-user"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], words: str) -> None:
    assert words in refused(given)


@pytest.mark.parametrize("flag", ["ca", "certificate"])
def test_what_is_for_tls_wants_an_https_url(flag: str, tmp_path: Path) -> None:
    assert "TLS requires an https:// URL, not http://node7:8778/jolokia" in refused({flag: tmp_path / "a.pem"}, "node7")


@pytest.mark.parametrize(("field", "flag"), [("ca", "--jolokia-ca"), ("certificate", "--jolokia-cert")])
def test_a_file_that_cannot_be_used_is_named_with_its_flag(field: str, flag: str, tmp_path: Path) -> None:
    none, rubbish = tmp_path / "none.pem", tmp_path / "rubbish.pem"
    rubbish.write_text("-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n")
    assert refused({field: none}) == f"{none}: No such file or directory ({flag})"
    assert refused({field: tmp_path}) == f"{tmp_path}: not a file ({flag})"
    assert (
        f"{rubbish}: not a certificate in PEM format"
        if field == "ca"
        else f"{rubbish}: not a certificate with its key" in refused({field: rubbish})
    )


def test_a_key_that_is_not_there_is_named_with_its_flag(tmp_path: Path) -> None:
    certificate, key = tmp_path / "mine.pem", tmp_path / "mine.key"
    certificate.write_text("")
    assert refused({"certificate": certificate, "key": key}) == f"{key}: No such file or directory (--jolokia-key)"


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: ":" not in text and text.isprintable())
PASSWORDS = st.text(max_size=30).filter(str.isprintable)


@given(NAMES, PASSWORDS)
def test_the_header_holds_user_and_password_whatever_they_are(user: str, password: str) -> None:
    kind, _, token = JolokiaAccess(user=user, password=password).headers["Authorization"].partition(" ")
    assert kind == "Basic"
    assert b64decode(token).decode() == f"{user}:{password}"
    assert token.isascii()


def test_who_needs_no_access_tells_nothing() -> None:
    assert JolokiaAccess().headers == {}
    assert JolokiaAccess().hide("all of it") == "all of it"


def test_nothing_that_is_printed_holds_a_secret() -> None:
    access = JolokiaAccess("me", SECRET, target="node7", target_user="you", target_password=OTHER_SECRET)
    shown = repr(access) + access.hide(f"{access.headers} {SECRET} {OTHER_SECRET}")
    assert SECRET not in shown
    assert OTHER_SECRET not in shown
    assert access.headers["Authorization"].split()[1] not in shown


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("node7", "node7:7199"),
        ("10.0.0.7:7300", "10.0.0.7:7300"),
        ("[::1]:7199", "[::1]:7199"),
        ("a-b.example_c", "a-b.example_c:7199"),
    ],
)
def test_a_host_and_port_are_the_jmx_of_a_node(target: str, place: str) -> None:
    assert service_url(target) == f"service:jmx:rmi:///jndi/rmi://{place}/jmxrmi"


def test_a_service_url_stays_as_it_is() -> None:
    url = "service:jmx:rmi://node7:7199/jndi/rmi://node7:7199/jmxrmi"
    assert service_url(url) == url


@pytest.mark.parametrize(
    "target", ["", ":7199", "node7:", "node7:0", "node7:65536", "node7:x", "http://node7:7199", "a b", "::1", 'a"b']
)
def test_what_is_no_jmx_is_refused(target: str) -> None:
    with pytest.raises(AccessError, match="not a JMX address"):
        service_url(target)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
REQUESTS = st.dictionaries(st.text(min_size=1, max_size=8), JSONS, min_size=1, max_size=4).filter(
    lambda request: "target" not in request
)


@given(st.lists(REQUESTS, max_size=5), PASSWORDS.filter(bool))
def test_every_request_names_the_target_and_is_else_as_it_was(requests: list[dict[str, Any]], password: str) -> None:
    target = ProxyTarget(JolokiaAccess(target="node7", target_user="me", target_password=password))
    sent = [json.loads(text) for text in target.requests([json.dumps(request) for request in requests])]
    behind = {"url": service_url("node7"), "user": "me", "password": password}
    assert sent[len(sent) - len(requests) :] == [{**request, "target": behind} for request in requests]
    assert "target" not in sent[0]
    assert all(request["target"] == behind for request in sent[1:])
