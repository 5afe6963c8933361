"""Events as lines of text: time, node, kind and description."""

from datetime import datetime, timezone

from collector.model.snapshot import Event
from collector.printable import one_line


def event_line(node: str, event: Event, seen_s: float) -> str:
    """Return the event as one line without a newline, such as `2026-11-21T12:24:30.219+01:00 node1 gc GC … 312 ms`.

    The time is local, in ISO 8601. `seen_s` (seconds since the epoch) is used for an event without a time.
    """
    time_s = seen_s if event.time_s is None else event.time_s
    # Round first: isoformat truncates and could show the previous millisecond.
    when = datetime.fromtimestamp(round(time_s, 3), timezone.utc).astimezone().isoformat(timespec="milliseconds")
    return f"{when} {one_line(node)} {one_line(event.kind)} {one_line(event.text)}"
