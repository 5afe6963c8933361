"""Nodetool runs: each returns output or raises a one-line error, and leaves no process behind."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from collector.node.nodetool.runner import MAX_OUTPUT_BYTES, Connection, Nodetool, NodetoolError, _environ_of

LONG_S, SHORT_S = 60.0, 0.5
Script = Callable[..., Nodetool]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a function that creates a `Nodetool` that runs a shell script with the given lines."""

    def make(*lines: str, connection: Connection | None = None, **environ: str) -> Nodetool:
        path = tmp_path / "nodetool"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return Nodetool(path, connection or Connection(), {"PATH": os.environ["PATH"], **environ})

    return make


@pytest.fixture(autouse=True)
def _no_process_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in argument for argument in process.info["cmdline"] or ()):
            wait_for_end(process.pid)


def wait_for_end(pid: int) -> None:
    """Wait until a killed process has ended; fail if it keeps running."""
    deadline_s = time.monotonic() + LONG_S
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline_s, f"process {pid} is still running"
            os.sched_yield()


def error_of(tool: Nodetool, timeout_s: float = LONG_S) -> str:
    """Return the error message of a run, which must fail with a one-line message."""
    with pytest.raises(NodetoolError) as raised:
        tool.run(["info"], timeout_s)
    text = str(raised.value)
    assert len(text.splitlines()) == 1
    return text


def test_stdout_is_returned(script: Script) -> None:
    assert script("echo 'Load : 5 KiB'", "echo more").run(["info"], LONG_S) == "Load : 5 KiB\nmore\n"


def test_stderr_of_a_successful_run_is_ignored(script: Script) -> None:
    tool = script("echo 'Picked up JAVA_TOOL_OPTIONS: -Dx' >&2", "echo good")
    assert tool.run(["info"], LONG_S) == "good\n"


def test_invalid_utf_8_is_replaced(script: Script) -> None:
    assert script(r"printf 'a\377b\n'").run(["info"], LONG_S) == "a\ufffdb\n"


def test_arguments_follow_the_connection_options_without_a_password(script: Script, tmp_path: Path) -> None:
    (tmp_path / "password file").write_text("cassandra hunter2\n")
    connection = Connection(7199, "cassandra", tmp_path / "password file")
    tool = script('cat "$6"', 'for argument in "$@"; do echo "$argument"; done', connection=connection)
    password, *arguments = tool.run(["tablestats", "-F", "json", "ks.t"], LONG_S).splitlines()
    assert password == "cassandra hunter2"  # noqa: S105 - protects nothing
    assert arguments[:5] == ["-p", "7199", "-u", "cassandra", "-pwf"]
    assert re.fullmatch(r"/dev/fd/\d+", arguments[5])
    assert arguments[6:] == ["tablestats", "-F", "json", "ks.t"]


def test_an_unusable_password_file_is_an_error(script: Script, tmp_path: Path) -> None:
    assert "No such file" in error_of(script("echo", connection=Connection(1, "me", tmp_path / "nosuch")))
    os.mkfifo(tmp_path / "pipe")
    assert script("echo x", connection=Connection(1, "me", tmp_path / "pipe")).run(["info"], LONG_S) == "x\n"


def test_nodetool_does_not_receive_casstats_settings(script: Script) -> None:
    tool = script("env", CASSTAT_JOLOKIA_PASSWORD="hunter2", JAVA_HOME="/java")  # noqa: S106 - protects nothing
    output = tool.run(["info"], LONG_S)
    assert "JAVA_HOME=/java" in output
    assert "CASSTAT_" not in output


def test_an_unset_connection_has_no_options() -> None:
    assert Connection().flags() == []
    assert Connection(port=7199).flags() == ["-p", "7199"]


def test_arguments_are_not_interpreted_by_a_shell(script: Script) -> None:
    arguments = ["$(id)", "a b", "`id`", "*", "", "a;b", "'\""]
    assert script('for argument in "$@"; do echo "[$argument]"; done').run(arguments, LONG_S).splitlines() == [
        f"[{a}]" for a in arguments
    ]


def test_the_environment_is_passed_on_with_an_english_locale(script: Script) -> None:
    tool = script(
        'echo "$LC_ALL|$JAVA_HOME|$JVM_OPTS"', LC_ALL="de_DE.UTF-8", JAVA_HOME="/opt/java", JVM_OPTS="-Dmine=1"
    )
    locale, home, options = tool.run(["info"], LONG_S).strip().split("|")
    assert (locale, home) == ("C", "/opt/java")
    assert options.split()[0] == "-Dmine=1"
    assert {"-XX:TieredStopAtLevel=1", "-Duser.language=en", "-Duser.home=/dev/null"} <= set(options.split())


def test_another_users_nodetool_receives_only_variables_that_it_reads() -> None:
    given = {
        "PATH": "/bin",
        "CASSANDRA_CONF": "/etc/cassandra",
        "CASSANDRA_PASSWORD": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    assert _environ_of(os.geteuid(), given).keys() == {"PATH", "CASSANDRA_CONF", "HOME"}


def test_stdin_is_empty(script: Script) -> None:
    assert script("cat", "echo done").run(["info"], LONG_S) == "done\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["echo \"nodetool: Failed to connect to '127.0.0.1:7199' - ConnectException: 'Connection refused'.\" >&2"],
            "nodetool info: Failed to connect to '127.0.0.1:7199' - ConnectException: 'Connection refused'.",
        ),
        (
            ["echo 'error: null' >&2", "echo '-- StackTrace --' >&2", "echo 'java.lang.NullPointerException' >&2"],
            "nodetool info: error: null",
        ),
        (
            [
                "echo 'WARN  12:00 about something' >&2",
                "echo '\tat org.apache.Some.thing(Some.java:1)' >&2",
                "echo why",
            ],
            "nodetool info: why",
        ),
        (["echo out", "echo 'nodetool: Unknown keyspace: [ks]' >&2"], "nodetool info: Unknown keyspace: [ks]"),
        ([], "nodetool info: exit code 3"),
    ],
)
def test_a_failure_is_reported_with_nodetools_message(lines: list[str], expected: str, script: Script) -> None:
    assert error_of(script(*lines, "exit 3")) == expected


