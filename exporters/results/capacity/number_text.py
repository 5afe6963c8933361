"""Numbers as text, without exponents or thousands separators, as commands receive them."""


def rate_text(rate: float) -> str:
    """Return a target rate without trailing zeros."""
    return f"{rate:.9f}".rstrip("0").rstrip(".")


def measured_text(value: float, digits: int = 4) -> str:
    """Return a measured value with at least this many significant digits."""
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:.0f}"
