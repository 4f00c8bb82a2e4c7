"""Lines, twists and wrenches against vector algebra."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody.dual import (
    Dual,
    angle_between,
    axis,
    change_pole,
    cross,
    dot,
    line,
    norm,
    power,
)
from biella.errors import FormulationError

RNG = np.random.default_rng(7)


def test_the_product_of_two_lines_is_their_dual_angle():
    """Lines z and Rx(θ) z at distance s along x: Â·B̂ = cos θ̂, Â×B̂ = sin θ̂ x [V 5.53-5.57]."""
    theta, s = 0.7, 0.3
    a = line((0, 0, 2.0), (0, 0, 5.0))
    b = line((s, 0, -1.0), (0, -np.sin(theta), np.cos(theta)))
    b = line((s, -3 * np.sin(theta), 3 * np.cos(theta)), b.real)
    angle = Dual(theta, s)
    for found, expected in (
        (dot(a, b), np.cos(angle)), (cross(a, b)[..., 0], np.sin(angle)), (norm(a), Dual(1.0)),
        (angle_between(a, b), angle), (angle_between(b, a), Dual(theta, s)),
    ):  # fmt: skip
        assert found.real == pytest.approx(expected.real, abs=1e-15)
        assert found.dual == pytest.approx(expected.dual, abs=1e-15)
    np.testing.assert_allclose(cross(a, b).real[1:], 0, atol=1e-16)


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_parallel_lines_have_a_distance(sense):
    found = angle_between(line((0, 0, 0), (0, 0, 1)), line((3, 4, 9), (0, 0, sense)))
    assert (found.real, found.dual) == pytest.approx((0 if sense > 0 else np.pi, 5.0))


def test_the_axis_of_a_screw_is_found():
    """A rotation of 2 rad/s about a line through P, with 0.6 m/s along it [V 5.33-5.35]."""
    point, direction = np.array([0.2, -0.4, 1.1]), np.array([2.0, 1.0, -2.0]) / 3
    omega = 2.0 * direction
    twist = Dual(omega, np.cross(point, omega) + 0.6 * direction)
    found = axis(twist)
    assert found.pitch == pytest.approx(0.3)
    assert (found.amplitude.real, found.amplitude.dual) == pytest.approx((2.0, 0.6))
    np.testing.assert_allclose(found.line.real, direction, rtol=1e-15)
    np.testing.assert_allclose(found.line.dual, line(point, direction).dual, atol=1e-15)
    np.testing.assert_allclose(found.point, point - point @ direction * direction, atol=1e-15)


def test_power_does_not_depend_on_the_pole():
    wrench, twist = (Dual(RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))) for _ in range(2))
    offset = RNG.normal(size=3)
    moved = power(change_pole(wrench, offset), change_pole(twist, offset))
    np.testing.assert_allclose(moved, power(wrench, twist), rtol=1e-12)
    # A force of 3 N along y at (2, 0, 0) has 6 N m about the origin, and none at its point.
    at_point = change_pole(Dual((0, 3, 0), (0, 0, 6)), (2, 0, 0))
    np.testing.assert_array_equal(at_point.dual, 0)


def test_what_has_no_axis_is_refused():
    with pytest.raises(FormulationError, match="no axis"):
        axis(Dual((0, 0, 0), (1, 0, 0)))
    with pytest.raises(FormulationError, match="direction other than 0"):
        line((1, 2, 3), (0, 0, 0))
    with pytest.raises(DiagramError, match="three components"):
        dot((1, 2), (3, 4))
