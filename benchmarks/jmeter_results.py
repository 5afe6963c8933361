"""Writes results as JMeter does: a CSV file (JTL) with a row per sample."""

import random
from itertools import islice
from pathlib import Path

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
)
DIFFERENT_ROWS = 100_000


def written(path: Path, seed: int, begin_s: float, length_s: float, rate_per_s: float) -> Path:
    """Write the results of a test with reads and writes at a constant rate; return the path."""
    generator = random.Random(seed)  # noqa: S311
    rows = [_row_after_time(generator) for _ in range(DIFFERENT_ROWS)]
    count = int(length_s * rate_per_s)
    with path.open("w", encoding="ascii") as file:
        file.write(HEADER)
        times_ms = (int(1000 * (begin_s + number / rate_per_s)) for number in range(count))
        while chunk := list(islice(times_ms, DIFFERENT_ROWS)):
            file.writelines(map("{}{}".format, chunk, rows))
    return path


def _row_after_time(generator: random.Random) -> str:
    elapsed_ms = int(generator.lognormvariate(1, 0.8))
    label = generator.choice(("read", "write"))
    is_success = generator.random() > 0.0005
    code, message = ("200", "OK") if is_success else ("500", '"timed out, twice"')
    thread = f"load 1-{generator.randrange(1, 33)}"
    success = str(is_success).lower()
    return f",{elapsed_ms},{label},{code},{message},{thread},text,{success},,312,0,32,32,null,{elapsed_ms},0,0\n"
