"""Events as lines for people: when, which node, what kind, and what is to be said of it."""

from datetime import datetime, timezone

from collector.model.snapshot import Event
from collector.printable import one_line


def event_line(node: str, event: Event, seen_s: float) -> str:
    """Return the event as one line without its end, such as `2026-11-21T12:24:30.219+01:00 node1 gc GC … 312 ms`.

    The time is the event's own, local, in ISO 8601; of an event that has none it is `seen_s`, when it was seen. Both
    are seconds since the epoch.
    """
    time_s = seen_s if event.time_s is None else event.time_s
    # Whole milliseconds first: cutting off the digits after them could show the millisecond before.
    when = datetime.fromtimestamp(round(time_s, 3), timezone.utc).astimezone().isoformat(timespec="milliseconds")
    return f"{when} {one_line(node)} {one_line(event.kind)} {one_line(event.text)}"
