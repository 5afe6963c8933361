"""`casstat attach`: which node, whether it can be, what the agent is told, and what its launcher's words mean."""

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

from cli.attach import attach_steps, target_process
from cli.attach.attach_steps import Task
from cli.attach.jolokia_agent_options import Agent, options_file
from cli.attach.launcher import LONGEST_OUTPUT, MAIN, Done, Runner, require_jolokia
from cli.attach.target_process import AT_START, DISABLED, ENABLED, Subject, chosen, java_for, runner, subject
from cli.commands import attach as attach_command
from cli.errors import CasstatError
from cli.main import main
from collector.host.cassandra_processes import LocalNode
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.fake_node import Json

SECRET = "hunter2"  # noqa: S105 - the secret of nothing
SELF = psutil.Process()
HERE = LocalNode(SELF.pid, SELF.create_time(), process=SELF)
OWNER = (os.geteuid(), os.getegid())
ME = Subject(HERE.pid, OWNER, ("java", "CassandraDaemon"))
OPEN = Agent("127.0.0.1", 8778)


def failed(what: Callable[[], Any]) -> str:
    """Return what is said when it cannot be done: one line."""
    with pytest.raises(CasstatError) as caught:
        what()
    message = str(caught.value)
    assert message.isprintable()
    assert SECRET not in message
    return message


# Which node


def test_the_only_node_is_meant_and_among_several_the_one_that_is_named() -> None:
    one, two = LocalNode(4, 1.0, jmx_port=7199), LocalNode(5, 2.0)
    assert chosen([one], None) == one
    assert chosen([one, two], 5) == two


def test_otherwise_it_is_said_which_there_are() -> None:
    both = [LocalNode(4, 1.0, jmx_port=7199), LocalNode(5, 2.0)]
    assert "several Cassandra processes run here: 4 (JMX port 7199), 5" in failed(lambda: chosen(both, None))
    assert "process 6 is no Cassandra that runs here: there are 4" in failed(lambda: chosen(both, 6))
    assert "no Cassandra runs on this machine" in failed(lambda: chosen([], None))


def test_a_process_that_has_gone_is_said_to_have() -> None:
    assert "has gone" in failed(lambda: subject(replace(HERE, process=None)))
    assert "has gone" in failed(lambda: subject(LocalNode(2**22 + 1, 1.0)))
    assert subject(HERE).owner == OWNER


# Whether it can be


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    return made_jar(tmp_path / "jolokia.jar", f"Manifest-Version: 1.0\r\nMain-Class: {MAIN}\r\n")


def made_jar(path: Path, manifest: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)
    return path


def test_the_jar_must_be_jolokias_agent(jar: Path, tmp_path: Path) -> None:
    require_jolokia(jar)
    other = made_jar(tmp_path / "other.jar", "Main-Class: org.example.Main\n")
    assert "is not Jolokia's JVM agent" in failed(lambda: require_jolokia(other))
    text = tmp_path / "text.jar"
    text.write_text("PK, or perhaps not")
    assert "is no jar" in failed(lambda: require_jolokia(text))
    with zipfile.ZipFile(tmp_path / "empty.jar", "w"):
        pass
    assert "is no jar" in failed(lambda: require_jolokia(tmp_path / "empty.jar"))
    assert "No such file" in failed(lambda: require_jolokia(tmp_path / "none.jar"))
    assert "Is a directory" in failed(lambda: require_jolokia(tmp_path))


def test_the_nodes_own_user_and_root_may_attach_and_nobody_else(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner(ME, jar).owner == (OWNER if os.geteuid() == 0 else None)
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] + 1)
    told = failed(lambda: runner(ME, jar))
    assert f"process {ME.pid} belongs to {ME.user}: run this as that user or as root" in told


def test_nothing_is_written_for_a_node_of_somebody_else(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] + 1)
    monkeypatch.setattr(attach_steps, "options_file", lambda *_: pytest.fail("written"))
    assert "belongs to" in failed(lambda: Task(jar, HERE, [HERE], {}).attach(OPEN))


@pytest.mark.parametrize("switches", [(DISABLED,), (ENABLED, DISABLED)])
def test_a_node_that_lets_nobody_attach_is_told_as_such(switches: tuple[str, ...], jar: Path) -> None:
    told = failed(lambda: runner(Subject(ME.pid, OWNER, ("java", *switches, "CassandraDaemon")), jar))
    assert DISABLED in told
    assert AT_START in told
    runner(Subject(ME.pid, OWNER, (*switches, ENABLED)), jar)


