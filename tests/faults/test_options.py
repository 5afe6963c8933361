"""Invalid options and arguments are refused with exit code 2 and a message before the first tick."""

import re

import pytest

from cli.main import main
from tests.faults.program import is_missed_tick, is_one_line, run

INVALID: list[tuple[list[str], str]] = [
    (["abc"], "'abc'"),
    (["0", "1"], "interval of 0 s"),
    (["-1"], "-1"),
    (["--", "-1", "1"], r"'-1' is not a valid duration \(hint: use 30, 30s, 5m or 1.5h\)"),
    (["0.01", "1"], r"interval of 0\.01 s"),
    (["0.09999", "1"], "interval of"),
    (["nan", "1"], "'nan' is not a valid duration"),
    (["inf", "1"], "'inf' is not a valid duration"),
    (["--", "-inf", "1"], "'-inf' is not a valid duration"),
    (["1e308", "1"], "'1e308' is not a valid duration"),
    (["1e999", "1"], "'1e999' is not a valid duration"),
    (["86401", "1"], "interval of"),
    (["25h", "1"], "interval of 90000 s"),
    (["1y", "1"], "'1y' is not a valid duration"),
    (["1,5", "1"], "'1,5' is not a valid duration"),
    (["1", "0"], "0 is not in the range"),
    (["1", "--", "-1"], "-1 is not in the range"),
    (["1", "1.5"], r"'1\.5'"),
    (["1", "nan"], "'nan'"),
    (["1", "2", "3"], "unexpected extra argument"),
    (["-i", "0", "-n", "1"], "interval of 0 s"),
    (["-i", "x", "-n", "1"], "'x'"),
    (["-i", "nan", "-n", "1"], "'nan' is not a valid duration"),
    (["-n", "0"], "0 is not in the range"),
    (["-n", "-5"], "-5 is not in the range"),
    (["-n", "many"], "'many'"),
    (["1", "-i", "2", "-n", "1"], "two different values for the interval"),
    (["1", "1", "-n", "2"], "two different values for the count"),
    (["-c", "t", "1", "1"], "--table needs --keyspace"),
    (["-k", "", "1", "1"], "keyspace"),
    (["-k", "a[", "1", "1"], r"'a\['.*letters, digits and _"),
    (["-k", "x,y=z", "1", "1"], "'x,y=z'.*letters, digits and _"),
    (["-k", "ü", "1", "1"], "'ü'.*letters, digits and _"),
    (["-k", "\u0661", "1", "1"], "letters, digits and _"),
    (["-k", "ks\n", "1", "1"], "letters, digits and _"),
    (["-k", '"', "1", "1"], "letters, digits and _"),
    (["-k", "ks", "-c", "t-", "1", "1"], r"'t-'.*table.*letters, digits and _"),
    (["-k"], "requires an argument"),
    (["-o", "nosuch", "1", "1"], "no disk 'nosuch' on this machine"),
    (["-o", "/dev/nosuch", "1", "1"], "no disk 'nosuch' on this machine"),
    (["-f", "nosuch0", "1", "1"], "no interface 'nosuch0' on this machine"),
    (["--format", "yaml", "1", "1"], "'yaml'"),
    (["--frobnicate"], "--frobnicate"),
    (["-Z"], "-Z"),
    (["--jolokia"], "requires an argument"),
]
ENVIRONMENT = [
    ("CASSTAT_INTERVAL", "abc", "'abc'"),
    ("CASSTAT_INTERVAL", "0", "interval of 0 s"),
    ("CASSTAT_INTERVAL", "nan", "'nan' is not a valid duration"),
    ("CASSTAT_COUNT", "0", "0 is not in the range"),
    ("CASSTAT_COUNT", "x", "'x'"),
    ("CASSTAT_FORMAT", "yaml", "'yaml'"),
    ("CASSTAT_KEYSPACE", "a-", "'a-'"),
    ("CASSTAT_DISK", "nosuch", "no disk 'nosuch'"),
    ("CASSTAT_NET_INTERFACE", "nosuch0", "no interface 'nosuch0'"),
    ("CASSTAT_JOLOKIA", "ftp://x/", "expected a URL"),
]


