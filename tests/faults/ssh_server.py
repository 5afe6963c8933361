"""A real sshd on a loopback address, and an `ssh` that is configured for it."""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.waiting import eventually

HOST = "127.0.63.9"
SSH, KEYGEN = (shutil.which(name) or name for name in ("ssh", "ssh-keygen"))
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "sshd"


class SshServer:
    """An sshd that runs commands with the current user's casstat in PATH and with the variables `environ`."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self.environ = environ
        self.known_hosts = folder / "known_hosts"
        self.authorized_keys = folder / "authorized_keys"
        self._config = folder / "sshd_config"
        self._log = folder / "sshd.log"
        self._server: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        for name in ("host_key", "key"):
            subprocess.run([KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        with socket.socket() as bound:
            bound.bind((HOST, 0))
            self.port = bound.getsockname()[1]
        host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        self.known_hosts.write_text(f"[{HOST}]:{self.port} {host_key}\n")
        self.authorized_keys.write_text((folder / "key.pub").read_text())
        self.configure(environ)
        self._write_client()

    def configure(self, environ: Mapping[str, str], *lines: str) -> None:
        """For the next start, set the environment of commands and add `lines` to the configuration."""
        scripts = Path(sys.executable).parent
        variables = {"PATH": f"{scripts}:/usr/bin:/bin", **environ}
        settings = (
            f"ListenAddress {HOST}:{self.port}",
            f"HostKey {self._folder / 'host_key'}",
            f"AuthorizedKeysFile {self.authorized_keys}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            f"SetEnv {' '.join(f'{name}={value}' for name, value in variables.items())}",
            *lines,
        )
        self._config.write_text("".join(f"{setting}\n" for setting in settings))

    def _write_client(self) -> None:
        settings = (
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile none",
            f"IdentityFile {self._folder / 'key'}",
            "IdentitiesOnly yes",
            "IdentityAgent none",
        )
        (self._folder / "ssh_config").write_text("".join(f"{setting}\n" for setting in settings))
        client = self._folder / "bin" / "ssh"
        client.parent.mkdir()
        client.write_text(
            f'#!/bin/sh\nexec {shlex.quote(SSH)} -F {shlex.quote(str(self._folder / "ssh_config"))} "$@"\n'
        )
        client.chmod(0o755)

    @property
    def path(self) -> str:
        """A PATH in which the configured `ssh` comes first."""
        return f"{self._folder / 'bin'}:{os.environ['PATH']}"

    @property
    def url(self) -> str:
        return f"ssh://{HOST}:{self.port}"

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        if os.geteuid() == 0:
            # sshd requires this directory, which a boot script usually creates.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", self._config], stdin=subprocess.DEVNULL, stderr=log
            )
        eventually(self._accepts)

    def restart(self) -> None:
        """Apply a changed configuration."""
        self.stop()
        self.start()

    def _accepts(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, self._log.read_text()
        with socket.socket() as client:
            return client.connect_ex((HOST, self.port)) == 0

    def stop(self) -> None:
        """Kill the server and its connections, but not the commands that are running."""
        server, self._server = self._server, None
        if server is None:
            return
        for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        server.wait()


@contextlib.contextmanager
def ssh_server(folder: Path, environ: Mapping[str, str]) -> Iterator[SshServer]:
    """Run a server until the block ends."""
    server = SshServer(folder, environ)
    server.start()
    try:
        yield server
    finally:
        server.stop()