def test_what_nobody_could_reach_is_not_attached(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_process, "has_separate_network", lambda _: True)
    assert "a network of its own" in failed(lambda: runner(ME, jar))


def test_the_node_must_see_the_jar(tmp_path: Path) -> None:
    assert "does not see" in failed(lambda: runner(ME, tmp_path / "none.jar"))


def test_a_node_with_a_tmp_of_its_own_is_entered_as_its_user(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_process, "_attaches_from_here", lambda _: False)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/nsenter")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    inside = runner(ME, jar)
    assert inside.owner is None
    assert f"--mount=/proc/{ME.pid}/ns/mnt" in inside.inside
    assert {f"--setuid={OWNER[0]}", f"--setgid={OWNER[1]}"} <= set(inside.inside)
    monkeypatch.setattr(os, "geteuid", lambda: OWNER[0] or 1)
    if OWNER[0]:
        assert "run this as root" in failed(lambda: runner(ME, jar))


class Javas(Runner):
    """Knows which modules a `java` has without running it."""

    has: dict[str, set[str]]

    def modules(self, java: Path, environ: Any) -> frozenset[str]:
        del environ
        return frozenset(self.has.get(str(java), ()))


OWN, OTHER = Path("/own/bin/java"), Path("/other/bin/java")
BOTH = {"java.base", "jdk.attach", "jdk.httpserver"}


@pytest.fixture
def javas(monkeypatch: pytest.MonkeyPatch) -> Javas:
    monkeypatch.setattr(target_process, "_own_java", lambda _: OWN)
    monkeypatch.setattr(target_process, "javas", lambda _: iter([Path("/none/bin/java"), OTHER]))
    return Javas()


@pytest.mark.parametrize(
    ("own", "other", "taken"),
    [
        (BOTH, BOTH, OWN),
        (BOTH - {"jdk.attach"}, BOTH, OTHER),
        (set(), BOTH, OTHER),
        (BOTH - {"jdk.attach"}, {"jdk.attach"}, OTHER),
    ],
)
def test_the_nodes_own_java_attaches_if_it_can(own: set[str], other: set[str], taken: Path, javas: Javas) -> None:
    object.__setattr__(javas, "has", {str(OWN): own, str(OTHER): other})
    assert java_for(ME, javas, {}) == taken


def test_no_java_that_attaches_or_none_that_answers_is_said(javas: Javas) -> None:
    object.__setattr__(javas, "has", {str(OWN): BOTH - {"jdk.attach"}, str(OTHER): {"java.base"}})
    assert "no Java here has the module jdk.attach" in failed(lambda: java_for(ME, javas, {}))
    object.__setattr__(javas, "has", {str(OWN): BOTH - {"jdk.httpserver"}, str(OTHER): BOTH})
    assert "the node's Java has no module jdk.httpserver" in failed(lambda: java_for(ME, javas, {}))


# Running its launcher


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_a_program_is_run_to_its_end_without_this_ones_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    said = "import os, sys; print(sorted(os.environ), flush=True); print(os.getcwd(), file=sys.stderr); sys.exit(3)"
    done = Runner().run(python(said), os.environ)
    assert done.code == 3
    assert "JAVA_TOOL_OPTIONS" not in done.text
    assert done.text.endswith("/\n")


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
def test_a_program_that_does_not_end_is_ended(text: str) -> None:
    done = Runner().run(python(text), os.environ, timeout_s=0.5)
    assert done.code is None
    assert len(done.text) <= LONGEST_OUTPUT
    assert [child for child in psutil.Process().children(recursive=True) if "time.sleep(1000)" in child.cmdline()] == []


def test_what_a_program_says_is_bounded_and_one_line_in_messages() -> None:
    done = Runner().run(python("print('x\\n\\x1b[31m' * 100_000)"), os.environ)
    assert len(done.text) == LONGEST_OUTPUT
    assert done.gist.isprintable()
    assert len(done.gist) == 300


def test_a_program_that_is_not_there_is_said() -> None:
    assert failed(lambda: Runner().run(["/none/java"], {})) == "/none/java: No such file or directory"
    assert Runner().modules(Path("/none/java"), {}) == frozenset()


# What the agent is told


