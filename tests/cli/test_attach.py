"""`casstat attach`: choosing the node, checks before attaching, the agent's options, and the launcher's messages."""

import json
import os
import re
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.errors import CasstatError
from cli.line import node_selection
from cli.main import main
from cli.setup.attach import attach_steps, target_process
from cli.setup.attach.attach_steps import Agent, Task, options_file
from cli.setup.attach.target_process import (
    AT_START,
    DISABLED,
    ENABLED,
    MAIN,
    MAX_OUTPUT_BYTES,
    Done,
    Runner,
    Subject,
    chosen,
    java_for,
    require_jolokia,
    runner,
    subject,
)
from collector.node.host.cassandra_processes import LocalNode
from collector.node.host.kernel_files import stat_in
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json

SECRET = "hunter2"  # noqa: S105 - protects nothing
SELF = psutil.Process()
STAT = stat_in(Path("/proc/self"))
assert STAT is not None
HERE = LocalNode(SELF.pid, SELF.create_time(), uid=os.geteuid(), gid=os.getegid(), start_ticks=STAT.start)
OWNER = (os.geteuid(), os.getegid())
ME = Subject(HERE.pid, OWNER, ("java", "CassandraDaemon"))
OPEN = Agent("127.0.0.1", 8778)


def error_of(action: Callable[[], Any]) -> str:
    """Return the one-line message of the error that an action raises."""
    with pytest.raises(CasstatError) as caught:
        action()
    message = str(caught.value)
    assert message.isprintable()
    assert SECRET not in message
    return message


# Choosing the node


def test_the_only_node_or_the_given_one_is_chosen() -> None:
    first, second = LocalNode(4, 1.0, jmx_port=7199), LocalNode(5, 2.0)
    assert chosen([first], None) == first
    assert chosen([first, second], 5) == second


def test_an_ambiguous_choice_lists_the_nodes() -> None:
    both = [LocalNode(4, 1.0, jmx_port=7199), LocalNode(5, 2.0)]
    several = "several Cassandra processes are running on this machine: 4 (JMX port 7199), 5 (hint: specify a PID)"
    assert several in error_of(lambda: chosen(both, None))
    assert "process 6 is not a Cassandra process on this machine; running: 4 (JMX port 7199), 5" in error_of(
        lambda: chosen(both, 6)
    )
    assert "no Cassandra process is running on this machine" in error_of(lambda: chosen([], None))


def test_a_process_that_has_ended_is_an_error() -> None:
    assert "has ended" in error_of(lambda: subject(replace(HERE, start_ticks=HERE.start_ticks + 1)))
    assert "has ended" in error_of(lambda: subject(LocalNode(2**22 + 1, 1.0)))
    assert subject(HERE).owner == OWNER


# Checks before attaching


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    return write_jar(tmp_path / "jolokia.jar", f"Manifest-Version: 1.0\r\nMain-Class: {MAIN}\r\n")


def write_jar(path: Path, manifest: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)
    return path


def test_the_jar_must_be_jolokias_agent(jar: Path, tmp_path: Path) -> None:
    require_jolokia(jar)
    foreign = write_jar(tmp_path / "other.jar", "Main-Class: org.example.Main\n")
    assert "not Jolokia's JVM agent" in error_of(lambda: require_jolokia(foreign))
    text = tmp_path / "text.jar"
    text.write_text("PK, or perhaps not")
    assert "not a JAR file" in error_of(lambda: require_jolokia(text))
    with zipfile.ZipFile(tmp_path / "empty.jar", "w"):
        pass
    assert "not a JAR file" in error_of(lambda: require_jolokia(tmp_path / "empty.jar"))
    assert "No such file" in error_of(lambda: require_jolokia(tmp_path / "none.jar"))
    assert "Is a directory" in error_of(lambda: require_jolokia(tmp_path))


def test_a_jar_that_other_users_can_change_is_not_loaded(jar: Path) -> None:
    jar.chmod(0o666)
    message = error_of(Task(jar, HERE, [HERE], {}).detach)
    assert message.startswith(f"{jar}: not loaded, because other users can write to {jar} (hint: ")


