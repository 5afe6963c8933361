"""The agent's API with TLS, client certificates and passwords, and the reloading of their files."""

import base64
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest

from exporters.api.app import endpoints
from exporters.api.server import Server
from exporters.api.web_config import WebConfigError
from tests.exporters.api.scripted_agent import FILES, Scripted
from tests.faults.api import HOST, Api, read_until, running, status
from tests.faults.certificates import Authority, Certificate
from tests.faults.program import is_one_line, within
from tests.waiting import eventually

CURL = ("/usr/bin/env", "curl", "-sS", "--max-time", "10", "-w", "\n%{http_code}")
HASH = bcrypt.hashpw(b"correct horse", bcrypt.gensalt(4)).decode()
SERVER = f"subjectAltName=IP:{HOST}"
CLIENT = "extendedKeyUsage=clientAuth\nsubjectAltName=DNS:prometheus.example"


@dataclass(frozen=True)
class Keys:
    """The authorities and certificates that a test uses."""

    authority: Authority
    stranger: Authority
    server: Certificate
    client: Certificate
    other: Certificate
    expired: Certificate
    strange: Certificate


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    ours = Authority(tmp_path_factory.mktemp("ours"))
    theirs = Authority(tmp_path_factory.mktemp("theirs"), "stranger")
    return Keys(
        ours,
        theirs,
        ours.sign("server", SERVER),
        ours.sign("client", CLIENT),
        ours.sign("other", "extendedKeyUsage=clientAuth\nsubjectAltName=DNS:other.example"),
        ours.sign("expired", CLIENT, days=-1),
        theirs.sign("strange", CLIENT),
    )


def write(folder: Path, certificate: Certificate, authority: Authority, rest: str = "", sans: str = "") -> Path:
    """Write a web configuration and the files it refers to, replacing each file atomically."""
    replace_file(folder / "server.pem", certificate.file.read_text())
    replace_file(folder / "server.key", certificate.key.read_text())
    replace_file(folder / "ca.pem", authority.file.read_text())
    replace_file(
        folder / "web.yml",
        f"""
tls_server_config:
  cert_file: server.pem
  key_file: server.key
  client_ca_file: ca.pem
  client_auth_type: RequireAndVerifyClientCert
{sans}
basic_auth_users:
  alice: {HASH}
{rest}
""",
    )
    return folder / "web.yml"


