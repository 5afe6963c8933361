"""gnuplot itself: run on a script in its folder, without a shell, and never without an end."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from collector.printable import one_line

KINDS = ("png", "svg")
TIMEOUT_S = 60.0
_AT_ONCE = 2


class GnuplotError(Exception):
    """A picture could not be drawn; the message says which, why and what to do, in one line."""


def draw(
    scripts: Sequence[Path],
    *,
    program: str = "gnuplot",
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> list[Path]:
    """Run gnuplot on each script, two at a time, and return the pictures.

    `environ` is gnuplot's environment, None for that of this process. Raises GnuplotError when there is no gnuplot,
    when it fails or takes longer than `timeout_s` for a script. The other pictures are drawn all the same.
    """

    def run(script: Path) -> GnuplotError | None:
        try:
            _run(script, program, timeout_s, environ)
        except GnuplotError as error:
            return error
        return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        errors = [error for error in pool.map(run, scripts) if error is not None]
    _raise_first(errors)
    return [script.with_suffix(f".{kind}") for script in scripts for kind in KINDS]


def _raise_first(errors: Sequence[GnuplotError]) -> None:
    others = len({str(error) for error in errors}) - 1
    if errors:
        raise GnuplotError(f"{errors[0]}{f' (and {others} more)' if others > 0 else ''}")


def _run(script: Path, program: str, timeout_s: float, environ: Mapping[str, str] | None) -> None:
    try:
        # -d: no settings of the user's own.
        done = subprocess.run(
            [program, "-d", script.name],
            cwd=script.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            env=None if environ is None else dict(environ),
            check=False,
        )
    except FileNotFoundError:
        if not script.parent.is_dir():
            raise GnuplotError(f"{script.parent}: no such folder") from None
        raise GnuplotError(
            f"there is no {program} here to draw with: install it (Debian's package gnuplot-nox); the scripts and data"
            f" are in {script.parent}"
        ) from None
    except OSError as error:
        raise GnuplotError(f"{program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GnuplotError(f"{script}: gnuplot was not done after {timeout_s:g} s") from None
    if done.returncode:
        said = one_line(_telling(done.stderr.decode(errors="replace").splitlines()))
        raise GnuplotError(f"{script}: gnuplot: {said or f'exit code {done.returncode}'}")


def _telling(lines: Sequence[str]) -> str:
    """Return what gnuplot says of the script's lines; what else it prints are the commands themselves."""
    told = [line.strip().partition('" ')[2] for line in lines if re.match(r'\s*"[^"]*",? line \d+: ', line)]
    return "; ".join(told) or next((line for line in reversed(lines) if line.strip()), "")
