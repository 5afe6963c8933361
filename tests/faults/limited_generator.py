"""A load generator for tests: achieves any rate, but above 12 operations per second its latency is too high.

Arguments: the rate, the duration in seconds, and the file for its result, a generic CSV with percentiles.
"""

import sys
import time
from pathlib import Path

HIGHEST_RATE = 12.0


def main(rate: float, duration_s: float, file: str) -> None:
    begin_s = time.time()
    time.sleep(duration_s)
    seconds = int(time.time() - begin_s)
    p99_ms = 1.5 if rate <= HIGHEST_RATE else 40.0
    with Path(file).open("w") as result:
        print("time_s,duration_s,operations,response_p50_ms,response_p99_ms", file=result)
        print(f"{begin_s},{seconds},{round(rate * seconds)},0.5,{p99_ms}", file=result)


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
