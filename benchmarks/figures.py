"""The figures that benchmarks print."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured value and its bound: a maximum, or a minimum if `at_least` is set, or None for no bound."""

    label: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False

    @property
    def is_within_bound(self) -> bool:
        """Whether the value is within its bound; True if it has none."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self) -> str:
        text = f"{self.label:66} {self.value:10.2f} {self.unit}"
        if self.bound is None:
            return text
        sign = ">=" if self.at_least else "<="
        return f"{text}  ({sign} {self.bound:g}: {'ok' if self.is_within_bound else 'MISSED'})"