@given(st.text(min_size=1, max_size=20))
def test_the_options_are_for_the_nodes_user_alone_and_gone_afterwards(password: str) -> None:
    agent = Agent("127.0.0.1", 8778, "me", password)
    with options_file(agent, HERE.pid, OWNER) as path:
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert [each.stat().st_mode & 0o777 for each in path.parent.iterdir()] == [0o600, 0o600]
        options = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert unescaped(options["user"]) == "me"
    assert unescaped(options["password"]) == password
    assert unescaped(options["policyLocation"]) == f"file:{path.parent}/policy.xml"
    assert not path.parent.exists()


def unescaped(text: str) -> str:
    """Read a value as Java does."""
    assert re.fullmatch(r"(\\u[0-9a-f]{4})*", text)
    return bytes.fromhex(text.replace("\\u", "")).decode("utf-16-be")


def test_the_options_are_gone_after_a_failure_too() -> None:
    with pytest.raises(ZeroDivisionError), options_file(OPEN, HERE.pid, OWNER) as path:
        _ = 1 / 0
    assert not path.parent.exists()


def test_without_a_user_none_is_told() -> None:
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
def test_where_the_agent_is_asked(host: str, url: str, private: bool) -> None:
    agent = Agent(host, 8778, "me", SECRET)
    assert (agent.url, agent.is_private) == (url, private)
    assert SECRET not in repr(agent)


# What came of it


@pytest.fixture
def attached() -> Iterator[FakeJolokia]:
    """A Jolokia that is this very process'."""
    fake = FakeJolokia()

    def own(request: Json, answer: Json) -> Json:
        if request.get("mbean") != "java.lang:type=Runtime":
            return answer
        return {**answer, "value": {"Name": f"{HERE.pid}@here", "StartTime": int(HERE.started_s * 1000)}}

    fake.node.override = own
    yield fake
    fake.close()


class Launched(Task):
    """A task whose launcher says what the test wants."""

    says: Done
    asked: tuple[str, ...] = ()

    def _launcher(self) -> Callable[..., Done]:
        return self._launch

    def _launch(self, *arguments: str) -> Done:
        object.__setattr__(self, "asked", arguments)
        return self.says


def task(text: str, code: int | None = 0, node: LocalNode = HERE) -> Launched:
    made = Launched(Path("/jolokia.jar"), node, [node], {})
    object.__setattr__(made, "says", Done(code, text))
    return made