def test_output_of_a_failed_run_is_an_error(script: Script) -> None:
    assert "exit code 1" in error_of(script("echo", "exit 1"))
    assert "Load" in error_of(script("echo 'Load : 5 KiB'", "exit 1"))


def test_a_run_ended_by_a_signal_is_an_error(script: Script) -> None:
    assert error_of(script("echo", "kill -9 $$")) == "nodetool info: exit code -9"


def test_empty_output_is_an_error(script: Script) -> None:
    assert error_of(script("exit 0")) == "nodetool info: no output"
    assert error_of(script("echo ' '", "echo 'Picked up JVM_OPTS' >&2", "echo reason >&2")) == (
        "nodetool info: no output: reason"
    )


def test_a_hanging_run_is_killed_at_its_deadline(script: Script) -> None:
    assert error_of(script("echo half", "sleep 1000"), SHORT_S) == (
        "nodetool info: killed because its output was not complete in time"
    )
    assert "why it hangs" in error_of(script("echo 'why it hangs' >&2", "sleep 1000"), SHORT_S)


def test_a_timeout_of_zero_kills_at_once(script: Script) -> None:
    assert "output was not complete in time" in error_of(script("sleep 1000"), 0.0)


def test_a_run_that_ignores_signals_is_killed(script: Script) -> None:
    assert "in time" in error_of(script("trap '' TERM INT HUP", "while :; do sleep 1000; done"), SHORT_S)


def test_a_run_that_closes_its_output_and_continues_is_killed(script: Script) -> None:
    assert (
        error_of(script("echo all", "exec >&- 2>&-", "sleep 1000"), SHORT_S)
        == "nodetool info: killed because it did not exit in time"
    )


def test_children_of_a_killed_run_are_killed(script: Script, tmp_path: Path) -> None:
    # Run a shell script with a child process, like the nodetool script and its JVM.
    tool = script(f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; echo {tmp_path}'", "echo never")
    assert "output was not complete in time" in error_of(tool, 2.0)
    wait_for_end(int((tmp_path / "child").read_text()))


def test_a_child_that_outlives_the_run_and_holds_its_output_is_killed(script: Script, tmp_path: Path) -> None:
    tool = script(f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; echo {tmp_path}' &", "echo done")
    assert "output was not complete in time" in error_of(tool, 2.0)
    wait_for_end(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_run_with_endless_output_is_killed(stream: str, script: Script) -> None:
    assert "killed" in error_of(script(f"exec yes{stream}"), 2.0)


def test_a_run_with_endless_slow_output_is_killed(script: Script) -> None:
    assert "output was not complete in time" in error_of(script("while :; do echo x; sleep 0.01; done"), SHORT_S)


def test_a_run_with_output_over_the_limit_is_killed(script: Script) -> None:
    tool = script("exec cat /dev/zero")
    assert error_of(tool) == f"nodetool info: killed because its output was larger than {MAX_OUTPUT_BYTES >> 20} MiB"


def test_large_output_is_read_completely(script: Script) -> None:
    tool = script("head -c 5000000 /dev/zero | tr '\\0' x", "head -c 5000000 /dev/zero >&2")
    assert len(tool.run(["info"], LONG_S)) == 5_000_000


def test_a_program_that_cannot_be_run_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("#!/bin/sh\n")
    (tmp_path / "broken").write_text("not a program\n")
    (tmp_path / "broken").chmod(0o755)
    (tmp_path / "elsewhere").write_text("#!/nosuch/sh\n")
    (tmp_path / "elsewhere").chmod(0o755)
    for name, cause in {
        "nosuch": "No such file or directory",
        "folder": "Permission denied",
        "text": "Permission denied",
        "broken": "Exec format error",
        "elsewhere": "No such file or directory",
    }.items():
        tool = Nodetool(tmp_path / name, Connection(), {})
        assert error_of(tool) == f"{tmp_path / name}: {cause}"


def test_runs_are_concurrent(script: Script, tmp_path: Path) -> None:
    # Each run waits until the other one has started.
    tool = script(f'touch "{tmp_path}/$1"', f'until [ -e "{tmp_path}/$2" ]; do sleep 0.01; done', 'echo "$1"')
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(tool.run, ["a", "b"], LONG_S), pool.submit(tool.run, ["b", "a"], LONG_S)
        assert (first.result(), second.result()) == ("a\n", "b\n")


def test_closing_kills_running_processes_and_prevents_new_ones(script: Script, tmp_path: Path) -> None:
    tool = script(f"mkfifo {tmp_path}/fifo", f"touch {tmp_path}/began", f"cat {tmp_path}/fifo")
    errors: list[str] = []
    thread = threading.Thread(target=lambda: errors.append(error_of(tool)))
    thread.start()
    while not (tmp_path / "began").exists():
        assert thread.is_alive()
        os.sched_yield()
    tool.close()
    thread.join()
    assert errors[0].startswith("nodetool info: ")
    assert error_of(tool) == "nodetool info: cancelled"
    tool.close()
