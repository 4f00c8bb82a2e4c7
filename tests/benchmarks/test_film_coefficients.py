"""Coefficients and thresholds of bearings beside published tables, as the validation page has them.

The tolerances are those of the page, which says where they come from.
"""

from __future__ import annotations

import numpy as np
import pytest
from studies.film_coefficients import (
    DAM_COEFFICIENTS,
    LUND_THOMSEN,
    POUND_PER_INCH,
    STEPS,
    find_coefficients,
    measure_lund_thomsen,
    measure_stability,
)

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("case", LUND_THOMSEN)
def test_coefficients_of_lund_and_thomsen(case):
    for (_, n, phi, *theirs), (eccentricity, angle, ours) in zip(
        LUND_THOMSEN[case], measure_lund_thomsen(case), strict=True
    ):
        assert eccentricity == pytest.approx(n, rel=0.05)
        assert angle == pytest.approx(phi, rel=0.05)
        for part in (slice(4), slice(4, None)):
            largest = max(theirs[part])
            np.testing.assert_allclose(ours[part], theirs[part], atol=0.05 * largest)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_thresholds_of_nicholas(step):
    eccentricity, stability = measure_stability(step)
    assert eccentricity == pytest.approx(step.eccentricity, abs=0.02)
    assert stability == pytest.approx(step.stability, rel=0.1)


@pytest.mark.parametrize(("index", "rpm", "stiffness", "damping"), DAM_COEFFICIENTS)
def test_coefficients_of_nicholas(index, rpm, stiffness, damping):
    found = find_coefficients(STEPS[index], rpm)
    for ours, theirs in ((found.stiffness, stiffness), (found.damping, damping)):
        largest = max(map(abs, theirs))
        np.testing.assert_allclose(ours.ravel() / POUND_PER_INCH, theirs, atol=0.1 * largest)
