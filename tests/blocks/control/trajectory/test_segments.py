"""Segments of a motion: laws of motion in closed form, and bounds that are kept."""

import numpy as np
import pytest

from biella.blocks.control.trajectory import _segments as segments

PEAKS = {  # of the acceleration, over length 1 by lift 1
    "cycloidal": 2 * np.pi,
    "modified sine": 4 * np.pi**2 / (4 + np.pi),
    "modified trapezoid": 8 * np.pi / (2 + np.pi),
    "3-4-5": 10 / np.sqrt(3),
    "4-5-6-7": 84 * np.sqrt(5) / 25,
}


def follow(rows, x):
    """Return position, velocity, acceleration and jerk at x, as trajectory.c computes them."""
    row = rows[max(np.searchsorted(rows[:, 0], x, side="right") - 1, 0)]
    begin, length, powers, (amplitude, w, phase) = row[0], row[1], row[2:10], row[10:]
    s, poly, found = (x - begin) / length, np.polynomial.Polynomial(powers), []
    for order in range(4):
        wave = amplitude * w**order * np.sin(w * s + phase + order * np.pi / 2)
        found.append((poly.deriv(order)(s) + wave) / length**order)
    return found


def sample(rows, count=4001):
    end = rows[-1, 0] + rows[-1, 1]
    return np.array([follow(rows, x) for x in np.linspace(0, end, count)]), end


def check_ends(rows, distance, scale=1.0):
    moved, _ = sample(rows)
    assert moved[0, :2] == pytest.approx([0, 0], abs=1e-12 * scale)
    assert moved[-1, :2] == pytest.approx([distance, 0], abs=1e-10 * scale)
    joints = rows[1:, 0]
    for x in joints:  # position and velocity do not jump
        before, after = follow(rows, np.nextafter(x, 0)), follow(rows, x)
        assert before[:2] == pytest.approx(after[:2], abs=1e-10 * scale)


def test_every_law_has_its_known_peak():
    assert set(PEAKS) == set(segments.LAWS)


@pytest.mark.parametrize("law", PEAKS)
def test_a_law_goes_from_rest_to_rest_and_is_antisymmetric(law):
    rows = segments.LAWS[law]()
    check_ends(rows, 1.0)
    moved, end = sample(rows)
    assert end == pytest.approx(1.0)
    assert moved[:, 0] + moved[::-1, 0] == pytest.approx(np.ones(len(moved)), abs=1e-10)
    assert np.abs(moved[:, 2]).max() == pytest.approx(PEAKS[law], rel=1e-6)
    assert moved[[0, -1], 2] == pytest.approx([0, 0], abs=1e-10)  # acceleration at the ends


def test_stretching_scales_every_derivative():
    rows = segments.LAWS["modified sine"]()
    made = segments.stretch(rows, 4.0, -3.0, begin=2.0, base=7.0)
    for x in (0.05, 0.3, 0.9):
        base = np.array(follow(rows, x)) * -3.0 / 4.0 ** np.arange(4)
        assert follow(made, 2.0 + 4.0 * x) == pytest.approx(base + np.array([7.0, 0, 0, 0]))
    assert rows[0, 0] == 0.0  # the given rows are not changed


@pytest.mark.parametrize("distance", [10.0, -10.0, 0.5])
def test_a_trapezoid_is_the_fastest_within_its_bounds(distance):
    velocity, rising, falling = 2.0, 4.0, 1.0
    rows = segments.make_trapezoid(distance, velocity, rising, falling)
    check_ends(rows, distance)
    moved, end = sample(rows)
    assert np.abs(moved[:, 1]).max() <= velocity * (1 + 1e-12)
    ramps = 1 / rising + 1 / falling
    full = abs(distance) >= velocity**2 / 2 * ramps
    fastest = (
        abs(distance) / velocity + velocity / 2 * ramps
        if full
        else np.sqrt(2 * abs(distance) * ramps)
    )
    assert end == pytest.approx(fastest)
    assert len(rows) == (3 if full else 2)


@pytest.mark.parametrize(
    ("distance", "duration", "pieces"),
    [
        (20.0, 20 / 4 + 4 / 4 + 4 / 8, 7),  # all bounds reached: d/v + v/a + a/j
        (-20.0, 20 / 4 + 4 / 4 + 4 / 8, 7),
        # The velocity's is not: ramps of 1/2 s and holds of h, with 4 (1/2 + h) (1 + h) = d.
        (4.0, 2 * (1 + (np.sqrt(1.5**2 + 2) - 1.5) / 2), 6),
        (0.01, 4 * np.cbrt(0.01 / (2 * 8)), 4),  # only the jerk's: four ramps
    ],
)
def test_an_s_curve_keeps_its_bounds(distance, duration, pieces):
    velocity, acceleration, jerk = 4.0, 4.0, 8.0
    rows = segments.make_s_curve(distance, velocity, acceleration, jerk)
    check_ends(rows, distance)
    moved, end = sample(rows)
    for order, bound in ((1, velocity), (2, acceleration), (3, jerk)):
        assert np.abs(moved[:, order]).max() <= bound * (1 + 1e-9)
    assert len(rows) == pieces and end == pytest.approx(duration)
    assert np.allclose(np.abs(moved[:-1, 3])[np.abs(moved[:-1, 3]) > 1e-9], jerk)


def test_pieces_without_a_length_are_left_out():
    rows = segments.integrate([segments.Push(0.0, start=5.0), segments.Push(2.0, start=3.0)])
    assert len(rows) == 1
    assert follow(rows, 2.0)[:3] == pytest.approx([6.0, 6.0, 3.0])