def test_only_the_nodes_user_and_root_may_attach(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner(ME, jar).owner == (OWNER if os.geteuid() == 0 else None)
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] + 1)
    message = error_of(lambda: runner(ME, jar))
    assert f"process {ME.pid} belongs to {ME.user} (hint: run casstat as that user or as root" in message
    without_name = Subject(ME.pid, (4_000_000, OWNER[1]), ME.command)
    assert r"'sudo -u \#4000000 casstat attach …'" in error_of(lambda: runner(without_name, jar))


def test_no_files_are_written_for_another_users_node(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] + 1)
    monkeypatch.setattr(attach_steps, "options_file", lambda *_: pytest.fail("written"))
    assert "belongs to" in error_of(lambda: Task(jar, HERE, [HERE], {}).attach(OPEN))


@pytest.mark.parametrize("switches", [(DISABLED,), (ENABLED, DISABLED)])
def test_a_node_with_attaching_disabled_is_an_error(switches: tuple[str, ...], jar: Path) -> None:
    message = error_of(lambda: runner(Subject(ME.pid, OWNER, ("java", *switches, "CassandraDaemon")), jar))
    assert DISABLED in message
    assert AT_START in message
    runner(Subject(ME.pid, OWNER, (*switches, ENABLED)), jar)


def test_a_node_in_another_network_namespace_is_an_error(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_process, "has_separate_network", lambda _: True)
    assert "a separate network namespace" in error_of(lambda: runner(ME, jar))


def test_the_jar_must_be_visible_to_the_node(tmp_path: Path) -> None:
    assert "cannot see" in error_of(lambda: runner(ME, tmp_path / "none.jar"))


def test_a_private_tmp_is_entered_as_the_nodes_user(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_process, "_attaches_from_here", lambda _: False)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/nsenter")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    entering = runner(ME, jar)
    assert entering.owner is None
    assert f"--mount=/proc/{ME.pid}/ns/mnt" in entering.inside
    assert {f"--setuid={OWNER[0]}", f"--setgid={OWNER[1]}"} <= set(entering.inside)
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] or 1)
    if OWNER[0]:
        assert "run casstat as root" in error_of(lambda: runner(ME, jar))


class Javas(Runner):
    """Looks up the modules of each java executable in a table instead of running it."""

    modules_of: dict[str, set[str]]

    def modules(self, java: Path, environ: Any) -> frozenset[str]:
        del environ
        return frozenset(self.modules_of.get(str(java), ()))


NODE_JAVA, OTHER_JAVA = Path("/node/bin/java"), Path("/other/bin/java")
MODULES = {"java.base", "jdk.attach", "jdk.httpserver"}


@pytest.fixture
def javas(monkeypatch: pytest.MonkeyPatch) -> Javas:
    monkeypatch.setattr(target_process, "_own_java", lambda *_: NODE_JAVA)
    monkeypatch.setattr(target_process, "javas", lambda _: iter([Path("/none/bin/java"), OTHER_JAVA]))
    return Javas()


@pytest.mark.parametrize(
    ("node_modules", "other_modules", "expected"),
    [
        (MODULES, MODULES, NODE_JAVA),
        (MODULES - {"jdk.attach"}, MODULES, OTHER_JAVA),
        (set(), MODULES, OTHER_JAVA),
        (MODULES - {"jdk.attach"}, {"jdk.attach"}, OTHER_JAVA),
    ],
)
def test_the_nodes_java_is_preferred(
    node_modules: set[str], other_modules: set[str], expected: Path, javas: Javas
) -> None:
    object.__setattr__(javas, "modules_of", {str(NODE_JAVA): node_modules, str(OTHER_JAVA): other_modules})
    assert java_for(ME, javas, {}) == expected


