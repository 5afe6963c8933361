"""Runs gnuplot on a script, in the script's directory, without a shell and with a deadline."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from collector.printable import one_line

KINDS = ("png", "svg")
TIMEOUT_S = 60.0
_AT_ONCE = 2


class GnuplotError(Exception):
    """A plot could not be drawn; the message is one line with the cause."""


def draw(
    scripts: Sequence[Path],
    *,
    program: str = "gnuplot",
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> list[Path]:
    """Run gnuplot on each script, two at a time; return the image files.

    `environ` is gnuplot's environment; None means that of this process. Raises GnuplotError if gnuplot is missing,
    fails, or takes longer than `timeout_s` for a script; the other plots are still drawn.
    """
    return begin_drawing(scripts, program=program, timeout_s=timeout_s, environ=environ)()


def begin_drawing(
    scripts: Sequence[Path],
    *,
    program: str = "gnuplot",
    timeout_s: float = TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> Callable[[], list[Path]]:
    """Run gnuplot on each script in the background; return a function that waits for the image files, like `draw`."""

    def run(script: Path) -> GnuplotError | None:
        try:
            _run(script, program, timeout_s, environ)
        except GnuplotError as error:
            return error
        return None

    pool = ThreadPoolExecutor(_AT_ONCE)
    results = pool.map(run, scripts)

    def wait() -> list[Path]:
        try:
            errors = [error for error in results if error is not None]
        finally:
            pool.shutdown(cancel_futures=True)
        _raise_first(errors)
        return [script.with_suffix(f".{kind}") for script in scripts for kind in KINDS]

    return wait


def _raise_first(errors: Sequence[GnuplotError]) -> None:
    others = len({str(error) for error in errors}) - 1
    if errors:
        raise GnuplotError(f"{errors[0]}{f' (and {others} more)' if others > 0 else ''}")


def _run(script: Path, program: str, timeout_s: float, environ: Mapping[str, str] | None) -> None:
    try:
        # With -d, gnuplot ignores the user's settings.
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
            raise GnuplotError(f"{script.parent}: no such directory") from None
        raise GnuplotError(
            f"{program}: not found (hint: install the gnuplot-nox package; the scripts and data are in {script.parent})"
        ) from None
    except OSError as error:
        raise GnuplotError(f"{program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GnuplotError(f"{script}: gnuplot did not finish within {timeout_s:g} s") from None
    if done.returncode:
        message = one_line(_script_errors(done.stderr.decode(errors="replace").splitlines()))
        raise GnuplotError(f"{script}: gnuplot: {message or f'exit code {done.returncode}'}")


def _script_errors(lines: Sequence[str]) -> str:
    """Return gnuplot's error messages without the commands that it prints along with them."""
    messages = [line.strip().partition('" ')[2] for line in lines if re.match(r'\s*"[^"]*",? line \d+: ', line)]
    return "; ".join(messages) or next((line for line in reversed(lines) if line.strip()), "")
