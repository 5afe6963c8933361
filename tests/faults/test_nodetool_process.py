"""nodetool as a transport: whatever the program does, what it said or one line why not, and nothing left running."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from collector.nodetool.runner import MAX_OUTPUT_BYTES, Connection, Nodetool, NodetoolError

LONG_S, SHORT_S = 60.0, 0.5
Script = Callable[..., Nodetool]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return what makes a nodetool of the lines of a shell script."""

    def make(*lines: str, connection: Connection | None = None, **environ: str) -> Nodetool:
        path = tmp_path / "nodetool"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)
        return Nodetool(path, connection or Connection(), {"PATH": os.environ["PATH"], **environ})

    return make


@pytest.fixture(autouse=True)
def _nothing_is_left_running(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in argument for argument in process.info["cmdline"] or ()):
            ended(process.pid)


def ended(pid: int) -> None:
    """Return once a process that was killed is gone, which takes a moment; fail when it was not killed."""
    patience = time.monotonic() + LONG_S
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < patience, f"process {pid} runs on"
            os.sched_yield()


def problem(tool: Nodetool, timeout_s: float = LONG_S) -> str:
    """Return why the tool did not say anything."""
    with pytest.raises(NodetoolError) as raised:
        tool.run(["info"], timeout_s)
    text = str(raised.value)
    assert len(text.splitlines()) == 1
    return text


def test_what_it_prints_is_returned(script: Script) -> None:
    assert script("echo 'Load : 5 KiB'", "echo more").run(["info"], LONG_S) == "Load : 5 KiB\nmore\n"


def test_what_it_prints_beside_is_none_of_it(script: Script) -> None:
    tool = script("echo 'Picked up JAVA_TOOL_OPTIONS: -Dx' >&2", "echo good")
    assert tool.run(["info"], LONG_S) == "good\n"


def test_bytes_that_are_no_text_are_no_error(script: Script) -> None:
    assert script(r"printf 'a\377b\n'").run(["info"], LONG_S) == "a\ufffdb\n"


def test_its_arguments_stand_after_its_connection_and_no_password_among_them(script: Script, tmp_path: Path) -> None:
    connection = Connection(7199, "cassandra", tmp_path / "password file")
    tool = script('for each in "$@"; do echo "$each"; done', connection=connection)
    assert tool.run(["tablestats", "-F", "json", "ks.t"], LONG_S).splitlines() == [
        *("-p", "7199", "-u", "cassandra", "-pwf", str(tmp_path / "password file")),
        *("tablestats", "-F", "json", "ks.t"),
    ]


def test_without_a_connection_it_is_left_to_nodetool() -> None:
    assert Connection().flags() == []
    assert Connection(port=7199).flags() == ["-p", "7199"]


def test_no_shell_ever_sees_the_arguments(script: Script) -> None:
    odd = ["$(id)", "a b", "`id`", "*", "", "a;b", "'\""]
    assert script('for each in "$@"; do echo "[$each]"; done').run(odd, LONG_S).splitlines() == [f"[{a}]" for a in odd]


def test_the_environment_goes_on_to_it_and_its_words_are_english(script: Script) -> None:
    tool = script(
        'echo "$LC_ALL|$JAVA_HOME|$JVM_OPTS"', LC_ALL="de_DE.UTF-8", JAVA_HOME="/opt/java", JVM_OPTS="-Dmine=1"
    )
    locale, home, options = tool.run(["info"], LONG_S).strip().split("|")
    assert (locale, home) == ("C", "/opt/java")
    assert options.split()[0] == "-Dmine=1"
    assert {"-XX:TieredStopAtLevel=1", "-Duser.language=en", "-Duser.home=/dev/null"} <= set(options.split())


def test_it_has_nothing_to_read(script: Script) -> None:
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
def test_why_it_failed_is_its_own_words_in_one_line(lines: list[str], expected: str, script: Script) -> None:
    assert problem(script(*lines, "exit 3")) == expected


def test_what_a_failing_one_prints_is_not_believed(script: Script) -> None:
    assert "exit code 1" in problem(script("echo", "exit 1"))
    assert "Load" in problem(script("echo 'Load : 5 KiB'", "exit 1"))


def test_one_that_is_ended_by_a_signal_has_failed(script: Script) -> None:
    assert problem(script("echo", "kill -9 $$")) == "nodetool info: exit code -9"


