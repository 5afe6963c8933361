"""Runs casstat as root beside processes and listeners of the user nobody, and prints what each of them received.

Started by test_two_users.py in PID and network namespaces of its own, so that it may use the default ports and sees no
other Cassandra.
"""

import fcntl
import json
import os
import pwd
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import run

DAEMON = "org.apache.cassandra.service.CassandraDaemon"
NOBODY = pwd.getpwnam("nobody")
DEFAULT_PORT, JMX_PORT, AGENT_PORT = 8778, 7199, 17199
# sockios.h and if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# Prints a report of the user that runs it and of the password that it reads.
NODETOOL = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do
    [ "$1" = -pwf ] && passwords=$(cat "$2")
    shift 2
done
echo "$(id -u) $(id -g) $(id -G) $passwords $CASSTAT_JOLOKIA_PASSWORD" >> '{log}'
echo "ID : 1"
"""


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        (flags,) = struct.unpack_from("16xH", fcntl.ioctl(device, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0)))
        fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


@contextmanager
def as_nobody() -> Iterator[None]:
    """Create files and sockets as the user nobody; sockets keep the user that created them."""
    os.setegid(NOBODY.pw_gid)
    os.seteuid(NOBODY.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class Listener:
    """A listener of the user nobody that answers nothing and keeps what it receives."""

    def __init__(self, port: int) -> None:
        with as_nobody():
            self._server = socket.create_server(("127.0.0.1", port))
        self.received = b""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._server.accept()
            except OSError:
                return
            with stream:
                self.received += stream.recv(1 << 16)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@contextmanager
def listener(port: int) -> Iterator[Listener]:
    opened = Listener(port)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def process(*options: str, user: int = 0) -> Iterator[int]:
    """Run a process that looks like Cassandra."""
    # The shell reads from the pipe, so it needs no other program, and its arguments stay visible.
    words = ["/bin/sh", "-c", "read line", *options, DAEMON]
    group = NOBODY.pw_gid if user else 0
    with subprocess.Popen(words, stdin=subprocess.PIPE, user=user, group=group, extra_groups=[]) as started:
        yield started.pid
        started.kill()


class Stage:
    """A folder with password files and the nodetool of each user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)
        (folder / "jolokia").write_text("secret-of-jolokia\n")
        (folder / "jmx").write_text("me secret-of-jmx\n")
        for name in ("jolokia", "jmx"):
            (folder / name).chmod(0o600)
        self.log = folder / "nodetool.log"

    def installation(self, name: str, *, user: int) -> Path:
        """Return an installation's configuration folder; the installation has a nodetool and belongs to a user."""
        home = self.folder / name
        for folder in (home, home / "bin", home / "conf"):
            folder.mkdir()
        tool = home / "bin/nodetool"
        tool.write_text(NODETOOL.format(log=self.log))
        tool.chmod(0o755)
        for path in (home, home / "bin", home / "conf", tool):
            os.chown(path, user, NOBODY.pw_gid if user else 0)
        return home / "conf"

    def casstat(self, *options: str) -> str:
        """Run casstat with credentials for Jolokia and JMX; return its messages."""
        self.log.write_text("")
        self.log.chmod(0o666)
        credentials = ["--jolokia-user", "me", "--jolokia-password-file", str(self.folder / "jolokia")]
        credentials += ["--jmx-user", "me", "--jmx-password-file", str(self.folder / "jmx")]
        environ = {"CASSTAT_JOLOKIA_PASSWORD": "secret-of-casstat"}
        return run("0.1", "1", *credentials, *options, **environ).stderr


def found(stage: Stage) -> dict[str, Any]:
    """An imitation with Jolokia, JMX and nodetool, alone, trusted, and named by its address."""
    conf = stage.installation("imitation", user=NOBODY.pw_uid)
    agent, port = "-javaagent:/x/jolokia.jar=port=8779", f"-Dcassandra.jmx.local.port={JMX_PORT}"
    results: dict[str, Any] = {}
    with ExitStack() as stack:
        pid = stack.enter_context(process(agent, port, "-cp", str(conf), user=NOBODY.pw_uid))
        ports = [stack.enter_context(listener(number)) for number in (8779, DEFAULT_PORT, JMX_PORT)]
        calls = {
            "alone": [],
            "by port": ["-m", str(JMX_PORT)],
            "nodetool": ["--source", "nodetool", "--nodetool", str(conf.parent / "bin/nodetool")],
            "trusted": ["--trusted-user", "nobody"],
            "named": ["--jolokia", "http://127.0.0.1:8779/jolokia"],
        }
        for name, options in calls.items():
            before = [len(opened.received) for opened in ports]
            errors = stage.casstat(*options)
            received = [opened.received[size:].decode() for opened, size in zip(ports, before, strict=True)]
            results[name] = {"pid": pid, "errors": errors, "received": received, "nodetool": stage.log.read_text()}
    return results


def beside(stage: Stage) -> dict[str, Any]:
    """A real node of root beside older imitations; a squatter of the default port beside a node without Jolokia."""
    imitation = ["-javaagent:/x/jolokia.jar=port=8779", f"-Dcassandra.jmx.local.port={JMX_PORT}"]
    real = FakeJolokia()
    with process(*imitation, user=NOBODY.pw_uid), listener(8779) as opened:
        with process(f"-javaagent:/x/jolokia.jar=port={real.port}"):
            errors = stage.casstat()
        result = {"errors": errors, "posts": real.posts, "received": opened.received.decode()}
    with process(), listener(DEFAULT_PORT) as opened:
        errors = stage.casstat()
        squatted = {"errors": errors, "received": opened.received.decode()}
    return {"real": result, "squatted": squatted}


def recorded(stage: Stage) -> dict[str, Any]:
    """A squatter of the agent's port, and `record` with a password for agents."""
    options = ["-q", "-o", str(stage.folder / "run"), "--agent-user", "me"]
    options += ["--agent-password-file", str(stage.folder / "jolokia")]
    with listener(AGENT_PORT) as opened:
        errors = run("record", *options, "--", "true").stderr
        return {"errors": errors, "received": opened.received.decode()}


def programs(stage: Stage) -> dict[str, str]:
    """The users that nodetool runs as, and what it is not run from."""
    conf = stage.installation("node", user=NOBODY.pw_uid)
    options = ("--source", "nodetool", "--trusted-user", "nobody")
    with process("-cp", str(conf), f"-Dcassandra.jmx.local.port={JMX_PORT}", user=NOBODY.pw_uid), listener(JMX_PORT):
        stage.casstat(*options)
        results = {"log": stage.log.read_text()}
        conf.parent.chmod(0o777)
        results["writable"] = stage.casstat(*options) + stage.log.read_text()
        conf.parent.chmod(0o755)
        conf.chmod(0o777)
        results["configuration"] = stage.casstat(*options) + stage.log.read_text()
        conf.chmod(0o755)
        os.chown(conf.parent / "bin", NOBODY.pw_uid + 1, -1)
        results["foreign"] = stage.casstat(*options) + stage.log.read_text()
    return results


def main(arguments: Sequence[str]) -> None:
    """Play the scenes in a folder, and print the results as JSON."""
    raise_loopback()
    stage = Stage(Path(arguments[0]))
    results: dict[str, Any] = {scene.__name__: scene(stage) for scene in (found, beside, recorded, programs)}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
