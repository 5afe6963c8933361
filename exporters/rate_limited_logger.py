"""What is said over and over is said once, and then how often."""

import time
from collections.abc import Callable

EVERY_S = 60.0


class RateLimitedLogger:
    """Says what happens, of each kind at most one line a minute; belongs to one thread."""

    def __init__(self, say: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._monotonic = monotonic
        # By kind: when it was said last, what has been kept back since, and how often.
        self._kept: dict[str, tuple[float, str, int]] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Say it, or keep it back while something of its kind was said a moment ago."""
        now_s = self._monotonic()
        said_s, _, count = self._kept.get(kind, (-EVERY_S, "", 0))
        if now_s - said_s >= EVERY_S and not count:
            self._kept[kind] = now_s, "", 0
            self._say(text)
        else:
            self._kept[kind] = said_s, text, count + 1

    def forget(self, kind: str) -> None:
        """Let the next line of a kind be said at once: what it was about is over."""
        self._kept.pop(kind, None)

    def tell(self) -> None:
        """Say what was kept back and is due: to be called every second or so."""
        now_s = self._monotonic()
        for kind, (said_s, text, count) in list(self._kept.items()):
            if now_s - said_s < EVERY_S:
                continue
            if count:
                self._kept[kind] = now_s, "", 0
                self._say(f"{text} ({count} times in the last {now_s - said_s:.0f} s)" if count > 1 else text)
            else:
                del self._kept[kind]
