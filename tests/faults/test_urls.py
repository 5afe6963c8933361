"""Invalid Jolokia URLs are refused before any request, and messages never contain a password."""

import pytest

from cli.main import main
from collector.node.jolokia.client import Jolokia, UrlError
from tests.faults.program import is_one_line, run

SECRET = "hunter2"  # noqa: S105 - not a real password
INVALID = [
    "",
    "http://",
    "http:///jolokia",
    "http://:8778/jolokia",
    "ftp://127.0.0.1/jolokia",
    "file:///etc/passwd",
    "service:jmx:rmi:///jndi/rmi://127.0.0.1:7199/jmxrmi",
    "http://127.0.0.1:99999/jolokia",
    "http://127.0.0.1:-1/jolokia",
    "http://127.0.0.1:0/jolokia",
    "http://127.0.0.1:port/jolokia",
    "http://[::1/jolokia",
    "http://[127.0.0.1]:x/jolokia",
    "http://127.0.0.1:8778/jolokia?user=me",
    "http://127.0.0.1:8778/jolokia#top",
    "http://127.0.0.1:8778/jolo kia",
    "http://127.0.0.1:8778/jölokia",
    "http://127.0.0.1 :8778/jolokia",
]
WITH_PASSWORD = [
    f"http://me:{SECRET}@127.0.0.1:8778/jolokia",
    f"https://me:{SECRET}@127.0.0.1/jolokia",
    f"me:{SECRET}@127.0.0.1:8778",
    f"http://:{SECRET}@127.0.0.1:8778/jolokia",
    f"ftp://me:{SECRET}@127.0.0.1/jolokia",
    f"http://me:{SECRET}@/jolokia",
    f"http://me:{SECRET}@127.0.0.1:99999/jolokia",
    f"http://me:{SECRET}@127.0.0.1:port/jolokia",
    f"http://me:{SECRET}/3@127.0.0.1:8778/jolokia",
    f"http://me:{SECRET}#3@127.0.0.1:8778/jolokia",
    f"http://me:{SECRET}?3@127.0.0.1:8778/jolokia",
    f"http://me:{SECRET}@[::1/jolokia",
]


@pytest.mark.parametrize("url", [*INVALID, *WITH_PASSWORD])
def test_an_invalid_url_is_a_one_line_error_without_its_password(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        Jolokia(url)
    assert is_one_line(str(caught.value))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://h:9\x1b[31m/", "http://h\n:99999/", "http://h/?\x1b]0;x\x07", f"ftp:{10_000 * 'x'}"]
)
def test_control_characters_and_long_urls_give_a_one_line_error(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        Jolokia(url)
    assert is_one_line(str(caught.value))


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999/", f"http://me:{SECRET}@h/"])
def test_an_invalid_url_ends_the_program_before_the_first_tick(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "1", "--jolokia", url]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert "--jolokia" in errors
    assert SECRET not in errors


def test_an_invalid_url_in_the_environment_is_refused_without_its_password() -> None:
    result = run("1", "1", CASSTAT_JOLOKIA=f"http://me:{SECRET}@127.0.0.1:8778/jolokia")
    assert (result.returncode, result.stdout) == (2, "")
    assert SECRET not in result.stderr
    assert "contains a user name and password" in result.stderr


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.1", 8778),
        ("node7:8779", "node7", 8779),
        ("http://node7/jolokia/", "node7", 8778),
        ("https://node7/jolokia", "node7", 443),
        ("[::1]:8778", "::1", 8778),
        ("HTTP://node7:1/", "node7", 1),
    ],
)
def test_short_forms_of_urls_are_completed(given: str, host: str, port: int) -> None:
    jolokia = Jolokia(given)
    assert (jolokia.host, jolokia.port) == (host, port)
