"""A load generator that achieves exactly its rate, and ends at a fraction of a second that differs in each call.

Arguments: the rate, the duration in seconds, the file for its result (a generic CSV), "operations" or "seconds" for
what a row of it is, and a file that counts the calls.
"""

import sys
import time
from pathlib import Path

CALLS, STEP = 20, 7
"""The fractions are multiples of 1 / CALLS, in an order that does not rise with the rate."""
EXIT_S = 2.0
"""How long the program needs to end, as a JVM does."""


def main(rate: float, length_s: float, file: Path, form: str, calls: Path) -> None:
    number = int(calls.read_text() or 0) if calls.exists() else 0
    calls.write_text(str(number + 1))
    begin_s, load_s = time.time(), length_s + number * STEP % CALLS / CALLS
    time.sleep(load_s)
    if form == "operations":
        rows = (f"{begin_s + index / rate:.6f},2," for index in range(int(rate * load_s)))
        text = "time_s,latency_ms,error\n" + "\n".join(rows)
    else:
        counts = (round(rate * min(load_s - second, 1)) for second in range(int(load_s + 0.999)))
        rows = (f"{begin_s + second:.6f},1,{count},2" for second, count in enumerate(counts))
        text = "time_s,duration_s,operations,p99_ms\n" + "\n".join(rows)
    file.write_text(text + "\n")
    time.sleep(EXIT_S)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
