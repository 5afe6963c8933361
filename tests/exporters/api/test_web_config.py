"""The web configuration: what exporter-toolkit takes is taken as it means it, or refused with a reason; never less."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.api.web_access import WebConfig
from exporters.api.web_config import parsed
from exporters.api.web_tls import REQUIRED, Tls
from exporters.api.web_values import WebConfigError

FILE = Path("/etc/casstat/web.yml")
# Of exporter-toolkit's own documentation.
HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"
TLS = "tls_server_config:\n  cert_file: a.pem\n  key_file: /keys/a.key\n"


def refused(text: str) -> str:
    """Return why a file is refused: one line that begins with its name."""
    with pytest.raises(WebConfigError) as caught:
        parsed(text, FILE)
    message = str(caught.value)
    assert message.startswith(f"{FILE}: ")
    assert message.isprintable()
    assert "X0h1gDsPszWURQaxFh" not in message
    return message


@pytest.mark.parametrize("text", ["", "# nothing\n", "tls_server_config: {}\n", "basic_auth_users:\n", "{}"])
def test_an_empty_file_asks_nobody_for_anything(text: str) -> None:
    assert parsed(text, FILE) == WebConfig()
    assert not parsed(text, FILE).asks


def test_all_that_there_is() -> None:
    found = parsed(
        f"""
tls_server_config:
  cert_file: a.pem
  key_file: /keys/a.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
  client_allowed_sans: [prometheus.example, 10.0.0.9]
  min_version: TLS13
  max_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519]
http_server_config:
  http2: true
  headers:
    X-Frame-Options: deny
    Content-Security-Policy: ""
basic_auth_users:
  alice: {HASH}
rate_limit:
  interval: 1m0.5s
  burst: 20
""",
        FILE,
    )
    tls = Tls(
        Path("/etc/casstat/a.pem"),
        Path("/keys/a.key"),
        REQUIRED,
        Path("/etc/casstat/ca.pem"),
        ("prometheus.example", "10.0.0.9"),
        "TLS13",
        "TLS13",
        ("ECDHE-RSA-AES128-GCM-SHA256",),
        "X25519",
    )
    assert found == WebConfig(tls, (("alice", HASH),), (("X-Frame-Options", "deny"),), 60.5, 20)
    assert found.asks
    assert "X0h1" not in repr(found)


def test_as_exporter_toolkit_has_it_by_default() -> None:
    tls = parsed(TLS, FILE).tls
    assert tls is not None
    assert (tls.min_version, tls.max_version, tls.client_auth) == ("TLS12", "TLS13", "NoClientCert")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tls_server_confg: {}", "'tls_server_confg' is not known: is tls_server_config meant?"),
        ("tls_server_config: {certfile: x}", "tls_server_config: 'certfile' is not known: is cert_file meant?"),
        ("basic_auth_user: {}", "is basic_auth_users meant?"),
        ("- a", "must hold names and values"),
        ("a: b: c", "line 1: is no YAML: mapping values are not allowed here"),
        ("basic_auth_users: {a: x, a: y}", "line 1: 'a' stands there twice"),
        ("tls_server_config: {min_version: TLS12}", "tls_server_config: cert_file is missing"),
        ("tls_server_config: {cert_file: a}", "tls_server_config: key_file is missing"),
        ("tls_server_config: {cert_file: 7, key_file: b}", "cert_file: must be text"),
        ("tls_server_config: {cert: a}", "put it into its own, as cert_file"),
        (f"{TLS}  min_version: TLS10", "min_version: TLS10 is not safe"),
        (f"{TLS}  min_version: TLS1.2", "min_version: 'TLS1.2' is not known: is TLS12 meant?"),
        (f"{TLS}  min_version: TLS13\n  max_version: TLS12", "min_version is above max_version"),
        (f"{TLS}  client_auth_type: RequireAnyClientCert", "verifies nothing: use RequireAndVerifyClientCert"),
        (f"{TLS}  client_auth_type: RequestClientCert", "verifies nothing"),
        (f"{TLS}  client_auth_type: Require", "is not known: is RequireAndVerifyClientCert meant?"),
        (f"{TLS}  client_auth_type: RequireAndVerifyClientCert", "wants client_ca_file"),
        (f"{TLS}  client_ca_file: ca.pem", "is of no use without client_auth_type"),
        (f"{TLS}  client_allowed_sans: [a]", "client_allowed_sans wants client_auth_type"),
        (
            f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c\n  client_allowed_sans: []",
            "is empty, so nobody is allowed",
        ),
        (f"{TLS}  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]", "cipher_suites: 'TLS_RSA_WITH_RC4_128_SHA' is not known"),
        (f"{TLS}  cipher_suites: [TLS_AES_128_GCM_SHA256]", "names none of TLS 1.2"),
        (f"{TLS}  curve_preferences: [X25519, CurveP256]", "only one can be had"),
        (f"{TLS}  curve_preferences: [P256]", "is CurveP256 meant?"),
        (f"{TLS}  prefer_server_cipher_suites: maybe", "must be true or false"),
        ("http_server_config: {headers: {Server: x}}", "'Server' is not known"),
        ("http_server_config: {headers: {X-Frame-Options: allow}}", "must be deny or sameorigin"),
        ('http_server_config: {headers: {X-XSS-Protection: "a\\r\\nb"}}', "must be one line of ASCII"),
        ("basic_auth_users: {alice: secret}", "'alice': is no hash of bcrypt's"),
        (f"basic_auth_users: {{alice: {HASH.replace('$10$', '$31$')}}}", "cost 31, which takes too long"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "a name has no colon"),
        (f"basic_auth_users: {{1: {HASH}}}", "must be text: put it in quotes"),
        ("rate_limit: {interval: soon}", "must be a duration such as 100ms"),
        ("rate_limit: {interval: 1s, burst: many}", "burst: must be a whole number"),
        ("!!python/object/apply:os.system [ls]", "line 1: is no YAML"),
        ("[" * 5000, "is no YAML"),
    ],
)
def test_what_is_wrong_is_refused_with_what_was_meant(text: str, words: str) -> None:
    assert words in refused(text)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60) | st.sampled_from([TLS, HASH]).flatmap(lambda text: st.permutations(text).map("".join)))
def test_whatever_stands_there_is_understood_or_refused(text: str) -> None:
    with suppress(WebConfigError):
        assert isinstance(parsed(text, FILE), WebConfig)