def test_an_attached_agent_is_asked_and_its_command_told(
    attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent("127.0.0.1", attached.port)
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    made = task(f"Started Jolokia for PID {HERE.pid}\n{attached.url}\n")
    url = attached.url
    assert made.attach(agent) == (
        f"attached to process {HERE.pid}: {url} answers for 192.0.2.7, Cassandra 5.0.6: run 'casstat --jolokia {url}'"
    )
    assert made.asked[:4] == ("--host", "127.0.0.1", "--port", str(attached.port))
    assert (made.asked[4], made.asked[6]) == ("--config", "start")
    # At its usual place it is found without being told.
    monkeypatch.setattr(attach_steps, "DEFAULT_URL", url)
    assert made.attach(agent).endswith(": run 'casstat'")
    # Unless there are others that could be meant.
    several = Launched(made.jar, HERE, [HERE, LocalNode(1, 0.0)], {})
    object.__setattr__(several, "says", made.says)
    assert several.attach(agent).endswith(f"run 'casstat --jolokia {url}'")


def test_the_command_has_the_user_and_not_the_password(attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    agent = Agent("127.0.0.1", attached.port, "me", SECRET)
    told = task("Started Jolokia").attach(agent, Path("/etc/my password"))
    assert told.endswith("--jolokia-user me --jolokia-password-file '/etc/my password''")
    assert SECRET not in told


def test_an_agent_that_is_there_already_is_no_error(attached: FakeJolokia) -> None:
    there = task(f"Jolokia is already attached to PID {HERE.pid}\n{attached.url}/\n", 1)
    assert there.attach(OPEN).startswith(
        f"process {HERE.pid} has a Jolokia already: {attached.url} answers for 192.0.2.7, Cassandra 5.0.6: run 'casstat"
    )
    attached.stop()
    assert there.attach(OPEN) == f"process {HERE.pid} has a Jolokia already: {attached.url}: Connection refused"


def test_an_agent_that_is_slow_to_listen_is_waited_for(attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    agent = Agent("127.0.0.1", attached.port)
    attached.stop()
    late = threading.Timer(0.5, attached.start)
    late.start()
    told = task("Couldn't start agent for PID 1\nPossible reason could be that …", 1).attach(agent)
    late.join()
    assert told.startswith(f"attached to process {HERE.pid}: {attached.url} answers")


def test_an_agent_of_another_process_is_not_taken_for_the_nodes(
    attached: FakeJolokia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    monkeypatch.setattr(attach_steps, "PATIENCE_S", 0.1)
    attached.node.override = None
    agent = Agent("127.0.0.1", attached.port)
    assert f"another process than {HERE.pid}" in failed(lambda: task("Started Jolokia").attach(agent))


def test_a_port_that_is_taken_is_said(attached: FakeJolokia) -> None:
    agent = Agent("127.0.0.1", attached.port)
    told = failed(lambda: task("Couldn't start agent for PID 1", 1).attach(agent))
    assert told == f"127.0.0.1:{attached.port} cannot be used (Address already in use): choose another with --listen"


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("(command: start) : The VM does not support the attach mechanism", 1, f"start it without {DISABLED}"),
        ("target process 4 doesn't respond within 10500ms or HotSpot VM not loaded", 1, "does it hang"),
        ("Error: Unable to access jarfile /jolokia.jar", 1, "its user cannot read /jolokia.jar"),
        ("Agent JAR not found or no Agent-Class attribute", 1, "its user cannot read /jolokia.jar"),
        ("java.lang.UnsupportedClassVersionError: org/jolokia/…", 1, "take Jolokia 1.7"),
        ("Agent JAR loaded but agent failed to initialize", 1, "its standard output tells why"),
        ("Something {new} that\nnobody\x1b[31m knows", 7, "Something {new} that nobody?[31m knows"),
        ("", None, "no end within 30 s: does the node hang?"),
        ("", 9, "Jolokia ended with 9"),
    ],
)
def test_what_the_launcher_says_becomes_what_to_do(
    said: str, code: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach_steps, "_taken", lambda _: "")
    told = failed(lambda: task(said, code).attach(OPEN))
    assert told.startswith(f"cannot attach to process {HERE.pid}: ")
    assert words in told
    assert failed(task(said, code).detach).startswith(f"cannot take Jolokia away from process {HERE.pid}: ")


def test_an_agent_is_taken_away_and_none_is_no_error() -> None:
    there = task("Stopped Jolokia for PID 4\n")
    assert there.detach() == f"took Jolokia away from process {HERE.pid}"
    assert there.asked == ("stop",)
    assert task("Jolokia is not attached to PID 4\n", 1).detach() == f"process {HERE.pid} has no Jolokia attached"


def test_an_agent_that_the_node_was_started_with_stays() -> None:
    node = replace(HERE, url="http://127.0.0.1:8778/jolokia")
    made = task("Stopped Jolokia", node=node)
    assert "casstat leaves it there" in failed(made.detach)
    assert made.asked == ()


# The command itself


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--jar"),
        (["--jar", "a.jar", "--host", "0.0.0.0"], "0.0.0.0 is not a loopback address: give --user"),
        (["--jar", "a.jar", "--host", "node7"], "'node7' is not an IP address"),
        (["--jar", "a.jar", "--user", "me"], "require each other"),
        (["--jar", "a.jar", "--password-file", "x"], "require each other"),
        (["--jar", "a.jar", "--user", "me", "--password-file", "/none"], "--password-file: /none: No such file"),
        (["--jar", "a.jar", "--port", "0"], "--port"),
        (["--jar", "a.jar", "--listen", "node7:8778"], "'node7' is not an IP address"),
        (["--jar", "a.jar", "--listen", "127.0.0.1"], "'127.0.0.1': not HOST:PORT"),
        (["--jar", "a.jar", "--listen", ":8778"], "':8778' lacks the address"),
        (["--jar", "a.jar", "0"], "PID"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake_in_usage(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["attach", *arguments]) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert words in errors


def test_without_a_cassandra_there_is_nothing_to_attach_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attach_command, "local_nodes", list)
    assert main(["attach", "--jar", "a.jar"]) == 1
    assert capsys.readouterr().err == "casstat: no Cassandra runs on this machine, or none that this user may see\n"


def test_its_help_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", "--help"]) == 0
    assert "--detach" in json.dumps(capsys.readouterr().out)