def error_message(errors: str) -> str:
    """Return click's error message, which must be the last line."""
    (line,) = [line for line in errors.splitlines() if line.startswith("Error: ")]
    assert errors.splitlines()[-1] == line
    assert is_one_line(line)
    assert "Traceback" not in errors
    return line


@pytest.mark.parametrize(("arguments", "words"), INVALID, ids=[" ".join(arguments) for arguments, _ in INVALID])
def test_invalid_arguments_are_refused(
    arguments: list[str], words: str, refusing_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command_line = arguments if arguments == ["--jolokia"] else [f"--jolokia={refusing_url}", *arguments]
    assert main(command_line) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert re.search(words, error_message(errors))


@pytest.mark.parametrize(("name", "value", "words"), ENVIRONMENT)
def test_invalid_environment_variables_are_refused(
    name: str,
    value: str,
    words: str,
    refusing_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CASSTAT_JOLOKIA", refusing_url)
    monkeypatch.setenv("CASSTAT_COUNT", "1")
    monkeypatch.setenv(name, value)
    assert main([]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert re.search(words, error_message(errors))


@pytest.mark.parametrize("arguments", [["0.1", "1"], ["-i", "0.1", "-n", "1"]])
def test_the_command_line_overrides_the_environment(
    arguments: list[str], refusing_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASSTAT_INTERVAL", "30")
    monkeypatch.setenv("CASSTAT_COUNT", "50")
    assert main([*arguments, "--format=json", f"--jolokia={refusing_url}"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "first_word"), [("CASSTAT_TIME", "Time"), ("CASSTAT_EPOCH", "Epoch"), ("CASSTAT_NO_HEADER", "-")]
)
def test_flags_can_be_set_in_the_environment(
    name: str, first_word: str, refusing_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    assert main(["0.1", "1", f"--jolokia={refusing_url}"]) == 1
    assert capsys.readouterr().out.split()[0] == first_word


@pytest.mark.parametrize("arguments", [["0.1", "2", "-i", "0.1", "-n", "2"], ["0.10", "2", "-i", ".1"]])
def test_the_same_value_may_be_given_twice(
    arguments: list[str], refusing_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--format=json", f"--jolokia={refusing_url}"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_goes_to_stdout_and_lists_the_commands(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    out, errors = capsys.readouterr()
    assert errors == ""
    assert out.startswith("Usage: casstat [OPTIONS]")
    assert "--jolokia URL" in out
    assert re.search(r"^ +demo +\w", out, re.MULTILINE)


def test_the_version_is_one_line() -> None:
    result = run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert re.fullmatch(r"casstat \d+\.\d+\.\d+\S*\n", result.stdout)


def test_an_invalid_argument_prints_nothing_on_stdout() -> None:
    result = run("abc")
    assert (result.returncode, result.stdout) == (2, "")
    assert "'abc'" in error_message(result.stderr)


def test_an_option_that_is_not_utf_8_is_refused_without_a_traceback(refusing_url: str) -> None:
    result = run("-k", b"\xff\xfe".decode(errors="surrogateescape"), "0.1", "1", "--jolokia", refusing_url)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


@pytest.mark.alone
def test_without_cassandra_there_is_one_message_and_rows_have_host_values(refusing_url: str) -> None:
    result = run("0.1", "3", "--format=csv", "--jolokia", refusing_url)
    # Scripts can tell from the exit code that Cassandra never answered.
    assert result.returncode == 1
    assert re.fullmatch(r"casstat: no answer from Cassandra; .*Connection refused.*\n", result.stderr)
    header, *rows = [line.split(",") for line in result.stdout.splitlines()]
    assert len(rows) == 3
    assert all(row[header.index("reads_per_s")] == "" for row in rows)
    assert all(text == "" or is_missed_tick(text) for text in (row[header.index("events")] for row in rows))
    assert all(float(row[header.index("cpu_idle_pct")]) >= 0 for row in rows)
