"""Names of operations and kinds of errors from files: printable, short, and few enough to keep."""

from collector.printable import printable

MAX_NAMES = 100
MAX_NAME_CHARS = 80
OTHER = "(other)"


class BoundedNames:
    """Makes names of texts. After the first MAX_NAMES texts, all others have the name OTHER."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self.is_full = False

    def name(self, text: bytes) -> str:
        name = self._names.get(text)
        if name is not None:
            return name
        if len(self._names) == MAX_NAMES:
            self.is_full = True
            return OTHER
        return self._names.setdefault(text, printable(text.decode(errors="replace")[:MAX_NAME_CHARS]))