@pytest.mark.parametrize(("is_same", "inside"), [(True, ()), (False, ()), (False, ("nsenter",))])
def test_another_file_with_the_path_of_a_containers_java_is_not_run(
    is_same: bool, inside: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.touch()
    in_container = tmp_path / "7/root" / str(java).lstrip("/")
    in_container.parent.mkdir(parents=True)
    in_container.touch()
    monkeypatch.setattr(target_process, "PROC", tmp_path)
    monkeypatch.setattr(Path, "readlink", lambda _: java)
    (tmp_path / "7/exe").symlink_to(java if is_same else in_container)
    own = target_process._own_java(Subject(7, OWNER, ()), Runner(inside=inside))
    assert own == (java if is_same or inside else None)


def test_missing_java_modules_are_errors(javas: Javas) -> None:
    object.__setattr__(javas, "modules_of", {str(NODE_JAVA): MODULES - {"jdk.attach"}, str(OTHER_JAVA): {"java.base"}})
    assert "no Java installation on this machine has the jdk.attach module" in error_of(lambda: java_for(ME, javas, {}))
    object.__setattr__(javas, "modules_of", {str(NODE_JAVA): MODULES - {"jdk.httpserver"}, str(OTHER_JAVA): MODULES})
    assert "the node's Java lacks the jdk.httpserver module" in error_of(lambda: java_for(ME, javas, {}))


# Running the launcher


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_program_runs_with_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    script = "import os, sys; print(sorted(os.environ), flush=True); print(os.getcwd(), file=sys.stderr); sys.exit(3)"
    result = Runner().run(python(script), os.environ)
    assert result.code == 3
    assert "JAVA_TOOL_OPTIONS" not in result.text
    assert result.text.endswith("/\n")


@pytest.mark.parametrize(
    "text",
    [
        "import time; time.sleep(1000)",
        "while True: print('x' * 10_000)",
        "import os, time; os.close(1); os.close(2); time.sleep(1000)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(1000)'])",
    ],
)
def test_a_program_is_killed_after_its_timeout(text: str) -> None:
    result = Runner().run(python(text), os.environ, timeout_s=0.5)
    assert result.code is None
    assert len(result.text) <= MAX_OUTPUT_BYTES
    assert [child for child in psutil.Process().children(recursive=True) if "time.sleep(1000)" in child.cmdline()] == []


def test_the_output_is_bounded_and_one_line_in_messages() -> None:
    result = Runner().run(python("print('x\\n\\x1b[31m' * 100_000)"), os.environ)
    assert len(result.text) == MAX_OUTPUT_BYTES
    assert result.gist.isprintable()
    assert len(result.gist) == 300


def test_a_missing_program_is_an_error() -> None:
    assert error_of(lambda: Runner().run(["/none/java"], {})) == "/none/java: No such file or directory"
    assert Runner().modules(Path("/none/java"), {}) == frozenset()


# The agent's options


@given(st.text(min_size=1, max_size=20))
def test_only_the_nodes_user_can_read_the_options_and_they_are_removed(password: str) -> None:
    agent = Agent("127.0.0.1", 8778, "me", password)
    with options_file(agent, HERE.pid, OWNER) as path:
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert [file.stat().st_mode & 0o777 for file in path.parent.iterdir()] == [0o600, 0o600]
        options = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert unescaped(options["user"]) == "me"
    assert unescaped(options["password"]) == password
    assert unescaped(options["policyLocation"]) == f"file:{path.parent}/policy.xml"
    assert not path.parent.exists()


def unescaped(text: str) -> str:
    """Decode a value from a Java properties file."""
    assert re.fullmatch(r"(\\u[0-9a-f]{4})*", text)
    return bytes.fromhex(text.replace("\\u", "")).decode("utf-16-be")


def test_the_options_are_removed_after_a_failure() -> None:
    with pytest.raises(ZeroDivisionError), options_file(OPEN, HERE.pid, OWNER) as path:
        _ = 1 / 0
    assert not path.parent.exists()


def test_without_a_user_the_options_contain_no_credentials() -> None:
    with options_file(OPEN, HERE.pid, OWNER) as path:
        assert not re.search("^(user|password)=", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("host", "url", "private"),
    [
        ("127.0.0.1", "http://127.0.0.1:8778/jolokia", True),
        ("127.0.7.7", "http://127.0.7.7:8778/jolokia", True),
        ("::1", "http://[::1]:8778/jolokia", True),
        ("0.0.0.0", "http://127.0.0.1:8778/jolokia", False),
        ("::", "http://[::1]:8778/jolokia", False),
        ("10.0.0.7", "http://10.0.0.7:8778/jolokia", False),
    ],
)
def test_the_agents_url_is_reachable_from_this_machine(host: str, url: str, private: bool) -> None:
    agent = Agent(host, 8778, "me", SECRET)
    assert (agent.url, agent.is_private) == (url, private)
    assert SECRET not in repr(agent)


# Results


@pytest.fixture
def attached() -> Iterator[FakeJolokia]:
    """Yield a fake Jolokia agent that reports the PID and the start time of this process."""
    fake = FakeJolokia()

    def this_process(request: Json, answer: Json) -> Json:
        if request.get("mbean") != "java.lang:type=Runtime":
            return answer
        return {**answer, "value": {"Name": f"{HERE.pid}@here", "StartTime": int(HERE.started_s * 1000)}}

    fake.node.override = this_process
    yield fake
    fake.close()


class FakeTask(Task):
    """A task with a fake launcher, which returns `result` and stores the arguments that it received."""

    result: Done
    launched_with: tuple[str, ...] = ()

    def _launcher(self) -> Callable[..., Done]:
        return self._launch

    def _launch(self, *arguments: str) -> Done:
        object.__setattr__(self, "launched_with", arguments)
        return self.result


def task(text: str, code: int | None = 0, node: LocalNode = HERE) -> FakeTask:
    fake = FakeTask(Path("/jolokia.jar"), node, [node], {})
    object.__setattr__(fake, "result", Done(code, text))
    return fake


def test_attaching_reports_the_node_and_the_command_to_run(
    attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("127.0.0.1", attached.port)
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    launched = task(f"Started Jolokia for PID {HERE.pid}\n{attached.url}\n")
    url = attached.url
    assert launched.attach(agent) == (
        f"attached Jolokia to process {HERE.pid}: {url} serves Cassandra 5.0.6 at 192.0.2.7"
        f" (hint: run 'casstat --jolokia {url}')"
    )
    assert launched.launched_with[:4] == ("--host", "127.0.0.1", "--port", str(attached.port))
    assert (launched.launched_with[4], launched.launched_with[6]) == ("--config", "start")
    # An agent with the default URL is found without the --jolokia option.
    monkeypatch.setattr(attach_steps, "DEFAULT_URL", url)
    assert launched.attach(agent).endswith(" (hint: run 'casstat')")
    # With several nodes, the option is required.
    several = FakeTask(launched.jar, HERE, [HERE, LocalNode(1, 0.0)], {})
    object.__setattr__(several, "result", launched.result)
    assert several.attach(agent).endswith(f"(hint: run 'casstat --jolokia {url}')")


def test_the_command_contains_the_user_but_not_the_password(
    attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    agent = Agent("127.0.0.1", attached.port, "me", SECRET)
    message = task("Started Jolokia").attach(agent, Path("/etc/my password"))
    assert message.endswith("--jolokia-user me --jolokia-password-file '/etc/my password'')")
    assert SECRET not in message


def test_an_agent_that_is_already_attached_is_not_an_error(attached: FakeJolokia) -> None:
    attached_task = task(f"Jolokia is already attached to PID {HERE.pid}\n{attached.url}/\n", 1)
    assert attached_task.attach(OPEN).startswith(
        f"Jolokia is already attached to process {HERE.pid}: {attached.url} serves Cassandra 5.0.6 at 192.0.2.7"
        " (hint: run 'casstat"
    )
    attached.stop()
    assert (
        attached_task.attach(OPEN)
        == f"Jolokia is already attached to process {HERE.pid}: {attached.url}: Connection refused"
    )


def test_an_agent_that_is_slow_to_listen_is_awaited(attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    agent = Agent("127.0.0.1", attached.port)
    attached.stop()
    late = threading.Timer(0.5, attached.start)
    late.start()
    message = task("Couldn't start agent for PID 1\nPossible reason could be that …", 1).attach(agent)
    late.join()
    assert message.startswith(f"attached Jolokia to process {HERE.pid}: {attached.url} serves")


def test_an_agent_of_another_process_is_an_error(attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    monkeypatch.setattr(attach_steps, "PATIENCE_S", 0.1)
    attached.node.override = None
    agent = Agent("127.0.0.1", attached.port)
    error = error_of(lambda: task("Started Jolokia").attach(agent))
    assert f"this Jolokia is running in another process, not in process {HERE.pid}" in error


def test_a_port_in_use_is_an_error(attached: FakeJolokia) -> None:
    agent = Agent("127.0.0.1", attached.port)
    message = error_of(lambda: task("Couldn't start agent for PID 1", 1).attach(agent))
    assert message == f"127.0.0.1:{attached.port}: Address already in use (hint: choose another address with --listen)"


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        ("(command: start) : The VM does not support the attach mechanism", 1, f"start it without {DISABLED}"),
        (
            "target process 4 doesn't respond within 10500ms or HotSpot VM not loaded",
            1,
            "check whether the node is hung",
        ),
        ("Error: Unable to access jarfile /jolokia.jar", 1, "the node's user cannot read /jolokia.jar"),
        ("Agent JAR not found or no Agent-Class attribute", 1, "the node's user cannot read /jolokia.jar"),
        ("java.lang.UnsupportedClassVersionError: org/jolokia/…", 1, "use Jolokia 1.7"),
        ("Agent JAR loaded but agent failed to initialize", 1, "see the node's standard output"),
        ("Something {new} that\nnobody\x1b[31m knows", 7, "Something {new} that nobody?[31m knows"),
        ("", None, "Jolokia's launcher did not finish within 30 s (hint: check whether the node is hung)"),
        ("", 9, "Jolokia's launcher exited with code 9"),
    ],
)
def test_launcher_messages_become_errors_with_a_hint(
    output: str, code: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    message = error_of(lambda: task(output, code).attach(OPEN))
    assert message.startswith(f"cannot attach Jolokia to process {HERE.pid}: ")
    assert words in message
    assert error_of(task(output, code).detach).startswith(f"cannot detach Jolokia from process {HERE.pid}: ")


def test_detaching_removes_the_agent_and_a_missing_one_is_not_an_error() -> None:
    attached_task = task("Stopped Jolokia for PID 4\n")
    assert attached_task.detach() == f"detached Jolokia from process {HERE.pid}"
    assert attached_task.launched_with == ("stop",)
    assert task("Jolokia is not attached to PID 4\n", 1).detach() == f"Jolokia is not attached to process {HERE.pid}"


def test_an_agent_from_the_nodes_command_line_is_not_detached() -> None:
    node = replace(HERE, url="http://127.0.0.1:8778/jolokia")
    launched = task("Stopped Jolokia", node=node)
    assert "was started with Jolokia (http://127.0.0.1:8778/jolokia), which casstat does not detach" in error_of(
        launched.detach
    )
    assert launched.launched_with == ()


# The command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--jar"),
        (["--jar", "a.jar", "--host", "0.0.0.0"], "0.0.0.0 is not a loopback address (hint: use --user"),
        (["--jar", "a.jar", "--host", "node7"], "'node7' is not an IP address"),
        (["--jar", "a.jar", "--user", "me"], "must be used together"),
        (["--jar", "a.jar", "--password-file", "x"], "must be used together"),
        (["--jar", "a.jar", "--user", "me", "--password-file", "/none"], "--password-file: /none: No such file"),
        (["--jar", "a.jar", "--port", "0"], "--port"),
        (["--jar", "a.jar", "--listen", "node7:8778"], "'node7' is not an IP address"),
        (["--jar", "a.jar", "--listen", "127.0.0.1"], "'127.0.0.1': not HOST:PORT"),
        (["--jar", "a.jar", "--listen", ":8778"], "':8778' is not an address and a port"),
        (["--jar", "a.jar", "0"], "PID"),
    ],
)
def test_invalid_options_are_usage_errors(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", *arguments]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert words in errors


def test_without_cassandra_attaching_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_selection, "local_nodes", list)
    assert main(["attach", "--jar", "a.jar"]) == 1
    assert (
        capsys.readouterr().err
        == "casstat: no Cassandra process is running on this machine, or the current user cannot see it\n"
    )


def test_help_lists_the_detach_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", "--help"]) == 0
    assert "--detach" in json.dumps(capsys.readouterr().out)
