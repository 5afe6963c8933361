"""Run all commands in README.md, in order, in a clean Debian chroot, and print a transcript.

Usage: python -m acceptance.readme_walk [BASE]

Requires root privileges and, without BASE, debootstrap. BASE is a directory created by `debootstrap --variant=minbase
bookworm BASE`; the script works on a copy of it. Servers started by the commands listen on this machine's loopback
addresses. Exits with status 1 if a command that is not in MAY_FAIL fails.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
RELEASE = "bookworm"
HOME = "root/casstat"
# Files copied from this machine so that programs in the chroot can reach package registries and trust their
# certificates.
SOURCES = "etc/apt/sources.list"
COPIED_FILES = ("etc/resolv.conf", "etc/hosts", SOURCES, f"{SOURCES}.d", "usr/local/share/ca-certificates")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*?)(?:\s+# (.*))?$", re.MULTILINE)
DONE = "walk-exit-code"
INTERRUPT_AFTER_S = 8
# Shells report this exit status for a program interrupted with Ctrl-C.
INTERRUPTED = 130
# The doctor exits with status 1 if it finds a problem, such as a node that does not respond.
MAY_FAIL = ("casstat doctor",)
FIRST_LINES, LAST_LINES = 8, 6
MAX_LINE_CHARS = 200
# The shell runs in its own mount and PID namespaces, so all its processes end with it.
# The chroot must be a mount point; otherwise Java finds no file system for Cassandra's directories.
SHELL = """mount --bind {root} {root} && mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc &&
mount -t sysfs sysfs {root}/sys &&
exec chroot {root} /bin/bash --login /reader"""
ENVIRONMENT = {"HOME": "/root", "TERM": "dumb", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
ENVIRONMENT["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
# Commands arrive on a separate descriptor, so that a command cannot read the next one from its standard input. Like an
# interactive shell, this one has job control (`set -m`) and forgets finished jobs after each command (`jobs`), so that
# the next background job is %1 again.
READER = f"""exec 3<&0 0</dev/null
set -m
cd /{HOME}
echo {DONE} 0
while read -r -u 3 line; do eval "$line"; code=$?; jobs >/dev/null; echo {DONE} $code; done
"""


def commands(readme: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in a page's console blocks, each with its comment."""
    for block in BLOCK.findall(readme):
        yield from COMMAND.findall(block)


def make_root(folder: Path, base: Path | None) -> None:
    """Create a clean chroot that contains a copy of this repository."""
    if base is None:
        subprocess.run(
            ["/usr/bin/env", "debootstrap", "--variant=minbase", RELEASE, folder], check=True, stdout=subprocess.DEVNULL
        )
    else:
        subprocess.run(["/usr/bin/env", "cp", "-a", f"{base}/.", folder], check=True)
    (folder / SOURCES).unlink(missing_ok=True)
    for name in COPIED_FILES:
        source, target = Path("/", name), folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (folder / "etc/apt/apt.conf.d/90yes").write_text('APT::Get::Assume-Yes "true";\n')
    (folder / "reader").write_text(READER)
    (folder / HOME).mkdir()
    archive = subprocess.run(
        ["/usr/bin/env", "git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["/usr/bin/env", "tar", "-x", "-C", folder / HOME], input=archive, check=True)


class Shell:
    """A login shell in the clean chroot."""

    def __init__(self, root: Path) -> None:
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SHELL.format(root=root)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        self._read_result()
        self.run("apt-get update")

    def run(self, line: str) -> tuple[int, list[str]]:
        """Run a command line; return its exit code and output. Raises EOFError if the shell exits."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._read_result()

    def _read_result(self) -> tuple[int, list[str]]:
        """Wait for the running command; return its exit code and output. Raises EOFError if the shell exits."""
        assert self._process.stdout is not None
        output: list[str] = []
        for text in self._process.stdout:
            # The last line of a program's output may lack a newline, so the exit code may follow on the same line.
            before, mark, code = text.rstrip("\n").partition(f"{DONE} ")
            if before or not mark:
                output.append(before)
            if mark:
                return int(code), output
        raise EOFError("the shell ended: " + " ".join(output[-1:]))

    def close(self) -> None:
        """Kill the shell and all its processes."""
        with self._process as process:
            process.kill()


def shell_line(command: str, comment: str) -> str:
    """Return the shell line for a command; its comment may ask for a new shell or for Ctrl-C."""
    if "new shell" in comment:
        return f"{command}; exec /bin/bash --login /reader <&3"
    if "until" in comment:
        return f"timeout --foreground --preserve-status --signal INT {INTERRUPT_AFTER_S} {command}"
    return command


def shortened(output: list[str]) -> list[str]:
    """Return the output with long lines truncated and, if there are many lines, without those in the middle."""
    lines = [line.rpartition("\r")[2][:MAX_LINE_CHARS] for line in output]
    omitted = len(lines) - FIRST_LINES - LAST_LINES
    return [*lines[:FIRST_LINES], f"… {omitted} lines …", *lines[-LAST_LINES:]] if omitted > 0 else lines


def walk(shell: Shell, readme: str) -> list[str]:
    """Run all commands, print their shortened output, and return those that failed."""
    failed = []
    for command, comment in commands(readme):
        began_s = time.monotonic()
        print(f"$ {command}", flush=True)
        code, output = shell.run(shell_line(command, comment))
        print("\n".join(shortened(output)))
        print(f"[exit code {code}, {time.monotonic() - began_s:.0f} s]\n", flush=True)
        is_interrupted = "until" in comment and code == INTERRUPTED
        if code and not is_interrupted and command not in MAY_FAIL:
            failed.append(command)
    return failed


def main() -> int:
    """Run the README's commands; return 1 if any of them failed."""
    base = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="casstat-walk-") as folder:
        make_root(Path(folder), base)
        shell = Shell(Path(folder))
        try:
            failed = walk(shell, (ROOT / "README.md").read_text())
        finally:
            shell.close()
    print(f"failed: {failed}" if failed else "every command succeeded")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
