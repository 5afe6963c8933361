"""A node started by a script like Cassandra's, and helpers that run the doctor and apply its advice."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli.process_setup import casstat_command
from cli.setup.demo.background_process import write_pid_file
from cli.setup.demo.demo_node import Node, NodeSpec, command, write_configuration
from tests.real.nodes import FAST_START
from tests.real.programs import PATIENCE_S

Finding = dict[str, str]
CASSTAT = tuple(casstat_command())
NODELAY = "-Dsun.net.httpserver.nodelay=true"
# Matches advice to add text to a file. The groups are the text, the XML element to add it to (None if the file is not
# XML), and the file.
ADVICE = re.compile(r"add (.+?) (?:inside <(\w+)> in|to) (.+), and restart the node")
# This script, like Cassandra's own, starts the JVM with the options that cassandra-env.sh adds to JVM_OPTS.
SCRIPT = """#!/bin/sh
. {env}
exec {java} $JVM_OPTS {rest}
"""
# This nodetool, like Cassandra's own, finds Java in JAVA_HOME or on the PATH.
STOCK_NODETOOL = """#!/bin/sh
if [ -n "$JAVA_HOME" ]; then JAVA="$JAVA_HOME/bin/java"; else JAVA="`command -v java`"; fi
if [ "x$JAVA" = "x" ]; then
    echo "Unable to find java executable. Check JAVA_HOME and PATH environment variables." >&2
    exit 1
fi
exec "$JAVA" {rest}
"""


class ScriptedNode:
    """A node that takes its JVM options, including any Jolokia agent, from its conf/cassandra-env.sh."""

    def __init__(self, spec: NodeSpec) -> None:
        self.node = Node(spec)
        self.spec = spec
        self.more_data: tuple[Path, ...] = ()
        self.announced = ""
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> Path:
        return self.spec.home / "conf" / "cassandra-env.sh"

    @property
    def pid(self) -> int:
        process = self.node.process()
        assert process is not None
        return process.pid

    def start(self) -> None:
        """Start the node and wait until it accepts clients."""
        write_configuration(self.spec)
        yaml = self.spec.home / "conf" / "cassandra.yaml"
        directories = "".join(f', "{directory}"' for directory in self.more_data)
        text = yaml.read_text().replace('/data"]', f'/data"{directories}]')
        if self.announced:
            # Simulate a node behind NAT: none of its interfaces has the address that other nodes use to reach it.
            text = text.replace(f'seeds: "{self.spec.seeds}"', f'seeds: "{self.announced}"')
            text += f"broadcast_address: {self.announced}\n"
        yaml.write_text(text)
        self.env.touch()
        java, *rest = [word for word in command(self.spec) if word != NODELAY]
        script = self.spec.home / "bin" / "cassandra"
        script.write_text(SCRIPT.format(env=self.env, java=java, rest=shlex.join(rest)))
        script.chmod(0o755)
        with (self.spec.home / "logs" / "stdout.log").open("ab") as out:
            self._child = subprocess.Popen(
                [script],
                cwd=self.spec.home,
                env={key: value for key, value in os.environ.items() if key != "JVM_OPTS"}
                | {"JDK_JAVA_OPTIONS": FAST_START},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        write_pid_file(self.node.pid_file, self._child)
        self.node.wait()

    def stop(self) -> None:
        # A clean shutdown takes seconds, and the doctor does not depend on one.
        self.node.kill()
        if self._child is not None:
            self._child.wait(PATIENCE_S)

    def restart(self) -> None:
        self.stop()
        self.start()

    def stock_nodetool(self) -> Path:
        """Write a nodetool for this node that finds Java as Cassandra's own nodetool does, and return its path."""
        rest = self.spec.nodetool.read_text().partition(f"exec {self.spec.java} ")[2]
        port = f"port={self.spec.jmx_port}\n" + '[ "$1" = -p ] && port=$2 && shift 2\n'
        path = self.spec.nodetool.with_name("stock-nodetool")
        path.write_text(STOCK_NODETOOL.format(rest=rest).replace("#!/bin/sh\n", f"#!/bin/sh\n{port}", 1))
        path.chmod(0o755)
        return path


class Doctor:
    """Runs `casstat doctor` with options and holds its findings."""

    def __init__(self, *options: str, environ: Mapping[str, str] | None = None, before: Iterable[str] = ()) -> None:
        self.options = options
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CASSTAT_")}
        command = [*before, *CASSTAT, "doctor", "--format", "json", *options]
        result = subprocess.run(
            command, env={**clean, **(environ or {})}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert "Traceback" not in result.stderr, result.stderr
        self.findings: list[Finding] = [json.loads(line) for line in result.stdout.splitlines()]
        problems = [finding for finding in self.findings if finding["state"] == "problem"]
        assert result.returncode == (1 if problems else 0), result.stderr
        self.output = result.stdout

    def finding(self, subject: str, words: str) -> Finding:
        """Return a subject's only finding that contains `words`; it must have advice and a state other than "ok"."""
        (finding,) = [f for f in self.findings if f["subject"] == subject and words in f["what"]]
        assert finding["state"] != "ok", finding
        assert fixes(finding), finding
        return finding

    def has(self, subject: str, words: str = "") -> bool:
        """Return whether a subject has a finding that contains `words` and has a state other than "ok"."""
        return any(f["state"] != "ok" for f in self.findings if f["subject"] == subject and words in f["what"])

    def assert_fixed(self, subject: str, words: str = "") -> None:
        """Assert that the finding with `words` is gone, and that the subject has findings but no problem."""
        assert not self.has(subject, words), self.output
        assert ("problem", subject) not in {(f["state"], f["subject"]) for f in self.findings}, self.output
        assert any(f["subject"] == subject for f in self.findings), self.output


def fixes(finding: Finding) -> list[str]:
    """Return the lines of a finding's advice, without a leading `then:` or `or:`."""
    return [line.removeprefix("then: ").removeprefix("or: ") for line in finding["mend"].splitlines()]


def run_advised(line: str, **placeholders: str) -> str:
    """Run a command that the doctor advises, and return its output."""
    result = subprocess.run(
        words(line, **placeholders), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def words(line: str, **placeholders: str) -> list[str]:
    """Split a suggested command into words, replacing placeholders such as USER."""
    return [placeholders.get(word, word) for word in shlex.split(line)]


def advised_doctor(line: str, **more: Any) -> Doctor:
    """Run the doctor with the options of a suggested command.

    Names in upper case in `more` are placeholders; all others are passed to `Doctor`.
    """
    placeholders = {key: value for key, value in more.items() if key.isupper()}
    others = {key: value for key, value in more.items() if not key.isupper()}
    command = words(line, **placeholders)
    assert tuple(command[: len(CASSTAT)]) == CASSTAT, line
    return Doctor(*command[len(CASSTAT) :], **others)


def apply_advice(line: str, *, instead: Path | None = None) -> None:
    """Apply advice to add text to a file (or to `instead`); in XML, add it to the element that the advice names."""
    match = ADVICE.fullmatch(line)
    assert match is not None, line
    text, element, name = match.groups()
    path = instead or Path(name)
    if element:
        end = f"</{element}>"
        path.write_text(path.read_text().replace(end, f"{text}\n{end}"))
    else:
        path.write_text(f"{path.read_text()}\n{text}\n")


def without_java(folder: Path) -> str:
    """Link the programs that scripts need, except `java`, in a new directory, and return it as a value for PATH."""
    folder.mkdir()
    for name in ("sh", "command", "env", "cat", "dirname"):
        if program := shutil.which(name):
            (folder / name).symlink_to(program)
    return str(folder)
