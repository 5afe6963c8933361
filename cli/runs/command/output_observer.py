"""The interface of objects that follow a command's output, and a class that combines several of them."""

from collections.abc import Sequence

# How often an observer is called while there is no output.
IDLE_S = 0.25


class OutputObserver:
    """Follows the output of a command; all methods are called in the runner's thread. By default, they do nothing."""

    def before_output(self, data: bytes, stream: int) -> None:
        """Receive output that is about to be passed through; `stream` is the descriptor to which it is written."""

    def after_output(self) -> None:
        """Handle output that was passed through; called at least every IDLE_S unless its reader is slow."""

    def end(self) -> None:
        """Handle the end of the output."""


class OutputObservers(OutputObserver):
    """Several observers of the same output."""

    def __init__(self, observers: Sequence[OutputObserver]) -> None:
        self._observers = observers

    def before_output(self, data: bytes, stream: int) -> None:
        for observer in self._observers:
            observer.before_output(data, stream)

    def after_output(self) -> None:
        for observer in self._observers:
            observer.after_output()

    def end(self) -> None:
        for observer in self._observers:
            observer.end()
