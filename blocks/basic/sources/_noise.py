"""Noise that is the same on every platform."""

from __future__ import annotations

import numpy as np

from ....errors import DiagramError
from ...core._block import NativeBlock
from ...core._ports import SAMPLED, Numbers, Parameter, Port, parameter
from ...core._vectors import align, require_choice, require_whole


class Noise(NativeBlock):
    """White noise, limited to a band by being held over its period: y[n] = mean + std · w[n].

    w[n] is the normal (or uniform) quantile of a hash of seed, element and n, so that any sample
    depends on nothing before it, and elements are independent. Only integer arithmetic, the four
    operations and square roots are used: the same seed gives the same bits everywhere.

    The spectrum of a sequence held over T seconds is flat well below 1 / (2 T) Hz, with the
    two-sided density S = std^2 T. So ``density=S`` means std = sqrt(S / T). The one-sided density
    of a data sheet (for example, (100 µg/√Hz)^2) is twice the two-sided one: give half of it.

    Parameters
    ----------
    std
        Standard deviation: a number, or a vector for as many independent signals.
    density
        Instead of `std`: two-sided power spectral density, in the square of the unit per Hz.
    mean
        A number or a vector.
    seed
        A whole number; two blocks with one seed give the same noise. If not given, it is derived
        from the block's path in the top diagram: each block has its own.
    distribution
        ``"normal"``, or ``"uniform"``: between mean - sqrt(3) std and mean + sqrt(3) std.
    width
        Number of independent signals, if no vector determines it.
    unit
        Unit of the output.
    """

    kernel = "noise"

    def __init__(
        self,
        std: Numbers | None = None,
        *,
        density: Numbers | None = None,
        mean: Numbers = 0.0,
        seed: int | None = None,
        distribution: str = "normal",
        width: int | None = None,
        unit: str | None = None,
    ) -> None:
        if std is not None and density is not None:
            raise DiagramError("Noise takes `std` or `density`, not both.")
        if density is None:
            spread = parameter(
                "std", 1.0 if std is None else std, unit=unit, doc="standard deviation"
            )
        else:
            spread = parameter("density", density, doc="two-sided power spectral density")
        if np.any(spread.value < 0):
            raise DiagramError(f"`{spread.name}` must not be negative, got {spread.value}.")
        uniform = require_choice("distribution", distribution, ("normal", "uniform"))
        (spread, center), length = align(
            [spread, parameter("mean", mean, unit=unit, doc="mean value")]
        )
        if width is not None and (width < 1 or length not in (None, width)):
            raise DiagramError(f"`width` is {width}, but there are {length or 1} values.")
        super().__init__(
            outputs=[Port("y", width=width or length or 1, unit=unit)],
            parameters=[
                make_seed(seed),
                spread,
                center,
            ],
            integers=[uniform, int(density is not None)],
            rate=SAMPLED,
        )


def make_seed(seed: int | None, doc: str = "chooses the noise") -> Parameter:
    """Return the parameter ``seed``; if none is given, the compiler derives it from the path."""
    if seed is None:
        return parameter("seed", 0, doc=doc, tunable=False, derived="path")
    return parameter("seed", require_whole("seed", seed, 0, 2**53 - 1), doc=doc, tunable=False)