def replace_file(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


@pytest.fixture
def api(tmp_path: Path, keys: Keys) -> Iterator[Api]:
    with running(tmp_path, write(tmp_path, keys.server, keys.authority)) as started:
        yield started
        assert all(is_one_line(line) for line in started.log_lines)
        assert not any(secret in line for line in started.log_lines for secret in ("correct", HASH, "PRIVATE"))


def cert_options(certificate: Certificate | None) -> list[str]:
    return [] if certificate is None else ["--cert", str(certificate.file), "--key", str(certificate.key)]


def curl(api: Api, ca: Path, path: str, *options: str) -> tuple[int, str]:
    """Return the status and body that curl received; the status is 0 if there was no response."""
    done = subprocess.run(
        [*CURL, "--cacert", str(ca), *options, f"https://{HOST}:{api.port}{path}"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
        env={**os.environ, "no_proxy": "*"},
    )
    body, _, code = done.stdout.rpartition("\n")
    return int(code), body


ME = ("-u", "alice:correct horse")
JSON = ("-H", "Content-Type: application/json")
LIVE = ("-H", "Accept: text/event-stream", "--max-time", "1")


def requests() -> list[tuple[str, tuple[str, ...], int]]:
    """Return one request per path and method: the path, the curl options, and the status if access is granted."""
    return [
        *[(path, (), 200) for path in ("/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/openapi.json")],
        *[(f"/api/v1/{path}", (), 200) for path in ("node", "time", "samples", "journal", "runs")],
        ("/api/v1/samples?since=0", LIVE, 200),
        (f"/api/v1/journal/{FILES[0]}", ("-r", "0-9"), 206),
        ("/api/v1/runs", (*JSON, "-d", '{"name": "ramp"}'), 201),
        ("/api/v1/runs/1/marks", (*JSON, "-d", '{"text": "half way"}'), 201),
        ("/api/v1/runs/1/end", (*JSON, "-X", "POST"), 200),
    ]


def test_every_endpoint_requires_credentials(api: Api, keys: Keys) -> None:
    ca, mine = keys.authority.file, cert_options(keys.client)
    patterns = {path.partition("{")[0] for path in endpoints(api.agent, time.time)}
    assert all(any(path.startswith(pattern) for path, _, _ in requests()) for pattern in patterns)
    for path, options, _ in requests():
        assert curl(api, ca, path, *options, *ME)[0] == 0
        assert curl(api, ca, path, *options, *mine)[0] == 401
        assert curl(api, ca, path, *options, *mine, "-u", "alice:wrong")[0] == 401
    assert api.agent.known == {}
    for path, options, expected in requests():
        assert (path, curl(api, ca, path, *options, *mine, *ME)[0]) == (path, expected)
    assert api.agent.known["1"]["marks"][0]["text"] == "half way"


def test_untrusted_certificates_are_refused_with_a_log_line(api: Api, keys: Keys) -> None:
    for certificate in (keys.expired, keys.strange, None):
        assert curl(api, keys.authority.file, "/metrics", *ME, *cert_options(certificate))[0] == 0
    eventually(lambda: len(api.log_lines) > 0)
    assert "TLS handshake failed: client certificate: certificate has expired" in api.log_lines[0]
    assert len([line for line in api.log_lines if "handshake failed" in line]) == 1


def test_plain_http_gets_no_response(api: Api) -> None:
    assert status(api.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 0
    eventually(lambda: bool(api.log_lines))
    assert "speaks plain HTTP (hint: use https://)" in api.log_lines[0]


def test_a_thousand_stalled_handshakes_do_not_block_others(tmp_path: Path, keys: Keys) -> None:
    with running(tmp_path, write(tmp_path, keys.server, keys.authority), most=64) as api:
        crowd = [api.connect() for _ in range(1000)]
        with within(3):
            status_code, _ = curl(
                api, keys.authority.file, "/metrics", *ME, *cert_options(keys.client), "-o", "/dev/null"
            )
        assert status_code == 200
        eventually(lambda: len(api.server._serving.connections) <= 64)
        for stream in crowd:
            stream.close()


def test_only_certificates_with_an_allowed_name_are_accepted(tmp_path: Path, keys: Keys) -> None:
    sans = "  client_allowed_sans: [prometheus.example]"
    with running(tmp_path, write(tmp_path, keys.server, keys.authority, sans=sans)) as api:
        assert curl(api, keys.authority.file, "/-/ready", *ME, *cert_options(keys.client))[0] == 200
        assert curl(api, keys.authority.file, "/-/ready", *ME, *cert_options(keys.other))[0] == 0
        eventually(lambda: any("client_allowed_sans" in line for line in api.log_lines))


def secured(api: Api, keys: Keys, ca: Path) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=ca)
    # Since Python 3.13, the default context requires extensions that our CA certificate lacks.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(keys.client.file, keys.client.key)
    return context.wrap_socket(socket.create_connection((HOST, api.port), 10), server_hostname=HOST)


def ready_status(stream: ssl.SSLSocket, user: str = "alice:correct horse") -> int:
    credentials = base64.b64encode(user.encode()).decode()
    stream.sendall(f"GET /-/ready HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {credentials}\r\n\r\n".encode())
    return status(read_until(stream, b"ready\n", b"}"))


def test_a_new_certificate_applies_to_new_connections(api: Api, keys: Keys, tmp_path: Path) -> None:
    ours, theirs = keys.authority.file, keys.stranger
    with secured(api, keys, ours) as before:
        assert ready_status(before) == 200
        write(tmp_path, theirs.sign("server", SERVER), keys.authority)
        with secured(api, keys, theirs.file) as after:
            assert (ready_status(after), ready_status(before)) == (200, 200)
        with pytest.raises(ssl.SSLError):
            secured(api, keys, ours)
    assert any("reloaded" in line for line in api.log_lines)


def test_the_client_authority_and_users_are_reloaded(api: Api, keys: Keys, tmp_path: Path) -> None:
    ca = keys.authority.file
    replace_file(tmp_path / "ca.pem", keys.stranger.file.read_text())
    assert curl(api, ca, "/-/ready", *ME, *cert_options(keys.client))[0] == 0
    assert curl(api, ca, "/-/ready", *ME, *cert_options(keys.strange))[0] == 200
    text = (tmp_path / "web.yml").read_text()
    replace_file(tmp_path / "web.yml", text.replace("alice", "bob"))
    assert curl(api, ca, "/-/ready", *ME, *cert_options(keys.strange))[0] == 401
    assert curl(api, ca, "/-/ready", "-u", "bob:correct horse", *cert_options(keys.strange))[0] == 200


@pytest.mark.parametrize("name", ["server.pem", "server.key", "ca.pem", "web.yml"])
@pytest.mark.parametrize("content_kind", ["garbage", "nothing", "another"])
def test_a_broken_file_is_logged_once_and_changes_nothing(
    api: Api, keys: Keys, tmp_path: Path, name: str, content_kind: str
) -> None:
    sound = (tmp_path / name).read_text()
    if content_kind == "nothing":
        (tmp_path / name).unlink()
    elif content_kind == "garbage":
        replace_file(tmp_path / name, "garbage: [")
    elif name in ("server.pem", "server.key"):
        replace_file(tmp_path / name, (keys.client.file if name == "server.pem" else keys.client.key).read_text())
    else:
        replace_file(tmp_path / name, "basic_auth_users: {}")
    for _ in range(3):
        assert curl(api, keys.authority.file, "/-/ready", *ME, *cert_options(keys.client))[0] == 200
    (logged,) = api.log_lines
    assert str(tmp_path / name) in logged
    assert logged.endswith("the previous configuration stays in use")
    replace_file(tmp_path / name, sound)
    assert curl(api, keys.authority.file, "/-/ready", *ME, *cert_options(keys.client))[0] == 200
    assert "reloaded" in api.log_lines[1]


def test_an_unusable_file_prevents_the_start(tmp_path: Path, keys: Keys) -> None:
    file = write(tmp_path, keys.server, keys.authority)
    replace_file(tmp_path / "server.key", keys.client.encrypted_key().read_text())
    for broken, words in ((file, "the key is encrypted"), (tmp_path / "none.yml", "No such file")):
        with pytest.raises(WebConfigError, match=words) as caught:
            Server(lambda *_: None, f"{HOST}:0", broken, print)  # type: ignore[arg-type]
        assert is_one_line(str(caught.value))


def test_only_allowed_versions_and_ciphers_are_negotiated(tmp_path: Path, keys: Keys) -> None:
    sans = "  min_version: TLS12\n  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]"
    sans += "\n  curve_preferences: [CurveP384]"
    with running(tmp_path, write(tmp_path, keys.server, keys.authority, sans=sans)) as api:
        with secured(api, keys, keys.authority.file) as stream:
            assert (stream.version(), (stream.cipher() or ("",))[0]) == ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384")
            assert ready_status(stream) == 200
        assert isinstance(api.agent, Scripted)


@pytest.mark.parametrize(
    ("ciphers", "agreed"), [("ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES256-SHA384:DHE-RSA-AES128-SHA", False), ("ALL", True)]
)
def test_tls_1_2_offers_no_cbc_ciphers(tmp_path: Path, keys: Keys, ciphers: str, agreed: bool) -> None:
    client = ssl.create_default_context(cafile=keys.authority.file)
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.load_cert_chain(keys.client.file, keys.client.key)
    client.set_ciphers(ciphers)
    with running(tmp_path, write(tmp_path, keys.server, keys.authority)) as api, api.connect() as plain:
        if not agreed:
            with pytest.raises(ssl.SSLError):
                client.wrap_socket(plain, server_hostname=HOST)
            return
        with client.wrap_socket(plain, server_hostname=HOST) as stream:
            assert any(mode in (stream.cipher() or ("",))[0] for mode in ("GCM", "CHACHA20"))


def test_configured_headers_are_sent(tmp_path: Path, keys: Keys) -> None:
    rest = "http_server_config: {headers: {Strict-Transport-Security: max-age=60}}"
    with running(tmp_path, write(tmp_path, keys.server, keys.authority, rest)) as api:
        for credentials in (ME, ()):
            _, body = curl(api, keys.authority.file, "/-/ready", "-i", *credentials, *cert_options(keys.client))
            assert "strict-transport-security: max-age=60" in body
            assert "server:" not in body.lower()
        _, body = curl(api, keys.authority.file, "/api/v1/time", *ME, *cert_options(keys.client))
        assert json.loads(body)["sent_s"]


def test_with_optional_certificates_only_a_certificate_allows_writes(tmp_path: Path, keys: Keys) -> None:
    file = write(tmp_path, keys.server, keys.authority)
    text = file.read_text().replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")
    replace_file(file, text.partition("basic_auth_users")[0])
    begin = ("/api/v1/runs", *JSON, "-d", '{"name": "ramp"}')
    with running(tmp_path, file) as api:
        ca = keys.authority.file
        assert curl(api, ca, "/metrics", "-o", "/dev/null")[0] == 200
        assert curl(api, ca, *begin)[0] == 403
        assert curl(api, ca, *begin, *cert_options(keys.strange))[0] == 0
        assert curl(api, ca, *begin, *cert_options(keys.client))[0] == 201
