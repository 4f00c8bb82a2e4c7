"""Cylindrical joints with play: the clearance screw, and loops that close with it."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody.dual import (
    RCCC,
    Dual,
    PlayRCCC,
    about,
    about_x,
    about_z,
    clearance_screw,
    cross,
    dot,
    norm,
    split_zxz,
)
from biella.errors import FormulationError

TWISTS = Dual(np.radians([90.0, 90.0, 90.0, 135.0]))
ANGLES = np.array([0.3, 1.0, 2.0])
LAST_DIGIT = 6e-10


def play(factor=1.0):
    screws = clearance_screw(
        (0.5, 2.0, 4.0), (1.2, 3.0, 0.6), np.multiply(factor, (0.02, 0.01, 0.015)), 1.0
    )
    return PlayRCCC(TWISTS, np.ones(4), screws)


def test_a_clearance_screw_has_the_printed_values():
    line, angle = clearance_screw(0.5, 1.2, 0.03, 1.0)
    assert (angle.real, angle.dual) == pytest.approx((0.033865596, 0.024760068), abs=LAST_DIGIT)
    np.testing.assert_allclose(line.real, (-0.877582562, -0.479425539, 0.0), atol=LAST_DIGIT)
    assert not line.dual.any()


@pytest.mark.parametrize("beta", [0.3, 1.2, 3.0, 5.0])
def test_the_closed_form_is_the_screw_of_the_two_end_centers(beta):
    """V's route: Ê = Ĉ12×ẑ/‖·‖, cos τ̂ = Ĉ12·ẑ/‖Ĉ12‖, Ĉ12 = C1C2 + ε C1×C1C2."""
    xi, gap, h = 0.5, 0.03, 0.8
    low, high = (
        np.array([gap * np.cos(a), gap * np.sin(a), z])
        for a, z in ((xi + beta / 2, -h / 2), (xi - beta / 2, h / 2))
    )
    pin, z = Dual(high - low, np.cross(low, high - low)), Dual((0, 0, 1.0))
    across = cross(pin, z)
    sine, cosine = norm(across) / norm(pin), dot(pin, z) / norm(pin)
    line, angle = clearance_screw(xi, beta, gap, h)
    for found, expected in (
        (line, across / norm(across)), (np.sin(angle), sine), (np.cos(angle), cosine)
    ):  # fmt: skip
        np.testing.assert_allclose(found.real, expected.real, atol=1e-15)
        np.testing.assert_allclose(found.dual, expected.dual, atol=1e-14)
    moved = (about(line, angle) @ (pin / norm(pin))[..., None])[..., 0]
    np.testing.assert_allclose(moved.real, (0, 0, 1), atol=1e-15)
    np.testing.assert_allclose(moved.dual, 0, atol=1e-15)


def test_contact_along_a_line_and_crossed_contact():
    _, along = clearance_screw(0.5, 0.0, 0.03, 1.0)
    assert (float(along.real), float(along.dual)) == (0.0, 0.03)
    _, crossed = clearance_screw(0.5, np.pi, 0.03, 1.0)
    assert (crossed.real, crossed.dual) == pytest.approx((np.arctan(0.06), 0.0), abs=1e-17)


def test_a_cardan_joint_with_play_has_the_printed_values():
    mechanism = play()
    found = mechanism.coordinates(ANGLES)
    wrapped = np.remainder(found.real[:, 1:], 2 * np.pi)
    expected = np.remainder(
        [
            (-1.285799911, 0.800307696, 5.101111833),
            (-0.861197520, 1.149942415, 5.850241351),
            (-0.819966295, 1.840858232, 0.311506516),
        ],
        2 * np.pi,
    )
    np.testing.assert_allclose(wrapped, expected, rtol=0, atol=LAST_DIGIT)
    slides = [
        (-0.053521364, -0.028100006, -0.063827225),
        (-0.026943307, -0.037411953, -0.042144491),
        (0.000053094, -0.037926873, -0.037346949),
    ]
    np.testing.assert_allclose(found.dual[:, 1:], slides, rtol=0, atol=LAST_DIGIT)
    np.testing.assert_allclose(found.real[:, 0], ANGLES, atol=1e-15)
    np.testing.assert_allclose(found.dual[:, 0], 0.0, atol=1e-15)
    assert mechanism.residual(found) < 1e-14


def test_without_play_it_is_the_ideal_mechanism():
    ideal = RCCC(TWISTS).motion(ANGLES, 1.5)
    found, rates = play(0.0).motion(ANGLES, 1.5)
    turns = (found.real - ideal.coordinates.real) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-15)
    np.testing.assert_allclose(found.dual, 0.0, atol=1e-14)
    np.testing.assert_allclose(rates.real, ideal.rates.real, atol=1e-14)


def test_velocities_are_differences_of_coordinates():
    mechanism, h = play(), 1e-5
    _, rates = mechanism.motion(ANGLES, 2.0)
    after, before = (mechanism.coordinates(ANGLES + 2.0 * t) for t in (h, -h))
    np.testing.assert_allclose((after.real - before.real) / (2 * h), rates.real, atol=2e-9)
    np.testing.assert_allclose((after.dual - before.dual) / (2 * h), rates.dual, atol=2e-9)


def test_a_displacement_is_split_into_three_helical_motions():
    parts = Dual((0.4, 1.3, -2.0), (0.1, -0.2, 0.3))
    made = about_z(parts[0]) @ about_x(parts[1]) @ about_z(parts[2])
    found = split_zxz(made)
    np.testing.assert_allclose(found.real, parts.real, atol=1e-15)
    np.testing.assert_allclose(found.dual, parts.dual, atol=1e-15)
    with pytest.raises(FormulationError, match="parallel"):
        split_zxz(about_z(0.3))


def test_impossible_play_is_refused():
    with pytest.raises(DiagramError, match="clearance is at least 0"):
        clearance_screw(0.1, 0.2, -0.01, 1.0)
    with pytest.raises(DiagramError, match="length of a pin"):
        clearance_screw(0.1, 0.2, 0.01, 0.0)
