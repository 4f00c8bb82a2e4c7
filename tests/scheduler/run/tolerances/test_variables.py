"""Distributions: their moments are those of what they draw."""

import numpy as np
import pytest

from biella.errors import BiellaError
from biella.tolerances import Free, Normal, Uniform

COUNT = 200_000


@pytest.mark.parametrize(
    "variable",
    [
        Normal(2.0, 0.6), Normal(2.0, 0.6, sigmas=6.0), Normal(2.0, 0.6, folded=True),
        Uniform(-1.0, 0.3), Normal(1.0, 0.0),
    ],
    ids=str,
)  # fmt: skip
def test_moments_are_those_of_what_is_drawn(variable):
    """Within five standard errors."""
    x = variable.draw(np.random.default_rng(1), COUNT) - variable.nominal
    mean, square = variable.moments
    assert abs(x.mean() - mean) <= 5 * x.std() / np.sqrt(COUNT)
    assert abs((x**2).mean() - square) <= 5 * (x**2).std() / np.sqrt(COUNT)


def test_limits_are_those_of_the_worst_case():
    assert Normal(2.0, 0.6).limits == (-0.6, 0.6) == Uniform(0.0, 0.6).limits
    assert Normal(2.0, 0.6, folded=True).limits == (0.0, 0.6)
    assert (Normal(2.0, 0.6, folded=True).draw(np.random.default_rng(1), 100) >= 2.0).all()
    low, high = np.quantile(Free(1.0, 3.0).draw(np.random.default_rng(1), COUNT), [0, 1])
    assert 1.0 <= low < 1.001 and 2.999 < high <= 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normal(0.0, -1.0), "tolerance of at least 0"),
        (lambda: Normal(np.nan, 1.0), "finite nominal"),
        (lambda: Normal(0.0, 1.0, sigmas=0.0), "`sigmas` of a Normal is positive"),
        (lambda: Uniform(0.0, np.inf), "tolerance of at least 0"),
        (lambda: Free(2.0, 1.0), "the first below the second"),
    ],
)
def test_invalid_variables_are_refused(make, message):
    with pytest.raises(BiellaError, match=message):
        make()
