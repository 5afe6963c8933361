"""Options that limit the number of series and the memory used when reading recordings."""

import functools
import resource
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from cli.errors import CasstatError
from cli.parameters.size_type import Size
from collector.recording.header import MAX_MEMORY_BYTES, MAX_SERIES, TooManySeriesError

STATM = Path("/proc/self/statm")
DATA_FIELD = 5
MESSAGE = "reading the recordings requires more than"
HINT = "read fewer nodes or a shorter time range, or raise --max-memory"


def read_limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command; it receives `max_series` and `max_memory`."""
    options = [
        click.option(
            "--max-series",
            type=click.IntRange(min=1),
            default=MAX_SERIES,
            help=f"Maximum number of series per node.  [{MAX_SERIES}]",
        ),
        click.option(
            "--max-memory",
            type=Size(),
            default=str(MAX_MEMORY_BYTES),
            metavar="SIZE",
            help=f"Maximum memory per process.  [{MAX_MEMORY_BYTES >> 30}G]",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_limits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command and limit its memory; it receives `max_series`. Must be the innermost decorator."""

    @functools.wraps(command)
    def with_limits(*arguments: Any, max_memory: int, **options: Any) -> Any:
        with memory_limit(max_memory):
            return command(*arguments, **options)

    return read_limit_options(with_limits)


@contextmanager
def memory_limit(limit_bytes: int, message: str = MESSAGE, hint: str = HINT) -> Iterator[None]:
    """Limit the memory of this process, and of each child process, to this process's current usage plus `limit_bytes`.

    Raises CasstatError if the block exceeds this limit, with a message that begins with `message` and has the hint, or
    if a recording exceeds its series limit.
    """
    if find_spec("numpy"):
        # Imported before usage is measured: numpy's threads reserve hundreds of megabytes on machines with many cores.
        import numpy as np  # noqa: F401
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(STATM.read_text().split()[DATA_FIELD]) * resource.getpagesize()
    allowed = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + limit_bytes, *allowed, 1 << 62), before[1]))
    try:
        yield
    except (MemoryError, BrokenProcessPool):
        size = f"{limit_bytes / (1 << 30):.3g}G"
        raise CasstatError(f"{message} {size} of memory (hint: {hint})") from None
    except TooManySeriesError as error:
        raise CasstatError(f"{error} (hint: raise --max-series)") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