def test_one_that_prints_nothing_has_said_nothing(script: Script) -> None:
    assert problem(script("exit 0")) == "nodetool info: no output"
    assert problem(script("echo ' '", "echo 'Picked up JVM_OPTS' >&2", "echo reason >&2")) == (
        "nodetool info: no output: reason"
    )


def test_one_that_does_not_end_is_ended_in_time(script: Script) -> None:
    assert problem(script("echo half", "sleep 1000"), SHORT_S) == "nodetool info: no answer in time, killed"
    assert "why it hangs" in problem(script("echo 'why it hangs' >&2", "sleep 1000"), SHORT_S)


def test_one_that_has_no_time_left_is_ended_at_once(script: Script) -> None:
    assert "no answer in time" in problem(script("sleep 1000"), 0.0)


def test_one_that_ignores_its_end_is_ended_all_the_same(script: Script) -> None:
    assert "in time" in problem(script("trap '' TERM INT HUP", "while :; do sleep 1000; done"), SHORT_S)


def test_one_that_closes_its_output_and_lives_on_is_ended(script: Script) -> None:
    assert (
        problem(script("echo all", "exec >&- 2>&-", "sleep 1000"), SHORT_S) == "nodetool info: no exit in time, killed"
    )


def test_the_children_of_one_that_is_ended_are_ended_too(script: Script, tmp_path: Path) -> None:
    # As the script of nodetool and its JVM.
    tool = script(f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; echo {tmp_path}'", "echo never")
    assert "no answer in time" in problem(tool, 2.0)
    ended(int((tmp_path / "child").read_text()))


def test_a_child_that_outlives_it_and_holds_its_output_is_ended(script: Script, tmp_path: Path) -> None:
    tool = script(f"sh -c 'echo $$ > {tmp_path}/child; sleep 1000; echo {tmp_path}' &", "echo done")
    assert "no answer in time" in problem(tool, 2.0)
    ended(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_output_without_end_ends(stream: str, script: Script) -> None:
    assert "killed" in problem(script(f"exec yes{stream}"), 2.0)


def test_output_that_trickles_without_end_ends(script: Script) -> None:
    assert "no answer in time" in problem(script("while :; do echo x; sleep 0.01; done"), SHORT_S)


def test_too_much_output_is_not_read_to_its_end(script: Script) -> None:
    tool = script("exec cat /dev/zero")
    assert problem(tool) == f"nodetool info: output larger than {MAX_OUTPUT_BYTES >> 20} MiB, killed"


def test_much_output_is_read_whole(script: Script) -> None:
    tool = script("head -c 5000000 /dev/zero | tr '\\0' x", "head -c 5000000 /dev/zero >&2")
    assert len(tool.run(["info"], LONG_S)) == 5_000_000


def test_a_program_that_cannot_be_run_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("#!/bin/sh\n")
    (tmp_path / "broken").write_text("no program\n")
    (tmp_path / "broken").chmod(0o755)
    (tmp_path / "elsewhere").write_text("#!/nosuch/sh\n")
    (tmp_path / "elsewhere").chmod(0o755)
    for name, why in {
        "nosuch": "No such file or directory",
        "folder": "Permission denied",
        "text": "Permission denied",
        "broken": "Exec format error",
        "elsewhere": "No such file or directory",
    }.items():
        tool = Nodetool(tmp_path / name, Connection(), {})
        assert problem(tool) == f"{tmp_path / name}: {why}"


def test_several_run_at_once(script: Script, tmp_path: Path) -> None:
    # Each waits for the other to have begun.
    tool = script(f'touch "{tmp_path}/$1"', f'until [ -e "{tmp_path}/$2" ]; do sleep 0.01; done', 'echo "$1"')
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(tool.run, ["a", "b"], LONG_S), pool.submit(tool.run, ["b", "a"], LONG_S)
        assert (first.result(), second.result()) == ("a\n", "b\n")


def test_closing_ends_what_runs_and_starts_nothing_more(script: Script, tmp_path: Path) -> None:
    tool = script(f"mkfifo {tmp_path}/fifo", f"touch {tmp_path}/began", f"cat {tmp_path}/fifo")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(problem(tool)))
    thread.start()
    while not (tmp_path / "began").exists():
        assert thread.is_alive()
        os.sched_yield()
    tool.close()
    thread.join()
    assert found[0].startswith("nodetool info: ")
    assert problem(tool) == "nodetool info: canceled"
    tool.close()
