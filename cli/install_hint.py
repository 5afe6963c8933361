"""The command that installs an optional package into the environment that casstat runs in."""

import shlex
import sys
from pathlib import Path


def install_command(*packages: str, prefix: Path | None = None, base: Path | None = None) -> str:
    """Return the command that adds `packages` to the environment in `prefix`, by default the running one.

    `base` is the Python that a virtual environment was made from; without one it is `prefix` itself.
    """
    prefix, base = prefix or Path(sys.prefix), base or Path(sys.base_prefix)
    names = " ".join(shlex.quote(package) for package in packages)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(prefix.name)} {names}"
    pip = prefix / "bin" / "pip"
    if prefix != base and pip.exists():
        return f"{shlex.quote(str(pip))} install {names}"
    if prefix != base:
        # Made by uv, which brings no pip.
        return f"uv pip install --python {shlex.quote(str(prefix / 'bin' / 'python'))} {names}"
    return f"{shlex.quote(sys.executable)} -m pip install {names}"
