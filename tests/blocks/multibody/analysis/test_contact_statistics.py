"""Statistics of contacts, on signals made for it and on runs."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import (
    Bore,
    Cylinder,
    HuntCrossley,
    Socket,
    Sphere,
    System,
    contact_statistics,
)
from biella.scheduler.results._result import Result

RNG = np.random.default_rng(7)


def made(t, *, angle, on_pin=None, force=None, slip=None, contact=None, prefix="plant.pin", **more):
    """A result with the signals of a revolute with clearance; numbers stand for all times."""
    signals = {
        "angle": angle,
        "angle_on_pin": angle if on_pin is None else on_pin,
        "normal_force": 1.0 if force is None else force,
        "slip": 0.0 if slip is None else slip,
        "contact": 1.0 if contact is None else contact,
        **more,
    }
    arrays = {f"{prefix}.{name}": np.zeros_like(t) + value for name, value in signals.items()}
    return Result.from_arrays(t, arrays)


def uneven(count=200_000, end=10.0):
    """Times whose distances differ by up to ten times."""
    gaps = RNG.uniform(0.1, 1.0, count)
    gaps[: count // 2] *= 0.1
    return np.concatenate([[0.0], np.cumsum(gaps)]) * end / gaps.sum()


def test_density_is_that_of_time_whatever_the_samples():
    """φ = π cos ωt lies with 1 / (π √(π² - φ²)); the pin's angle, a ramp, everywhere alike."""
    t = uneven()
    turns = 2 * np.pi * 50 * t / t[-1]
    ramp = (turns + np.pi) % (2 * np.pi) - np.pi
    found = contact_statistics(made(t, angle=np.pi * np.cos(turns), on_pin=ramp), "pin", bins=36)
    edges = found.hole.edges
    wanted = np.diff(np.arcsin(edges / np.pi)) / np.pi / np.diff(edges)
    np.testing.assert_allclose(found.hole.density, wanted, rtol=0.02)
    np.testing.assert_allclose(found.pin.density, 0.5 / np.pi, rtol=0.01)
    for part in (found.hole, found.pin):
        assert (part.density * np.diff(part.edges)).sum() == pytest.approx(1.0, abs=1e-12)
    assert found.contact_share == pytest.approx(1.0)


def test_forces_and_sliding_are_weighed_by_time():
    """Two places: 3 s at 0.5 rad with 10 N, 1 s at -2 rad with 50 N, the rest in flight."""
    t = uneven()
    first, second = t < 3.0, (t >= 5.0) & (t < 6.0)
    result = made(
        t,
        angle=np.where(first, 0.5, -2.0),
        on_pin=1.0,
        force=np.where(first, 10.0, 50.0),
        slip=np.where(first, -0.2, 0.1),
        contact=first | second,
    )
    found = contact_statistics(result, "plant.pin", bins=8)
    at = {value: np.searchsorted(found.hole.edges, value) - 1 for value in (0.5, -2.0)}
    width = np.pi / 4
    assert found.duration == pytest.approx(10.0)
    assert found.contact_time == pytest.approx(4.0, abs=1e-3)
    assert found.hole.density[at[0.5]] * width == pytest.approx(0.75, abs=1e-3)
    assert found.hole.density[at[-2.0]] * width == pytest.approx(0.25, abs=1e-3)
    assert found.hole.mean_force[at[0.5]] == pytest.approx(10.0)
    assert found.hole.mean_force[at[-2.0]] == pytest.approx(50.0)
    assert found.mean_force == pytest.approx(20.0, abs=0.01)
    assert found.largest_force == 50.0
    assert found.sliding_distance == pytest.approx(0.7, abs=1e-3)
    assert found.hole.sliding_work[at[0.5]] == pytest.approx(6.0, abs=1e-2)
    assert found.hole.sliding_work[at[-2.0]] == pytest.approx(5.0, abs=1e-2)
    assert found.sliding_work == pytest.approx(11.0, abs=2e-2)
    assert found.pin.mean_force.max() == pytest.approx(20.0, abs=0.01)
    assert found.hole.probability(-0.1, np.pi / 4) == pytest.approx(0.75, abs=1e-3)
    assert found.hole.probability(np.pi / 2, -np.pi / 2) == pytest.approx(0.25, abs=1e-3)
    assert found.hole.probability(-np.pi, np.pi) == pytest.approx(1.0)
    # Episodes, each ∫ N dt and its largest force.
    assert found.episodes == 2
    np.testing.assert_allclose(found.began, [0.0, 5.0], atol=1e-3)
    np.testing.assert_allclose(found.lasted, [3.0, 1.0], atol=1e-3)
    np.testing.assert_allclose(found.impulses, [30.0, 50.0], atol=0.05)
    np.testing.assert_allclose(found.peaks, [10.0, 50.0])
    later = contact_statistics(result, "pin", start=4.0)
    assert later.episodes == 1 and later.duration == pytest.approx(6.0, abs=1e-3)
    assert later.contact_time == pytest.approx(1.0, abs=1e-3)


