"""What varies in a tolerance study: dimensions with tolerances, and quantities without a nominal.

A deviation x from the nominal has limits, a mean and a mean square, and is drawn at random.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ....errors import BiellaError

Array = npt.NDArray[np.float64]


class AbstractVariable(ABC):
    """What varies: it draws random values."""

    __slots__ = ()

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Return random values."""


class AbstractDimension(AbstractVariable):
    """A variable with a nominal and a tolerance."""

    __slots__ = ()
    nominal: float
    tolerance: float

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest deviation of the worst case."""

    @property
    @abstractmethod
    def moments(self) -> tuple[float, float]:
        """Return mean and mean square of the deviation."""


@dataclass(frozen=True, slots=True)
class Normal(AbstractDimension):
    """A dimension with a normal distribution: nominal ± tolerance.

    Parameters
    ----------
    nominal, tolerance
        In the unit of the dimension; the tolerance is half of the range.
    sigmas
        How many standard deviations the tolerance is: 3 as is customary, 6 in Vita's thesis.
    folded
        Use nominal + |x|, for a quantity that only exceeds its nominal, such as a clearance.

    Raises
    ------
    BiellaError
        For a negative tolerance, values that are not finite, or `sigmas` that is not positive.
    """

    nominal: float
    tolerance: float
    sigmas: float = 3.0
    folded: bool = False

    def __post_init__(self) -> None:
        _check("Normal", self.nominal, self.tolerance)
        if not (np.isfinite(self.sigmas) and self.sigmas > 0):
            raise BiellaError(f"`sigmas` of a Normal is positive, got {self.sigmas!r}.")

    @property
    def deviation(self) -> float:
        """Return the standard deviation σ of the distribution before folding."""
        return self.tolerance / self.sigmas

    @property
    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest deviation of the worst case."""
        return (0.0 if self.folded else -self.tolerance), self.tolerance

    @property
    def moments(self) -> tuple[float, float]:
        """Return mean and mean square of the deviation."""
        mean = self.deviation * float(np.sqrt(2 / np.pi)) if self.folded else 0.0
        return mean, self.deviation**2

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Return random values."""
        x = rng.normal(0.0, self.deviation, count)
        return self.nominal + (np.abs(x) if self.folded else x)


@dataclass(frozen=True, slots=True)
class Uniform(AbstractDimension):
    """A dimension that is anywhere within nominal ± tolerance, with equal probability.

    Raises
    ------
    BiellaError
        For a negative tolerance, or values that are not finite.
    """

    nominal: float
    tolerance: float

    def __post_init__(self) -> None:
        _check("Uniform", self.nominal, self.tolerance)

    @property
    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest deviation of the worst case."""
        return -self.tolerance, self.tolerance

    @property
    def moments(self) -> tuple[float, float]:
        """Return mean and mean square of the deviation."""
        return 0.0, self.tolerance**2 / 3.0

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Return random values."""
        return self.nominal + self.tolerance * rng.uniform(-1.0, 1.0, count)


@dataclass(frozen=True, slots=True)
class Free(AbstractVariable):
    """A quantity without a nominal, uniform between two values, such as a direction of contact.

    Sensitivities to the dimensions are taken at random values of all free quantities: the worst
    case uses their largest, root-sum-square their root mean square.

    Raises
    ------
    BiellaError
        Unless both values are finite and the second is the larger one.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise BiellaError(
                f"a Free quantity lies between two values, the first below the second; got "
                f"{self.low!r} and {self.high!r}."
            )

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Return random values."""
        return rng.uniform(self.low, self.high, count)


def _check(kind: str, nominal: float, tolerance: float) -> None:
    if not (np.isfinite(nominal) and np.isfinite(tolerance) and tolerance >= 0):
        raise BiellaError(
            f"a {kind} has a finite nominal and a tolerance of at least 0; got {nominal!r} and "
            f"{tolerance!r}."
        )
