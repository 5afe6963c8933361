"""The web configuration: settings in exporter-toolkit's format are either honoured or rejected with a reason."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.api.web_config import REQUIRED, Tls, WebConfig, WebConfigError, parsed
from tests.every import every
from tests.examples import examples

FILE = Path("/etc/casstat/web.yml")
# This hash is taken from exporter-toolkit's documentation.
HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"
TLS = "tls_server_config:\n  cert_file: a.pem\n  key_file: /keys/a.key\n"


def error_of(text: str) -> str:
    """Return the error for a file with this text; it must be one line that begins with the path and omits the hash."""
    with pytest.raises(WebConfigError) as caught:
        parsed(text, FILE)
    message = str(caught.value)
    assert message.startswith(f"{FILE}: ")
    assert message.isprintable()
    assert "X0h1gDsPszWURQaxFh" not in message
    return message


@every("text", ["", "# nothing\n", "tls_server_config: {}\n", "basic_auth_users:\n", "{}"])
def test_an_empty_file_requires_no_credentials(text: str) -> None:
    assert parsed(text, FILE) == WebConfig()
    assert not parsed(text, FILE).requires_credentials


def test_every_setting_is_read() -> None:
    config = parsed(
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
    assert config == WebConfig(tls, (("alice", HASH),), (("X-Frame-Options", "deny"),), 60.5, 20)
    assert config.requires_credentials
    assert "X0h1" not in repr(config)


def test_the_defaults_are_the_same_as_in_exporter_toolkit() -> None:
    tls = parsed(TLS, FILE).tls
    assert tls is not None
    assert (tls.min_version, tls.max_version, tls.client_auth) == ("TLS12", "TLS13", "NoClientCert")


@every(
    ("text", "words"),
    [
        ("tls_server_confg: {}", "unknown key 'tls_server_confg' (hint: did you mean tls_server_config?)"),
        (
            "tls_server_config: {certfile: x}",
            "tls_server_config: unknown key 'certfile' (hint: did you mean cert_file?)",
        ),
        ("basic_auth_user: {}", "did you mean basic_auth_users?"),
        ("- a", "must be a mapping"),
        ("a: b: c", "line 1: invalid YAML: mapping values are not allowed here"),
        ("basic_auth_users: {a: x, a: y}", "line 1: duplicate key 'a'"),
        ("tls_server_config: {min_version: TLS12}", "tls_server_config: cert_file is missing"),
        ("tls_server_config: {cert_file: a}", "tls_server_config: key_file is missing"),
        ("tls_server_config: {cert_file: 7, key_file: b}", "cert_file: must be a string"),
        ("tls_server_config: {cert: a}", "put it into a file and use cert_file"),
        (f"{TLS}  min_version: TLS10", "min_version: TLS10 is insecure"),
        (f"{TLS}  min_version: TLS1.2", "min_version: unknown value 'TLS1.2' (hint: did you mean TLS12?)"),
        (f"{TLS}  min_version: TLS13\n  max_version: TLS12", "min_version is above max_version"),
        (
            f"{TLS}  client_auth_type: RequireAnyClientCert",
            "does not verify certificates (hint: use RequireAndVerifyClientCert)",
        ),
        (f"{TLS}  client_auth_type: RequestClientCert", "does not verify certificates"),
        (f"{TLS}  client_auth_type: Require", "did you mean RequireAndVerifyClientCert?"),
        (f"{TLS}  client_auth_type: RequireAndVerifyClientCert", "needs client_ca_file"),
        (f"{TLS}  client_ca_file: ca.pem", "has no effect (hint: set client_auth_type: RequireAndVerifyClientCert)"),
        (f"{TLS}  client_allowed_sans: [a]", "client_allowed_sans needs client_auth_type"),
        (
            f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c\n  client_allowed_sans: []",
            "an empty list admits no clients",
        ),
        (
            f"{TLS}  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]",
            "cipher_suites: unknown value 'TLS_RSA_WITH_RC4_128_SHA'",
        ),
        (f"{TLS}  cipher_suites: [TLS_AES_128_GCM_SHA256]", "no TLS 1.2 cipher suite is listed"),
        (f"{TLS}  curve_preferences: [X25519, CurveP256]", "only one curve is supported"),
        (f"{TLS}  curve_preferences: [P256]", "did you mean CurveP256?"),
        (f"{TLS}  prefer_server_cipher_suites: maybe", "must be true or false"),
        ("http_server_config: {headers: {Server: x}}", "unknown key 'Server'"),
        ("http_server_config: {headers: {X-Frame-Options: allow}}", "must be deny or sameorigin"),
        ('http_server_config: {headers: {X-XSS-Protection: "a\\r\\nb"}}', "must be one line of printable ASCII"),
        ("basic_auth_users: {alice: secret}", "'alice': not a bcrypt hash"),
        (f"basic_auth_users: {{alice: {HASH.replace('$10$', '$31$')}}}", "cost 31 is not supported"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "no colon"),
        (f"basic_auth_users: {{1: {HASH}}}", "must be a string (hint: put it in quotes)"),
        ("rate_limit: {interval: soon}", "must be a duration such as 100ms"),
        ("rate_limit: {interval: 1s, burst: many}", "burst: must be a whole number"),
        ("!!python/object/apply:os.system [ls]", "line 1: invalid YAML"),
        ("[" * examples(5000), "invalid YAML"),
    ],
)
def test_invalid_settings_are_rejected_with_a_reason(text: str, words: str) -> None:
    assert words in error_of(text)


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=60) | st.sampled_from([TLS, HASH]).flatmap(lambda text: st.permutations(text).map("".join)))
def test_any_text_is_either_parsed_or_a_one_line_error(text: str) -> None:
    try:
        assert isinstance(parsed(text, FILE), WebConfig)
    except WebConfigError as error:
        message = str(error)
    else:
        return
    assert message.startswith(f"{FILE}: ")
    assert message.isprintable()
