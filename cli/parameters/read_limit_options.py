"""The options that limit what reading recordings may take, and what enforces them."""

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
from collector.journal.read_limits import MAX_MEMORY_BYTES, MAX_SERIES, TooManySeriesError

STATM = Path("/proc/self/statm")
DATA_FIELD = 5


def limited(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command that reads recordings; it gets `max_series`. To be the innermost decorator."""

    @click.option(
        "--max-series",
        type=click.IntRange(min=1),
        default=MAX_SERIES,
        help=f"Maximum number of series per node.  [{MAX_SERIES}]",
    )
    @click.option(
        "--max-memory",
        type=Size(),
        default=str(MAX_MEMORY_BYTES),
        metavar="SIZE",
        help=f"Maximum memory per process.  [{MAX_MEMORY_BYTES >> 30}G]",
    )
    @functools.wraps(command)
    def bounded(*arguments: Any, max_memory: int, **options: Any) -> Any:
        with memory_limit(max_memory):
            return command(*arguments, **options)

    return bounded


@contextmanager
def memory_limit(most_bytes: int) -> Iterator[None]:
    """Let this process and those it starts take no more memory than now and `most_bytes`. Raises CasstatError."""
    if find_spec("numpy"):
        # On a machine with many CPUs its threads alone have hundreds of megabytes reserved.
        import numpy as np  # noqa: F401
    before = resource.getrlimit(resource.RLIMIT_DATA)
    used = int(STATM.read_text().split()[DATA_FIELD]) * resource.getpagesize()
    allowed = [limit for limit in before if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + most_bytes, *allowed, 1 << 62), before[1]))
    try:
        yield
    except (MemoryError, BrokenProcessPool):
        size = f"{most_bytes / (1 << 30):.3g}G"
        hint = "read less with --from, --until or --nodes, or raise --max-memory"
        raise CasstatError(f"reading the recordings takes more than {size} of memory: {hint}") from None
    except TooManySeriesError as error:
        raise CasstatError(f"{error}: nothing is made of it unless --max-series is raised") from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
