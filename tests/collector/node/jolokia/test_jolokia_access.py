"""Credentials, certificates and proxy targets for Jolokia: invalid ones are rejected before any request."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.http.access import AccessError
from collector.node.jolokia.client import Jolokia, JolokiaAccess, ProxyTarget, service_url
from tests.every import every

FIELDS = ("user", "password", "ca", "certificate", "key", "target", "target_user", "target_password")
SECRET, OTHER_SECRET = "hunter2", "correct horse"
URL = "https://node7/jolokia"


def error_of(settings: dict[str, Any], url: str = URL) -> str:
    with pytest.raises(AccessError) as caught:
        Jolokia(url, JolokiaAccess(**settings))
    message = caught.value.message({field: f"<{field}>" for field in FIELDS})
    assert message.isprintable()
    assert SECRET not in message
    return message


@every(
    ("settings", "words"),
    [
        ({"user": f"me:{SECRET}"}, "must not contain a colon (<user>)"),
        ({"password": SECRET}, "use <user>"),
        ({"key": Path("key.pem")}, "use <certificate>"),
        ({"target_user": "me"}, "use <target>"),
        ({"target": "node7", "target_password": SECRET}, "use <target_user>"),
        ({"target": f"me:{SECRET}@node7:7199"}, "use <target_user>"),
        ({"target": f"service:jmx:rmi:///jndi/rmi://me:{SECRET}@node7:7199/jmxrmi"}, "use <target_user>"),
    ],
)
def test_contradictory_settings_are_errors(settings: dict[str, Any], words: str) -> None:
    assert words in error_of(settings)


@pytest.mark.parametrize("flag", ["ca", "certificate"])
def test_certificates_require_an_https_url(flag: str, tmp_path: Path) -> None:
    assert "TLS requires an https:// URL, not http://node7:8778/jolokia" in error_of(
        {flag: tmp_path / "a.pem"}, "node7"
    )


@pytest.mark.parametrize(
    ("field", "cause"),
    [
        ("ca", "not a certificate in PEM format"),
        ("certificate", "does not contain a certificate and its key in PEM format"),
    ],
)
def test_the_error_for_an_unusable_file_names_its_setting(field: str, cause: str, tmp_path: Path) -> None:
    missing, malformed = tmp_path / "missing.pem", tmp_path / "malformed.pem"
    malformed.write_text("-----BEGIN CERTIFICATE-----\nmalformed\n-----END CERTIFICATE-----\n")
    assert error_of({field: missing}) == f"{missing}: No such file or directory (<{field}>)"
    assert error_of({field: tmp_path}) == f"{tmp_path}: not a file (<{field}>)"
    assert error_of({field: malformed}).startswith(f"{malformed}: {cause}")


def test_the_error_for_a_missing_key_names_its_setting(tmp_path: Path) -> None:
    certificate, key = tmp_path / "mine.pem", tmp_path / "mine.key"
    certificate.write_text("")
    assert error_of({"certificate": certificate, "key": key}) == f"{key}: No such file or directory (<key>)"


def test_the_error_for_malformed_files_names_both(tmp_path: Path) -> None:
    certificate, key = tmp_path / "mine.pem", tmp_path / "mine.key"
    certificate.write_text("")
    key.write_text("")
    assert error_of({"certificate": certificate, "key": key}).startswith(f"{certificate} or {key}: not in PEM format")


# The only printable separator is the space.
PRINTABLE = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
NAMES = st.text(PRINTABLE, min_size=1, max_size=20).map(lambda text: text.replace(":", "."))
PASSWORDS = st.text(PRINTABLE, max_size=30)


@given(NAMES, PASSWORDS)
def test_the_header_can_contain_any_user_and_password(user: str, password: str) -> None:
    kind, _, token = JolokiaAccess(user=user, password=password).headers["Authorization"].partition(" ")
    assert kind == "Basic"
    assert b64decode(token).decode() == f"{user}:{password}"
    assert token.isascii()


def test_anonymous_access_sends_no_header() -> None:
    assert JolokiaAccess().headers == {}
    assert JolokiaAccess().hide("all of it") == "all of it"


def test_printed_text_contains_no_secrets() -> None:
    access = JolokiaAccess("me", SECRET, target="node7", target_user="you", target_password=OTHER_SECRET)
    shown = repr(access) + access.hide(f"{access.headers} {SECRET} {OTHER_SECRET}")
    assert SECRET not in shown
    assert OTHER_SECRET not in shown
    assert access.headers["Authorization"].split()[1] not in shown


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("node7", "node7:7199"),
        ("10.0.0.7:7300", "10.0.0.7:7300"),
        ("[::1]:7199", "[::1]:7199"),
        ("a-b.example_c", "a-b.example_c:7199"),
    ],
)
def test_a_host_and_port_are_turned_into_a_service_url(target: str, address: str) -> None:
    assert service_url(target) == f"service:jmx:rmi:///jndi/rmi://{address}/jmxrmi"


def test_a_service_url_is_unchanged() -> None:
    url = "service:jmx:rmi://node7:7199/jndi/rmi://node7:7199/jmxrmi"
    assert service_url(url) == url


@every("target", ["", ":7199", "node7:", "node7:0", "node7:65536", "node7:x", "http://node7:7199", "a b", "::1", 'a"b'])
def test_an_invalid_jmx_address_is_an_error(target: str) -> None:
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
def test_the_target_is_added_to_every_request(requests: list[dict[str, Any]], password: str) -> None:
    target = ProxyTarget(JolokiaAccess(target="node7", target_user="me", target_password=password))
    sent = [json.loads(text) for text in target.requests([json.dumps(request) for request in requests])]
    jmx_target = {"url": service_url("node7"), "user": "me", "password": password}
    assert sent[len(sent) - len(requests) :] == [{**request, "target": jmx_target} for request in requests]
    assert "target" not in sent[0]
    assert all(request["target"] == jmx_target for request in sent[1:])
