"""What a benchmark prints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured value and the bound it should keep: at most `bound`, or at least with `at_least`; None for none."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        text = f"{self.what:66} {self.value:10.2f} {self.unit}"
        if self.bound is None:
            return text
        sign = ">=" if self.at_least else "<="
        return f"{text}  ({sign} {self.bound:g}: {'ok' if self.holds else 'FALLS SHORT'})"
