"""A node that is started as Cassandra's own script does it, Jolokias in it, and the doctor's advice followed."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli.demo.background_process import write_pid_file
from cli.demo.demo_node import Node, NodeSpec, command, write_configuration
from tests.real.nodes import QUICK
from tests.real.programs import PATIENCE_S

Found = dict[str, str]
CASSTAT = (sys.executable, "-m", "cli")
NODELAY = "-Dsun.net.httpserver.nodelay=true"
# As Cassandra's own script: what cassandra-env.sh adds to JVM_OPTS goes to the JVM.
SCRIPT = """#!/bin/sh
. {env}
exec {java} $JVM_OPTS {rest}
"""
# As Cassandra's own: a Java is looked for by JAVA_HOME and on the PATH.
STOCK_NODETOOL = """#!/bin/sh
if [ -n "$JAVA_HOME" ]; then JAVA="$JAVA_HOME/bin/java"; else JAVA="`command -v java`"; fi
if [ "x$JAVA" = "x" ]; then
    echo "Unable to find java executable. Check JAVA_HOME and PATH environment variables." >&2
    exit 1
fi
exec "$JAVA" {rest}
"""


class ScriptedNode:
    """A node whose JVM has the options of its own conf/cassandra-env.sh, and no Jolokia but what they bring."""

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
        """Start the node and wait until it takes clients."""
        write_configuration(self.spec)
        yaml = self.spec.home / "conf" / "cassandra.yaml"
        places = "".join(f', "{place}"' for place in self.more_data)
        text = yaml.read_text().replace('/data"]', f'/data"{places}]')
        if self.announced:
            # As behind a router: the address that others know is on none of its interfaces.
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
                | {"JDK_JAVA_OPTIONS": QUICK},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        write_pid_file(self.node.pid_file, self._child)
        self.node.wait()

    def stop(self) -> None:
        # To stop properly takes seconds, and is nothing that the doctor looks at.
        self.node.kill()
        if self._child is not None:
            self._child.wait(PATIENCE_S)

    def restart(self) -> None:
        self.stop()
        self.start()

    def stock_nodetool(self) -> Path:
        """Return a nodetool of the node's that looks for its Java as Cassandra's own does."""
        rest = self.spec.nodetool.read_text().partition(f"exec {self.spec.java} ")[2]
        port = f"port={self.spec.jmx_port}\n" + '[ "$1" = -p ] && port=$2 && shift 2\n'
        path = self.spec.nodetool.with_name("stock-nodetool")
        path.write_text(STOCK_NODETOOL.format(rest=rest).replace("#!/bin/sh\n", f"#!/bin/sh\n{port}", 1))
        path.chmod(0o755)
        return path


class Doctor:
    """`casstat doctor` with options; what it found."""

    def __init__(self, *options: str, environ: Mapping[str, str] | None = None, before: Iterable[str] = ()) -> None:
        self.options = options
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CASSTAT_")}
        command = [*before, *CASSTAT, "doctor", "--format", "json", *options]
        done = subprocess.run(
            command, env={**clean, **(environ or {})}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        self.findings: list[Found] = [json.loads(line) for line in done.stdout.splitlines()]
        problems = [each for each in self.findings if each["state"] == "problem"]
        assert done.returncode == (1 if problems else 0), done.stderr
        self.said = done.stdout

    def of(self, subject: str, words: str) -> Found:
        """Return the one finding about a subject that has these words, and is not all well."""
        found = [each for each in self.findings if each["subject"] == subject and words in each["what"]]
        assert len(found) == 1, self.said
        assert found[0]["state"] != "ok", found
        assert found[0]["mend"], found
        return found[0]

    def has(self, subject: str, words: str = "") -> bool:
        """Return whether something is wrong with a subject that has these words."""
        return any(
            each["state"] != "ok" for each in self.findings if each["subject"] == subject and words in each["what"]
        )

    def fixed(self, subject: str, words: str = "") -> None:
        """Fail if what had these words is still wrong, or the subject has another problem now."""
        assert not self.has(subject, words), self.said
        assert ("problem", subject) not in {(each["state"], each["subject"]) for each in self.findings}, self.said
        assert any(each["subject"] == subject for each in self.findings), self.said


def fixes(found: Found) -> list[str]:
    """Return the lines of a mend, without the words that join them."""
    return [line.removeprefix("then: ").removeprefix("or: ") for line in found["mend"].splitlines()]


def do(line: str, **placeholders: str) -> str:
    """Run a command that the doctor gave, and return what it said."""
    done = subprocess.run(words(line, **placeholders), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def words(line: str, **placeholders: str) -> list[str]:
    """Return the words of a command that the doctor gave, USER and the like filled in."""
    return [placeholders.get(word, word) for word in shlex.split(line)]


def as_advised(line: str, **more: Any) -> Doctor:
    """Have the doctor look with the options of the line's command that it gave."""
    placeholders = {key: value for key, value in more.items() if key.isupper()}
    others = {key: value for key, value in more.items() if not key.isupper()}
    command = words(line, **placeholders)
    assert tuple(command[: len(CASSTAT)]) == CASSTAT, line
    return Doctor(*command[len(CASSTAT) :], **others)


def write_as_advised(line: str, *, instead: Path | None = None) -> None:
    """Write the line that the doctor gave into the file it named, or `instead`; it says inside which element."""
    where, _, text = line.partition(", and restart the node: ")
    assert text, line
    place, _, inside = where.removeprefix("in ").partition(", inside ")
    path = instead or Path(place)
    if inside:
        end = inside.replace("<", "</")
        path.write_text(path.read_text().replace(end, f"{text}\n{end}"))
    else:
        path.write_text(f"{path.read_text()}\n{text}\n")


def without_java(folder: Path) -> str:
    """Return a PATH with what scripts need, and no java."""
    folder.mkdir()
    for name in ("sh", "command", "env", "cat", "dirname"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)