def test_what_a_rigid_contact_counts_is_taken_as_counted():
    """Impacts and sliding between samples are in its sums only."""
    t = np.linspace(0.0, 1.0, 11)
    result = made(
        t,
        angle=np.where(t < 0.5, 1.0, -1.0),
        contact=0.0,
        impacts=np.where(t > 0.75, 3.0, np.where(t > 0.25, 1.0, 0.0)),
        impulse=np.where(t > 0.75, 0.5, np.where(t > 0.25, 0.2, 0.0)),
        sliding=0.3 * t,
        sliding_work=2.0 * t,
    )
    found = contact_statistics(result, "pin", bins=2)
    assert found.impacts == 3
    np.testing.assert_allclose(found.impact_times, [0.3, 0.8])
    np.testing.assert_allclose(found.impact_impulses, [0.2, 0.3])
    np.testing.assert_allclose(found.hole.impulse, [0.3, 0.2])
    assert found.sliding_distance == pytest.approx(0.3)
    assert found.sliding_work == pytest.approx(2.0)
    assert (found.contact_share, found.episodes, found.mean_force) == (0.0, 0, 0.0)
    assert "impacts           3, impulses of 0.5 N s" in str(found)
    assert contact_statistics(result, "pin", start=0.5).impacts == 2


@pytest.mark.engine
def test_impulses_of_a_run_are_its_changes_of_momentum():
    """A ball that bounces between two walls: each impact turns its momentum around."""
    s = System("ball", (0, 0), planar=True)
    ball = s.body("ball", mass=0.5, inertia=1e-3, velocity=(0.4, 0.0))
    ends = ball.marker("middle"), s.ground.marker("hole")
    contact = HuntCrossley(stiffness=1e9)
    s.clearance_revolute("pin", *ends, clearance=1e-3, pin_radius=0.01, contact=contact)
    d = Diagram("ball", step=1e-6)
    outputs = ["contact", "normal_force", "angle", "angle_on_pin", "slip"]
    d.add(s.block(outputs=[f"pin.{name}" for name in outputs]), name="plant")
    found = contact_statistics(simulate(d, 0.05), "pin", bins=4)
    whole = found.impulses[found.began + found.lasted < 0.0499]
    assert len(whole) > 5
    np.testing.assert_allclose(whole, 2 * 0.5 * 0.4, rtol=1e-4)
    # Hertz: δ = (5 m v² / 4 K)^0.4, the largest force K δ^1.5.
    depth = (5 * 0.5 * 0.4**2 / (4 * 1e9)) ** 0.4
    np.testing.assert_allclose(found.peaks[: len(whole)], 1e9 * depth**1.5, rtol=1e-3)


