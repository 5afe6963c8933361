"""What the agent says on stderr: a line for each thing, and not the same one again and again."""

import threading
from collections import OrderedDict
from collections.abc import Callable

# The same line is said once in so long; whatever happens, no more than so many lines are.
AGAIN_S = 60.0
MOST_PER_MINUTE = 60
REMEMBERED = 1000


class LineLimiter:
    """Takes lines from any thread and says those that are news; the others are counted and told of later."""

    def __init__(self, say: Callable[[str], None], now_s: Callable[[], float]) -> None:
        """Take what says a line, and a clock that never goes back."""
        self._say = say
        self._now_s = now_s
        self._lock = threading.Lock()
        # By line: when it was last said, and how often it was held back since.
        self._said: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._minute_s = 0.0
        self._in_minute = 0
        self._dropped = 0

    def __call__(self, text: str) -> None:
        """Say a line, unless that was done a short while ago."""
        with self._lock:
            for line in self._news(text, self._now_s()):
                self._say(line)

    def _news(self, text: str, now_s: float) -> list[str]:
        last_s, held_back = self._said.get(text, (now_s - AGAIN_S, 0))
        if now_s - last_s < AGAIN_S:
            self._said[text] = last_s, held_back + 1
            return []
        lines = []
        if now_s - self._minute_s >= AGAIN_S:
            if self._dropped:
                lines.append(f"{self._dropped} further lines were held back in a minute")
            self._minute_s, self._in_minute, self._dropped = now_s, 0, 0
        self._in_minute += 1
        if self._in_minute > MOST_PER_MINUTE:
            self._dropped += 1
            return lines
        self._said[text] = now_s, 0
        self._said.move_to_end(text)
        while len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        return [*lines, f"{text} ({held_back} times more since)" if held_back else text]
