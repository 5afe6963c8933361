"""Runs Jolokia's launcher as the JVM's user, with a deadline; the launcher loads the agent into a running JVM."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError
from collector.printable import printable

MAIN = "org.jolokia.jvmagent.client.AgentLauncher"
TIMEOUT_S = 30.0
MAX_OUTPUT_BYTES = 1 << 16
CHUNK_BYTES = 4096
# Options for a small heap and a quick start, because the launcher does little work.
SMALL = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Done:
    """The result of running a program: its exit code (None if it was killed at the deadline) and its output."""

    code: int | None
    text: str

    @property
    def gist(self) -> str:
        """The output as one line of at most 300 characters."""
        return printable(" ".join(self.text.split()))[:300]


@dataclass(frozen=True)
class Runner:
    """Runs programs as a given user and group, or inside the target process's mount namespace.

    owner     user and group, or None for those of this process.
    inside    command prefix that enters the target process's mount namespace.
    """

    owner: tuple[int, int] | None = None
    inside: tuple[str, ...] = ()

    def run(self, command: Sequence[str | Path], environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> Done:
        """Run a command until it ends or is killed at the deadline. Raises CasstatError if it cannot be started."""
        user, group = self.owner or (None, None)
        try:
            process = subprocess.Popen(
                [*self.inside, *command],
                cwd="/",
                # Leave out other variables, such as Java options, which could change the behaviour and output.
                env={"PATH": environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                user=user,
                group=group,
                extra_groups=None if self.owner is None else [],
                start_new_session=True,
            )
        except OSError as error:
            raise CasstatError(f"{error.filename or command[0]}: {error.strerror}") from None
        with process:
            try:
                output = _read(process, time.monotonic() + timeout_s)
                ended = process.poll() is not None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return Done(process.returncode if ended else None, output.decode(errors="replace"))

    def modules(self, java: Path, environ: Mapping[str, str]) -> frozenset[str]:
        """Return a Java installation's module names, or an empty set for Java 8 or a `java` that does not run."""
        try:
            done = self.run([java, "--list-modules"], environ)
        except CasstatError:
            return frozenset()
        return frozenset(line.partition("@")[0] for line in done.text.splitlines()) if done.code == 0 else frozenset()


def _read(process: "subprocess.Popen[bytes]", deadline_s: float) -> bytes:
    """Read the output until the process exits or the deadline passes; return at most MAX_OUTPUT_BYTES bytes."""
    output = b""
    stream = process.stdout
    if stream is None:
        return output
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left_s := deadline_s - time.monotonic()) > 0 and selector.select(left_s):
            chunk = os.read(stream.fileno(), CHUNK_BYTES)
            if not chunk:
                break
            output = (output + chunk)[:MAX_OUTPUT_BYTES]
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(deadline_s - time.monotonic(), 0))
    return output


def require_jolokia(jar: Path) -> None:
    """Raise CasstatError unless `jar` is Jolokia's JVM agent, which includes the launcher."""
    try:
        with zipfile.ZipFile(jar) as archive, archive.open("META-INF/MANIFEST.MF") as manifest:
            lines = manifest.read(MAX_OUTPUT_BYTES).decode(errors="replace").split("\n")
    except OSError as error:
        raise CasstatError(f"{jar}: {error.strerror}") from None
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError):
        raise CasstatError(
            f"{jar}: not a JAR file (hint: use Jolokia's JVM agent, jolokia-agent-jvm-…-javaagent.jar)"
        ) from None
    if f"Main-Class: {MAIN}" not in (line.strip() for line in lines):
        raise CasstatError(
            f"{jar}: not Jolokia's JVM agent (hint: use jolokia-agent-jvm-…-javaagent.jar or jolokia-jvm-1.7.…jar)"
        )
