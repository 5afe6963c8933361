"""Reads client results within limits, so that no file can exhaust this machine's memory or stop a run's summary.

`read_isolated` does so in a process of its own, whose end, however it ends, costs only the file.
"""

import json
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.errors import CasstatError, errors_as
from cli.parameters.recording_options import memory_limit
from cli.process_setup import casstat_command
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_file
from collector.load_results.result_file import content_of, result_of
from collector.merge.clock_correction import ClockPart
from collector.printable import one_line

PARSE = tuple(casstat_command("parse"))
MAX_MEMORY_BYTES = 2 << 30
# The CPU time for reading a file; a compressed file may be many times as large as it seems.
MIN_CPU_S = 300
BYTES_PER_CPU_S = 256 << 10
KILL_AFTER_S = 5
# A busy machine, or a file system that hangs.
WAIT_PER_CPU_S = 10
MAX_ERROR_BYTES = 4096


def read_limited(path: Path, choice: FormatChoice, times: CommandTimes) -> ClientResult:
    """Read a file. Raises ClientFormatError, also if this requires more than MAX_MEMORY_BYTES, and OSError."""
    message, hint = "reading the file requires more than", "import a smaller file, or one with longer intervals"
    with errors_as(ClientFormatError, CasstatError), memory_limit(MAX_MEMORY_BYTES, message, hint):
        return read_file(path, choice, times)


def read_isolated(path: Path, choice: FormatChoice, times: CommandTimes) -> ClientResult:
    """Read a file as `read_limited` does, in a process whose CPU time is limited as well."""
    cpu_s = MIN_CPU_S + path.stat().st_size // BYTES_PER_CPU_S
    request = {
        "path": str(path.absolute()),
        "format": choice.format,
        "options": dict(choice.options),
        "begin_s": times.begin_s,
        "end_s": times.end_s,
        "words": list(times.words),
        "clock": [vars(part) for part in times.clock],
        "cpu_s": cpu_s,
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                PARSE,
                input=json.dumps(request).encode(),
                stdout=output,
                stderr=errors,
                timeout=cpu_s * WAIT_PER_CPU_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ClientFormatError(f"not read within {cpu_s * WAIT_PER_CPU_S} s") from None
        output.seek(0)
        if done.returncode == -signal.SIGXCPU:
            raise ClientFormatError(f"reading it requires more than {cpu_s} s of CPU time")
        if done.returncode:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - MAX_ERROR_BYTES))
            lines = errors.read().decode(errors="replace").strip().splitlines() or [""]
            status = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
            raise ClientFormatError(f"the process that read it ended with {status}: {one_line(lines[-1])}".rstrip(": "))
        return _received(output.read())


def _received(raw: bytes) -> ClientResult:
    try:
        content = json.loads(raw)
        if "error" in content:
            raise ClientFormatError(str(content["error"]))
        return result_of(content)
    except (ValueError, TypeError) as error:
        raise error if isinstance(error, ClientFormatError) else ClientFormatError(one_line(error)) from None


def answer(request: Mapping[str, Any]) -> bytes:
    """Return the answer to a request of `read_isolated`, within its limits: a result's content, or an error."""
    cpu_s = int(request["cpu_s"])
    # At the hard limit, the kernel sends SIGKILL, which would not state the reason.
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + KILL_AFTER_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    clock = tuple(ClockPart(**part) for part in request["clock"])
    times = CommandTimes(request["begin_s"], request["end_s"], tuple(request["words"]), clock)
    path = Path(request["path"])
    try:
        result = read_limited(path, FormatChoice(request["format"], request["options"]), times)
    except ClientFormatError as error:
        return json.dumps({"error": str(error)}).encode()
    except OSError as error:
        return json.dumps({"error": error.strerror or os.strerror(error.errno or 0)}).encode()
    return json.dumps(content_of(result), allow_nan=False).encode()
