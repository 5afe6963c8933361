"""Student's t distribution, whose degrees of freedom may be fractions."""

from math import exp, lgamma, log, log1p

# For all arguments that occur, the continued fraction converges in far fewer steps.
MAX_STEPS = 500
_TINY = 1e-300
_PRECISION = 1e-15
_HALVINGS = 80


def p_value(t: float, degrees: float) -> float:
    """Return the probability that the absolute value of a t variable is at least |t|."""
    if t == 0:
        return 1.0
    share = degrees / (degrees + t * t)
    return _incomplete_beta(degrees / 2, 0.5, share, t * t / (degrees + t * t))


def critical_value(level: float, degrees: float) -> float:
    """Return the t whose p-value is `level`, such as 0.05."""
    low, high = 0.0, 1.0
    while p_value(high, degrees) > level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle, degrees) > level else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b); `rest` is 1 - x."""
    if x <= 0 or rest <= 0:
        return float(x > 0)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * (log(rest) if x > 0.5 else log1p(-x)))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), with Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MAX_STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
