"""Load that varies over the day and over seconds, with a closed form of its sum over time.

The level is 1 + Σ a sin(ωt + φ), where Σ a < 1, so it is never negative, and its integral never decreases. A counter
that is proportional to the integral therefore never decreases either, and can be computed for any time directly.
"""

from dataclasses import dataclass
from math import cos, pi, sin, tau
from random import Random

DAY_S = 86400.0
# Busiest hour of the day (UTC).
PEAK_S = 15 * 3600.0
# Periods and amplitudes of the waves besides the daily one. No period is a multiple of another one, so that the load
# looks random.
_WAVES = ((1741.0, 0.15), (307.0, 0.12), (47.3, 0.1), (7.7, 0.1))
DAILY_SHARE = 0.4


@dataclass(frozen=True)
class Wave:
    """A sine wave: its angular frequency, amplitude and phase."""

    omega: float
    amplitude: float
    phase: float


@dataclass(frozen=True)
class LoadCurve:
    """A level around 1 that varies with time."""

    waves: tuple[Wave, ...]

    def level(self, time_s: float) -> float:
        """Return the level at a time; it is between 0 and 2."""
        return 1.0 + sum(wave.amplitude * sin(wave.omega * time_s + wave.phase) for wave in self.waves)

    def amount(self, begin_s: float, end_s: float) -> float:
        """Return the integral of the level from `begin_s` to `end_s`."""
        return (end_s - begin_s) + sum(
            wave.amplitude
            / wave.omega
            * (cos(wave.omega * begin_s + wave.phase) - cos(wave.omega * end_s + wave.phase))
            for wave in self.waves
        )


def load_curve(generator: Random) -> LoadCurve:
    """Return a curve with random phases; its daily wave peaks at PEAK_S, give or take half an hour."""
    omega = tau / DAY_S
    peak_s = PEAK_S + generator.uniform(-1800, 1800)
    daily = Wave(omega, DAILY_SHARE, pi / 2 - omega * peak_s)
    others = (Wave(tau / period_s, amplitude, generator.uniform(0, tau)) for period_s, amplitude in _WAVES)
    return LoadCurve((daily, *others))
