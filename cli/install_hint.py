"""The shell command that installs optional packages into casstat's environment."""

import shlex
import sys
from pathlib import Path


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