def test_roses_are_drawn(tmp_path):
    t = np.linspace(0.0, 1.0, 101)
    found = contact_statistics(made(t, angle=0.3 * np.sin(9 * t), force=5.0), "pin")
    figure = found.plot(tmp_path / "rose.png", title="a pin")
    assert (tmp_path / "rose.png").stat().st_size > 10_000
    names = [axis.get_title() for axis in figure.axes[:2]]
    assert names == ["around the hole", "around the pin"]
    heights = [bar.get_height() for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    np.testing.assert_allclose(heights, found.hole.density)
    # Nothing touched: there is still a picture.
    contact_statistics(made(t, angle=0.0, contact=0.0), "pin").plot(tmp_path / "none.png")


def test_what_has_no_statistics():
    t = np.linspace(0.0, 1.0, 11)
    result = made(t, angle=0.0)
    with pytest.raises(DiagramError, match=r"nothing called `pim`.*plant\.pin"):
        contact_statistics(result, "pim")
    with pytest.raises(DiagramError, match="there are 0 samples"):
        contact_statistics(result, "pin", start=2.0)
    with pytest.raises(DiagramError, match="`bins` is a whole number"):
        contact_statistics(result, "pin", bins=0)
    short = Result.from_arrays(t, {"a.pin.normal_force": t, "a.pin.contact": t})
    with pytest.raises(DiagramError, match=r"also need `pin\.angle`, .*`pin\.slip`: name"):
        contact_statistics(short, "pin")
    two = {f"{plant}.pin.normal_force": t for plant in ("a", "b")}
    with pytest.raises(DiagramError, match="2 contacts called `pin`"):
        contact_statistics(Result.from_arrays(t, two), "pin")


def test_a_crossed_pin_counts_where_it_touches():
    """70 N at one end and 40 N against them at the other: each end has its own bin and work.

    N |slip| t = N r ω t. A contact that settles from 10 % off leaves less than 1e-3 after 20 ms.
    """
    play, radius, length, spin, k = 1e-4, 0.01, 0.04, 50.0, 1e7
    s = System("crossed", (0.0, 0.0, 0.0))
    tilt = 2 * play / length + (70 + 40) / k / length
    turn = (np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0)
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    pin = s.body("body", mass=0.1, inertia=(2e-5, 2e-5, 5e-6), rotation=turn, free=True,
                 angular_velocity=spin * axis)  # fmt: skip
    for name, at, push in (("up", 0.5, 70.0), ("down", -0.5, -40.0)):
        s.force(name, pin.marker(name, (0, 0, at * length)), (push, 0.0, 0.0))
    law = HuntCrossley(stiffness=k, exponent=1.0, damping=100.0)
    bore = Bore(s.ground.marker("bore"), radius + play, 2 * length)
    s.contact("pin", Cylinder(pin.marker("m"), radius, length), bore, law=law)
    names = ["contact", "normal_force", "angle", "angle_on_pin", "slip", "gap"]
    of_places = ["gaps", "normal_forces", "angles", "angles_on_pin", "slips"]
    d = Diagram("crossed", step=1e-5)
    d.add(s.block(outputs=[f"pin.{n}" for n in names + of_places], mode="internal"), name="p")
    result = simulate(d, 0.03)
    places = contact_statistics(result, "pin", bins=9, start=0.02)
    fewer = Result.from_arrays(result.t, {f"p.pin.{n}": result[f"p.pin.{n}"] for n in names})
    lowest = contact_statistics(fewer, "pin", bins=9, start=0.02)
    around = places.hole
    [left, right] = np.searchsorted(around.edges, (-np.pi + 1e-3, 0.0)) - 1
    other = np.searchsorted(around.edges, np.pi - 1e-3) - 1
    assert around.mean_force[right] == pytest.approx(70.0, rel=1e-2)
    assert around.mean_force[[left, other]].max() == pytest.approx(40.0, rel=1e-2)
    assert around.sliding_work[right] == pytest.approx(70 * radius * spin * 0.01, rel=1e-2)
    assert places.sliding_work == pytest.approx(110 * radius * spin * 0.01, rel=1e-2)
    assert around.probability(-0.5, 0.5) == pytest.approx(0.5, abs=1e-3)
    assert places.largest_depth == pytest.approx(70 / k, rel=1e-2)
    # Without the places all is where the gap is smallest.
    assert lowest.hole.probability(-0.5, 0.5) == pytest.approx(1.0)
    assert lowest.mean_force == pytest.approx(places.mean_force) == pytest.approx(110, rel=1e-2)


def test_a_ball_in_a_socket():
    """On a diameter 0.4 rad above x, y it bounces between two places; each turns its momentum.

    The time between impacts is 2 e / v, that of one by Hertz 2.94328 δ / v, δ = (5 m v² / 4 K)^0.4.
    """
    play, speed, mass, k = 1e-3, 0.5, 0.2, 1e9
    way = np.array([np.cos(0.4) * np.cos(1.0), np.cos(0.4) * np.sin(1.0), np.sin(0.4)])
    s = System("ball", (0, 0, 0))
    ball = s.body("ball", mass=mass, inertia=(1e-3,) * 3, velocity=speed * way, free=True)
    s.contact("pin", Sphere(ball.marker("m"), 0.02), Socket(s.ground.marker("m"), 0.02 + play),
              law=HuntCrossley(stiffness=k))  # fmt: skip
    names = ["contact", "normal_force", "angle", "angle_on_pin", "slip", "gap", "elevation",
             "elevation_on_pin"]  # fmt: skip
    d = Diagram("ball", step=1e-6)
    d.add(s.block(outputs=[f"pin.{n}" for n in names], mode="internal"), name="p")
    result = simulate(d, 0.015)
    found = contact_statistics(result, "pin", bins=9)
    depth = (5 * mass * speed**2 / (4 * k)) ** 0.4
    period = 2 * play / speed + 2.94328 * depth / speed
    assert found.episodes == int((0.015 + play / speed) / period)
    assert found.largest_depth == pytest.approx(depth, rel=1e-3)
    np.testing.assert_allclose(found.impulses[:-1], 2 * mass * speed, rtol=1e-3)
    for around in (found.hole, found.pin):
        assert np.count_nonzero(around.density) == 2
        assert around.density[np.searchsorted(around.edges, 1.0) - 1] > 0
        assert around.density[np.searchsorted(around.edges, 1.0 - np.pi) - 1] > 0
    touching = result["p.pin.contact"] > 0.5
    for name in ("elevation", "elevation_on_pin"):
        assert np.abs(result[f"p.pin.{name}"][touching]) == pytest.approx(0.4, abs=1e-9)
