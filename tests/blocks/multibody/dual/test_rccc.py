"""Closure, velocities and accelerations against printed values, and against themselves."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody.dual import RCCC, Dual
from biella.errors import FormulationError

TWISTS = Dual(np.radians([88.0, 91.5, 90.7, 30.0]), [0.02, -0.015, 0.01, 0.03])
"""A general mechanism; values to nine digits from a 4×4 homogeneous closure by Newton."""
CLOSURE = {
    (0.4, 1): (
        (1.327407374, 1.125721347, 1.090289550), (-0.022102782, -0.046588566, -0.000430464)
    ),
    (1.1, 1): (
        (1.081321588, 1.372664561, 0.402294073), (-0.037706689, -0.030401879, -0.001985004)
    ),
    (2.5, 1): (
        (1.231812643, 2.015744875, 5.413594795), (-0.037008394, 0.003383524, 0.023529121)
    ),
    (1.1, -1): (
        (-2.024849014, -1.372664561, -2.680996686), (-0.021519866, 0.030401879, -0.027473374)
    ),
}  # fmt: skip
LAST_DIGIT = 6e-10


def turn(angles):
    return np.remainder(angles, 2 * np.pi)


@pytest.mark.parametrize(("angle", "branch"), CLOSURE)
def test_the_closure_has_the_printed_values(angle, branch):
    made = RCCC(TWISTS, branch=branch).motion(angle)
    angles, slides = CLOSURE[angle, branch]
    np.testing.assert_allclose(turn(made.coordinates.real[1:]), turn(angles), atol=LAST_DIGIT)
    np.testing.assert_allclose(made.coordinates.dual[1:], slides, rtol=0, atol=LAST_DIGIT)
    assert made.residual < 1e-14


def test_velocities_and_accelerations_have_the_printed_values():
    made = RCCC(TWISTS).motion(1.1, 2.0, 3.0)
    for found, expected in (
        (made.rates.real, (2.0, -0.399479925, 0.908816329, -1.799420057)),
        (made.rates.dual, (0.0, -0.021175346, 0.053159381, 0.023685076)),
        (made.accelerations.real, (3.0, 1.163051262, 2.122519637, -1.987877619)),
        (made.accelerations.dual, (0.0, 0.064467424, 0.088330629, 0.152186419)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=LAST_DIGIT)


def test_velocities_agree_with_the_formulas_of_the_source():
    """[V 6.24, 6.25 corrected, 6.26], real and dual parts."""
    made = RCCC(TWISTS).motion(np.linspace(0.1, 3.0, 7), 2.0)
    a1, a2, a3 = (TWISTS[k] for k in range(3))
    t2, t3 = made.coordinates[:, 1], made.coordinates[:, 2]
    sin, cos, v1 = np.sin, np.cos, made.rates[:, 0]
    v2 = -v1 * ((cos(a1) * sin(a2) + sin(a1) * cos(a2) * cos(t2)) * sin(t3)
                + sin(a1) * sin(t2) * cos(t3)) / (sin(a2) * sin(t3))  # fmt: skip
    v3 = v1 * sin(a1) * ((sin(a2) * cos(a3) + cos(a2) * sin(a3) * cos(t3)) * sin(t2)
                         + sin(a3) * sin(t3) * cos(t2)) / (sin(a2) * sin(a3) * sin(t3))  # fmt: skip
    v4 = -v1 * sin(a1) * sin(t2) / (sin(a3) * sin(t3))
    for k, expected in enumerate((v2, v3, v4), 1):
        np.testing.assert_allclose(made.rates.real[:, k], expected.real, rtol=1e-12)
        np.testing.assert_allclose(made.rates.dual[:, k], expected.dual, rtol=1e-11, atol=1e-14)


def test_rates_are_differences_of_coordinates():
    """Central differences at h = 1e-5: errors of h² and of rounding/h, below 1e-9."""
    mechanism, h = RCCC(TWISTS, offset=0.04), 1e-5
    at = mechanism.motion(1.1, 2.0, 3.0)
    after, before = (mechanism.motion(1.1 + 2.0 * t + 1.5 * t * t, 2.0 + 3.0 * t) for t in (h, -h))
    for part in ("real", "dual"):
        for of, rate in (("coordinates", "rates"), ("rates", "accelerations")):
            difference = getattr(getattr(after, of), part) - getattr(getattr(before, of), part)
            found = getattr(getattr(at, rate), part)
            np.testing.assert_allclose(difference / (2 * h), found, atol=2e-9)
    assert at.residual < 1e-14
    assert at.coordinates.dual[0] == 0.04


def test_a_cardan_joint_has_its_closed_form():
    """θ̇4 = ω1 cos δ / (1 - sin² δ cos² θ1), nothing slides; θ4 as printed."""
    angle, omega = np.array([0.3, 1.0, 2.0]), np.pi / 2
    made = RCCC.cardan(np.radians(135.0)).motion(angle, omega)
    np.testing.assert_allclose(
        turn(made.coordinates.real[:, 3]), (5.124772159, 5.856986711, 0.312976677), atol=LAST_DIGIT
    )
    closed = omega * np.sqrt(0.5) / (1 - 0.5 * np.cos(angle) ** 2)
    np.testing.assert_allclose(made.rates.real[:, 3], closed, rtol=1e-14)
    np.testing.assert_allclose(closed, (2.043020049, 1.300553855, 1.216014313), atol=LAST_DIGIT)
    assert not made.coordinates.dual.any() and not made.rates.dual.any()


@pytest.mark.parametrize("branch", [1, -1])
@pytest.mark.parametrize("angle", [0.5 * np.pi, -0.5 * np.pi])
def test_a_cardan_joint_closes_where_the_quotient_is_zero_by_zero(branch, angle):
    """F = E and D = ±√(D² + E² - F²) at θ1 = ±90°, where [V 6.14] has no value."""
    near = RCCC.cardan(0.4, length_errors=0.01, branch=branch).motion(angle + 1e-7)
    made = RCCC.cardan(0.4, length_errors=0.01, branch=branch).motion(angle)
    assert made.residual < 1e-14
    moved = turn(made.coordinates.real - near.coordinates.real + 1) - 1
    np.testing.assert_allclose(moved, 0.0, atol=2e-7)
    np.testing.assert_allclose(made.coordinates.dual, near.coordinates.dual, atol=1e-7)


SENSITIVITIES = {
    3: (-0.696702885, -1.082085882, -0.413412452, -0.376430176),
    1: (-0.266176330, -0.413412452, -1.082085882, -0.985286670),
    2: (0.765150265, 0.0, 0.0, 0.413412452),
}


@pytest.mark.parametrize("joint", SENSITIVITIES)
def test_a_dual_evaluation_gives_sensitivities_to_angles(joint):
    """Transference: ∂s_j/∂a_k = ∂θ_j/∂α_k where a = 0 and s1 = 0."""
    found, differences, h = [], [], 1e-6
    for k in range(4):
        one = np.eye(4)[k]
        unit = RCCC.cardan(np.radians(135.0), length_errors=one)
        found.append(unit.coordinates(1.0).dual[joint])
        after, before = (
            RCCC.cardan(np.radians(135.0), angle_errors=sign * h * one).coordinates(1.0).real[joint]
            for sign in (1, -1)
        )
        differences.append((after - before) / (2 * h))
    np.testing.assert_allclose(found, SENSITIVITIES[joint], rtol=0, atol=LAST_DIGIT)
    np.testing.assert_allclose(differences, found, atol=1e-9)


def test_sets_of_links_and_angles_broadcast():
    sets = Dual(TWISTS.real + np.linspace(0, 0.02, 5)[:, None, None], TWISTS.dual)
    angles = np.linspace(0.2, 3.0, 7)
    found = RCCC(sets).motion(angles, 1.0)
    assert found.rates.shape == (5, 7, 4)
    one = RCCC(Dual(sets.real[3, 0], TWISTS.dual)).motion(angles[4], 1.0)
    np.testing.assert_allclose(found.rates.dual[3, 4], one.rates.dual, rtol=1e-12)


def test_impossible_mechanisms_are_refused():
    with pytest.raises(DiagramError, match="four links"):
        RCCC([0.1, 0.2])
    with pytest.raises(DiagramError, match="branch"):
        RCCC(TWISTS, branch=0)
    with pytest.raises(FormulationError, match=r"cannot be assembled at θ1 = 0\.5 rad"):
        RCCC(np.radians([10.0, 10.0, 10.0, 120.0])).motion([0.5, 1.0])
    with pytest.raises(FormulationError, match="singular pose"):
        RCCC.cardan(np.radians(90.0)).motion(1e-10)
