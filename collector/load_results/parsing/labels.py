"""The names in a result: printable, short and few, whatever the file contains."""

from collector.printable import count_text, one_line

MAX_LABELS = 50
MAX_LABEL_CHARS = 80


class Labels:
    """The first MAX_LABELS different names; all further ones are "" and are counted in `omitted`."""

    def __init__(self) -> None:
        self.omitted = 0
        self._known = {""}

    def of(self, text: str, count: int = 1) -> str:
        """Return the name to use for a name in the file; if it is omitted, it counts `count` times."""
        label = text if text in self._known else label_of(text)
        if label in self._known:
            return label
        if len(self._known) > MAX_LABELS:
            self.omitted += count
            return ""
        self._known.add(label)
        return label

    def notes(self, noun: str, term: str, hint: str = "") -> list[str]:
        """Return a note if names were omitted: `noun` is a word for what has them, `term` one for such a name."""
        if not self.omitted:
            return []
        number = count_text(self.omitted, noun)
        return [f"{number} beyond the first {MAX_LABELS} {term}s are counted without a {term}{hint}"]


def label_of(text: str) -> str:
    """Return a name as one printable line of at most MAX_LABEL_CHARS characters."""
    return one_line(text)[:MAX_LABEL_CHARS].rstrip()
