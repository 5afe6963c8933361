"""`casstat dashboards`: written files, uploads to Grafana, and error messages when Grafana refuses them."""

import base64
import json
import ssl
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from cli.main import main
from dashboards.grafana import dashboard_files
from dashboards.grafana import dashboard_files as grafana_upload
from tests.faults.certificates import Authority
from tests.faults.fake_grafana import FakeGrafana
from tests.faults.fake_store import Answer, FakeStore, black_hole, byte_by_byte, endless, hang_up, not_http, status

TOKEN = "glsa_0123456789"  # noqa: S105 - not a real token


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return secret_file(tmp_path / "token", TOKEN)


def secret_file(path: Path, secret: str) -> Path:
    path.write_text(f"{secret}\n")
    path.chmod(0o600)
    return path


def push(url: str, token: Path, *options: str) -> int:
    return main(["dashboards", "push", url, "--token-file", str(token), *options])


def test_all_dashboards_are_uploaded_to_their_folder(token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(FakeGrafana((412, {"message": "the folder exists"}))) as grafana:
        assert push(f"{grafana.url}/sub/", token) == 0
        folder, *uploads = grafana.requests
        url = grafana.url
    assert (folder.path, folder.body) == ("/sub/api/folders", {"uid": "casstat", "title": "casstat"})
    assert [upload.path for upload in uploads] == ["/sub/api/dashboards/db"] * len(
        list(dashboard_files.packaged_dashboards("prometheus"))
    )
    assert {upload.authorization for upload in uploads} == {f"Bearer {TOKEN}"}
    for upload, (_, text) in zip(uploads, dashboard_files.packaged_dashboards("prometheus"), strict=True):
        assert upload.body["dashboard"] == {**json.loads(text), "id": None}
        assert (upload.body["folderUid"], upload.body["overwrite"]) == ("casstat", True)
    assert f"{url}/sub/d/casstat-overview\n" in capsys.readouterr().out


def test_the_token_file_may_contain_a_user_and_password(tmp_path: Path) -> None:
    with closing(FakeGrafana()) as grafana:
        assert push(grafana.url, secret_file(tmp_path / "user", "me:hunter2"), "--for", "influxdb") == 0
        assert grafana.requests[0].authorization == f"Basic {base64.b64encode(b'me:hunter2').decode()}"
        assert grafana.requests[1].body["dashboard"]["uid"].endswith("-influxdb")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "check --token-file"),
        (403, "the Editor role"),
        (404, "no Grafana API at this URL"),
        (302, "redirected"),
        (500, "HTTP 500"),
    ],
)
def test_an_http_error_is_a_one_line_message(
    status: int, words: str, token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(FakeGrafana((status, {"message": f"no, {TOKEN}\n\x1b[31m"}))) as grafana:
        assert push(grafana.url, token) == 1
    errors = capsys.readouterr().err
    assert words in errors
    assert errors.count("\n") == 1
    assert TOKEN not in errors
    assert "\x1b" not in errors


def test_a_provisioned_dashboard_is_reported(token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(FakeGrafana((200, {}), (412, {"message": "provisioned"}))) as grafana:
        assert push(grafana.url, token) == 1
    assert "provisioned from a file" in capsys.readouterr().err


FAULTS: dict[str, tuple[Answer, str]] = {
    "black hole": (black_hole, "no complete response in time"),
    "byte by byte": (byte_by_byte, "no complete response in time"),
    "endless": (endless, "HTTP 500"),
    "hang up": (hang_up, "without a response"),
    "nonsense": (not_http, "not an HTTP response"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_connection_fault_is_a_one_line_message(
    fault: str, token: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, words = FAULTS[fault]
    monkeypatch.setattr(grafana_upload, "TIMEOUT_S", 0.4)
    with closing(FakeStore(answer)) as store:
        assert push(f"http://127.0.62.3:{store.port}", token) == 1
    errors = capsys.readouterr().err
    assert words in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:3000", "pass http://HOST:3000"),
        ("ftp://localhost", "pass http://HOST:3000"),
        ("http://me:pw@localhost", "the URL contains a user name and password"),
        ("http://[", "pass http://HOST:3000"),
        ("http://node..example", "pass http://HOST:3000"),
        ("http://localhost:99999", "pass http://HOST:3000"),
        ("http://localhost/?x=1", "'?'"),
        ("http://127.0.62.3:1", "refused"),
    ],
)
def test_an_invalid_url_is_a_one_line_message(
    url: str, words: str, token: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(url, token) == 1
    errors = capsys.readouterr().err
    assert words in errors
    assert "pw" not in errors
    assert errors.count("\n") == 1


def test_https_requires_a_trusted_authority(token: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority = Authority(tmp_path)
    certificate = authority.sign("grafana", "subjectAltName=IP:127.0.62.3")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    with closing(FakeStore(*[status(200)] * 20, tls=context)) as store:
        url = f"https://127.0.62.3:{store.port}"
        assert push(url, token) == 1
        assert "with --ca FILE" in capsys.readouterr().err
        other = Authority(tmp_path, "other")
        assert push(url, token, "--ca", str(other.file)) == 1
        assert f"not signed by an authority in {other.file}" in capsys.readouterr().err
        assert push(url, token, "--ca", str(authority.file)) == 0


def test_a_token_file_readable_by_others_is_refused(token: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token.chmod(0o644)
    assert push("http://127.0.62.3:1", token) == 2
    assert "chmod 600" in capsys.readouterr().err


def test_dashboards_are_written_to_the_provisioned_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a 'b\": c"
    assert main(["dashboards", "write", str(folder)]) == 0
    names = capsys.readouterr().out.splitlines()
    assert {str(path) for path in folder.rglob("*") if path.is_file()} == set(names)
    providers = yaml.safe_load((folder / "provisioning" / "dashboards" / "casstat.yaml").read_text())["providers"]
    for provider in providers:
        files = list(Path(provider["options"]["path"]).glob("*.json"))
        assert files
        assert all(json.loads(path.read_text())["uid"].startswith("casstat-") for path in files)


def test_the_for_option_selects_the_dashboards_of_one_store(tmp_path: Path) -> None:
    assert main(["dashboards", "write", str(tmp_path), "--for", "influxdb"]) == 0
    assert not (tmp_path / "prometheus").exists()
    assert list((tmp_path / "influxdb").glob("*.json"))


def test_an_unwritable_folder_is_a_one_line_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["dashboards", "write", str(tmp_path / "file" / "x")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
