"""Follow README.md from top to bottom in a clean Debian root: every command in its order, as a reader copies it.

Usage: python -m acceptance.readme_walk [BASE]

Needs root and, without BASE, debootstrap. BASE is a root that `debootstrap --variant=minbase bookworm BASE` has made;
it is copied. The commands listen on this machine's loopback addresses. Prints a transcript; the exit code is 1 when a
command failed.
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
# How this machine reaches its package registries, and the certificates it trusts.
SOURCES = "etc/apt/sources.list"
OF_THE_MACHINE = ("etc/resolv.conf", "etc/hosts", SOURCES, f"{SOURCES}.d", "usr/local/share/ca-certificates")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*?)(?:\s+# (.*))?$", re.MULTILINE)
DONE = "walk-exit-code"
INTERRUPT_AFTER_S = 8
# As shells report a program that Ctrl-C has ended.
INTERRUPTED = 130
# It exits with 1 where it finds a problem, as on a machine without NTP.
MAY_FAIL = ("casstat doctor",)
FIRST_LINES, LAST_LINES = 8, 6
LONGEST_LINE = 200
# In a mount and a process namespace of its own: when the shell ends, everything that it started ends.
# The root is a mount of its own, without which Java finds no file system for Cassandra's folders.
SHELL = """mount --bind {root} {root} && mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc &&
mount -t sysfs sysfs {root}/sys &&
exec chroot {root} /bin/bash --login /reader"""
ENVIRONMENT = {"HOME": "/root", "TERM": "dumb", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
ENVIRONMENT["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
# Commands come on their own descriptor, so that no command reads the next one. A reader's shell has job control.
READER = f"""exec 3<&0 0</dev/null
set -m
cd /{HOME}
echo {DONE} 0
while read -r -u 3 line; do eval "$line"; echo {DONE} $?; done
"""


def commands(readme: str) -> Iterator[tuple[str, str]]:
    """Yield the commands in the page's console blocks, each with its comment."""
    for block in BLOCK.findall(readme):
        yield from COMMAND.findall(block)


def make_root(folder: Path, base: Path | None) -> None:
    """Make a clean root with a copy of this repository."""
    if base is None:
        subprocess.run(
            ["/usr/bin/env", "debootstrap", "--variant=minbase", RELEASE, folder], check=True, stdout=subprocess.DEVNULL
        )
    else:
        subprocess.run(["/usr/bin/env", "cp", "-a", f"{base}/.", folder], check=True)
    (folder / SOURCES).unlink(missing_ok=True)
    for name in OF_THE_MACHINE:
        source, target = Path("/", name), folder / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    # The reader's yes.
    (folder / "etc/apt/apt.conf.d/90yes").write_text('APT::Get::Assume-Yes "true";\n')
    (folder / "reader").write_text(READER)
    (folder / HOME).mkdir()
    archive = subprocess.run(
        ["/usr/bin/env", "git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["/usr/bin/env", "tar", "-x", "-C", folder / HOME], input=archive, check=True)


class Shell:
    """A login shell in the clean root."""

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
        self.answer()
        self.run("apt-get update")

    def run(self, line: str) -> tuple[int, list[str]]:
        """Run a line; return its exit code and output. Raises EOFError when the shell ends."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> tuple[int, list[str]]:
        """Return the exit code and the output of what runs. Raises EOFError when the shell ends."""
        assert self._process.stdout is not None
        output: list[str] = []
        for text in self._process.stdout:
            # The last line of a program's output may lack its end.
            before, mark, code = text.rstrip("\n").partition(f"{DONE} ")
            if before or not mark:
                output.append(before)
            if mark:
                return int(code), output
        raise EOFError("the shell ended: " + " ".join(output[-1:]))

    def close(self) -> None:
        """End it and all that it started."""
        with self._process as process:
            process.kill()


def typed(command: str, comment: str) -> str:
    """Return what to give to the shell for a command; its comment tells what a reader does besides."""
    if "new shell" in comment:
        return f"{command}; exec /bin/bash --login /reader <&3"
    if "until" in comment:
        return f"timeout --foreground --preserve-status --signal INT {INTERRUPT_AFTER_S} {command}"
    return command


def shortened(output: list[str]) -> list[str]:
    """Return the output without its middle."""
    lines = [line.rpartition("\r")[2][:LONGEST_LINE] for line in output]
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    return [*lines[:FIRST_LINES], f"… {left_out} lines …", *lines[-LAST_LINES:]] if left_out > 0 else lines


def walk(shell: Shell, readme: str) -> list[str]:
    """Run all commands, print what they print, and return those that failed."""
    failed = []
    for command, comment in commands(readme):
        began_s = time.monotonic()
        print(f"$ {command}", flush=True)
        code, output = shell.run(typed(command, comment))
        print("\n".join(shortened(output)))
        print(f"[exit code {code}, {time.monotonic() - began_s:.0f} s]\n", flush=True)
        is_interrupted = "until" in comment and code == INTERRUPTED
        if code and not is_interrupted and command not in MAY_FAIL:
            failed.append(command)
    return failed


def main() -> int:
    """Walk, and say which commands failed."""
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
