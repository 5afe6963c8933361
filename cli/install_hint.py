"""Optional packages, and the shell command that installs them into casstat's environment."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from cli.errors import CasstatError

ANALYSIS = ("numpy", "orjson")
"""The packages of casstat[analysis] that merging requires, and so do tables, plots, summaries and reports."""


def has_packages(*packages: str) -> bool:
    return all(find_spec(package) is not None for package in packages)


def require_packages(purpose: str, *packages: str) -> None:
    """Raise CasstatError if `purpose`, such as an option, requires packages that are not installed."""
    if not has_packages(*packages):
        command = install_command(*packages)
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
