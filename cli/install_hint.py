"""Optional packages, and the shell command that installs them into casstat's environment."""

import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cli.errors import CasstatError


def require_packages(purpose: str, *packages: str, also: Sequence[str] = ()) -> None:
    """Raise CasstatError if `purpose`, such as an option, requires packages that are not installed.

    The hint's command also installs the packages `also`, which are useful for it.
    """
    if any(find_spec(package) is None for package in packages):
        command = install_command(*packages, *also)
        raise CasstatError(f"{purpose} requires {' and '.join(packages)} (hint: run '{command}')")


def install_command(*packages: str, prefix: Path | None = None, base: Path | None = None) -> str:
    """Return the command that installs `packages` into the environment at `prefix` (default: the current one).

    `base` is the prefix of the Python that created the virtual environment. Without a virtual environment, it equals
    `prefix`.
    """
    prefix, base = prefix or Path(sys.prefix), base or Path(sys.base_prefix)
    names = " ".join(shlex.quote(package) for package in packages)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(prefix.name)} {names}"
    pip = prefix / "bin" / "pip"
    if prefix != base and pip.exists():
        return f"{shlex.quote(str(pip))} install {names}"
    if prefix != base:
        # Environments created by uv have no pip.
        return f"uv pip install --python {shlex.quote(str(prefix / 'bin' / 'python'))} {names}"
    return f"{shlex.quote(sys.executable)} -m pip install {names}"
