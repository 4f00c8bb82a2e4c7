"""Load cell, accelerometer and probes: what each feels, recovered from its output."""

from __future__ import annotations

import math
from typing import Any, cast

import fmpy
import numpy as np
import pytest
import scipy.optimize
from scipy.spatial.transform import Rotation

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    Accelerometer,
    Constant,
    Encoder,
    Gyroscope,
    Instrument,
    LoadCell,
    ProximityPair,
    Sine,
    TorqueMeter,
)
from biella.blocks.multibody import Joint, System
from biella.blocks.sensors import presets

pytestmark = pytest.mark.engine


# Load cell and torque meter


def test_crosstalk_is_recovered_from_single_loads(measure: Any) -> None:
    crosstalk = np.random.default_rng(1).uniform(-0.03, 0.03, (6, 6))
    scale = np.array([1e-3, 1e-3, 5e-4, 0.1, 0.1, 0.2])
    cell = LoadCell(Instrument(gain=scale, unit="V"), 3, 3, crosstalk=crosstalk)
    loads = np.eye(6) * [500, 500, 1000, 20, 20, 10]
    y = measure(cell, force=loads[:, :3], torque=loads[:, 3:])["y"]
    found = (y / scale).T / np.diag(loads)
    assert found == pytest.approx(np.eye(6) + crosstalk, abs=1e-12)
    # and loads from what the cell gives
    load = np.array([120.0, -30.0, 700.0, 1.0, -2.0, 3.0])
    y = measure(cell, force=[load[:3]] * 2, torque=[load[3:]] * 2)["y"][0]
    assert np.linalg.solve(np.eye(6) + crosstalk, y / scale) == pytest.approx(load)


def test_ports_are_there_for_what_a_cell_measures() -> None:
    assert [port.name for port in LoadCell().inputs] == ["force", "dropout", "stuck"]
    assert LoadCell(None, 0, 2).inputs[0].name == "torque"


# Accelerometer


def random_motion(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, 3)) * 20, Rotation.from_quat(rng.normal(size=(n, 4)))


def euler_parameters(rotation: Rotation) -> Any:
    return np.roll(rotation.as_quat(), 1, axis=-1)  # scipy has the scalar last


def test_specific_force_in_axes_of_the_body(measure: Any) -> None:
    acceleration, rotation = random_motion(50)
    gravity = np.array([0.3, -9.7, 1.0])
    y = measure(
        Accelerometer(gravity=gravity),
        acceleration=acceleration,
        rotation=euler_parameters(rotation),
    )["y"]
    assert y == pytest.approx(rotation.inv().apply(acceleration - gravity), abs=1e-12)


def test_at_rest_it_feels_gravity_upwards(measure: Any) -> None:
    y = measure(Accelerometer(gravity=(0, 0, -9.81)), acceleration=np.zeros((2, 3)))["y"]
    assert y[0].tolist() == [0.0, 0.0, 9.81]


def test_bias_misalignment_and_crosstalk_by_a_tumble_test(measure: Any) -> None:
    """Six positions in gravity give bias and the matrix of axes, as one calibrates it."""
    misalignment, crosstalk = np.array([0.01, -0.02, 0.03]), np.full((3, 3), 0.004)
    bias = np.array([0.1, -0.2, 0.05])
    sensor = Accelerometer(
        Instrument(offset=bias),
        gravity=(0, 0, -9.81),
        misalignment=misalignment,
        crosstalk=crosstalk,
    )
    up = np.concatenate([np.eye(3), -np.eye(3)])  # which way of the body points up
    rotation = Rotation.concatenate([Rotation.align_vectors([[0, 0, 1]], [v])[0] for v in up])
    y = measure(sensor, acceleration=np.zeros((6, 3)), rotation=euler_parameters(rotation))["y"]
    assert y.mean(axis=0) == pytest.approx(bias)
    matrix = (y[:3] - y[3:]).T / (2 * 9.81)
    case = Rotation.from_rotvec(misalignment).as_matrix()
    assert matrix == pytest.approx((np.eye(3) + crosstalk) @ case.T, abs=1e-12)


def allan_deviation(rate: Any, m: int, step: float) -> float:
    """Return the overlapping Allan deviation of columns of samples, at m samples."""
    angle = np.concatenate([np.zeros((1, rate.shape[1])), np.cumsum(rate, axis=0)]) * step
    second = angle[2 * m :] - 2 * angle[m:-m] + angle[: -2 * m]
    return float(np.sqrt(np.mean(second**2) / 2) / (m * step))


def test_allan_deviation_of_a_gyro_at_rest() -> None:
    # White noise falls as 1/√τ, the walk of the bias rises as √τ; they meet at 2.7 s. 16 axes and
    # 3000 s: at 100 s the estimate itself scatters by 3 %.
    step, noise, walk = 0.01, 2e-3, 9e-4
    d = Diagram(step=step)
    instrument = Instrument(noise=noise, random_walk=walk, offset=0.3)
    d.add(Gyroscope(instrument, axes=[[0, 0, 1]] * 16, seed=4), name="gyro")
    d.connect(d.add(Constant(np.zeros(3), unit="rad/s")), "gyro.angular_velocity")
    rate = simulate(d, 3000.0, record=["gyro"])["gyro"]
    for m in (1, 10, 100, 1000, 10_000):
        tau = m * step
        wanted = math.sqrt(noise**2 / (2 * tau) + walk**2 * tau / 3 * (1 + 0.5 / m**2))
        assert allan_deviation(rate, m, step) == pytest.approx(wanted, rel=0.005 + 0.005 * tau**0.5)
    only = [noise / math.sqrt(2 * 0.01), walk * math.sqrt(100.0 / 3)]
    assert allan_deviation(rate, 1, step) == pytest.approx(only[0], rel=0.01)
    assert allan_deviation(rate, 10_000, step) == pytest.approx(only[1], rel=0.06)


def test_gyro_feels_the_rate_of_its_own_axes(measure: Any) -> None:
    # A body that turns about its own axis x, whichever way it points: only that axis feels it.
    turns = Rotation.random(50, random_state=3)
    world = turns.apply([2.0, 0.0, 0.0])
    y = measure(Gyroscope(), angular_velocity=world, rotation=euler_parameters(turns))["y"]
    assert y == pytest.approx(np.tile([2.0, 0.0, 0.0], (50, 1)), abs=1e-12)


def test_one_axis_of_any_length(measure: Any) -> None:
    y = measure(Accelerometer(axes=[3.0, 4.0, 0.0]), acceleration=[[1.0, 2.0, 9.0]] * 2)["y"]
    assert y == pytest.approx(2.2)


def test_on_a_crank_it_feels_what_turns_it() -> None:
    """On an arm turned evenly: rω² toward the pivot, and gravity that goes around."""
    speed, arm = 8.0, 0.3
    s = System("arm", gravity=(0.0, -9.81), planar=True)
    bar = s.body("bar", mass=1.0, inertia=0.1, position=(arm, 0.0))
    s.revolute("pivot", s.ground, bar, at=(0.0, 0.0))
    s.driver("drive", cast(Joint, s["pivot"]), f"{speed}*t")
    d = Diagram(step=1e-3)
    plant = d.add(s.block(outputs=["bar.acceleration", "bar.rotation"]), name="plant")
    sensor = d.add(Accelerometer(gravity=(0, -9.81, 0)), name="sensor")
    d.connect(plant["bar.acceleration"], sensor)
    d.connect(plant["bar.rotation"], sensor["rotation"])
    result = simulate(d, 1.0, record=["sensor"])
    angle = speed * result.t
    expected = [
        -arm * speed**2 + 9.81 * np.sin(angle),
        9.81 * np.cos(angle),
        np.zeros_like(angle),
    ]
    assert result["sensor"] == pytest.approx(np.transpose(expected), abs=1e-6)


# Probes


def orbit(n: int = 400, size: float = 5e-5) -> Any:
    a = 2 * np.pi * np.arange(n) / n
    return size * np.column_stack([np.cos(a) - 0.3, 0.6 * np.sin(a) - 0.4])


def test_probes_at_45_degrees_to_both_sides_of_y(measure: Any) -> None:
    pair = ProximityPair(Instrument(gain=7870.0, unit="V"), gap=1e-3)
    y = measure(pair, position=[[0, 0], [1e-4, 0], [0, 1e-4]])["y"] / 7870.0
    root = 1e-4 / math.sqrt(2)
    # toward a probe the gap closes; along x only the right one, at 45°, closes
    assert 1e-3 - y == pytest.approx(np.array([[0, 0], [root, -root], [root, root]]), abs=1e-15)


def test_orbit_is_recovered(measure: Any) -> None:
    position = orbit()
    pair = ProximityPair(Instrument(gain=7870.0, offset=0.4, unit="V"), gap=8e-4)
    y = measure(pair, position=position)["y"]
    assert pair.orbit(y) == pytest.approx(position, abs=1e-15)
    preset = ProximityPair(presets.PROXIMITY_PROBE, seed=2)
    y = measure(preset, step=1e-5, position=position)["y"]
    # 0.5 % of 2 mm at most, and noise of 5 µV/√Hz over 15.7 kHz: 80 nm
    assert np.abs(preset.orbit(y) - position).max() < 1.5e-5


def test_round_shaft_by_the_geometry_itself(measure: Any) -> None:
    """The gap along a probe's line, from where that line meets the circle, by a root finder."""
    radius, gap, places = 0.01, 1e-3, np.array([0.3, 2.0])
    position = orbit(20, 4e-4)
    y = measure(ProximityPair(None, gap, radius=radius, places=places), position=position)["y"]
    for e, seen in zip(position, y, strict=True):
        for place, value in zip(places, seen, strict=True):
            n = np.array([np.cos(place), np.sin(place)])

            def outside(s: float, n: Any = n, e: Any = e) -> float:
                return float(np.linalg.norm(s * n - e)) - radius

            surface = scipy.optimize.brentq(outside, 0.5 * radius, 2 * radius, xtol=1e-16)
            assert value == pytest.approx(radius + gap - surface, abs=1e-12)


def test_runout_turns_with_the_shaft(measure: Any) -> None:
    points = 72
    runout = 1e-6 * np.random.default_rng(4).normal(size=points)
    angle = 2 * np.pi * np.arange(-points, 3 * points) / points
    pair = ProximityPair(None, places=[0.0, math.pi / 2], runout=runout)
    y = measure(pair, position=np.zeros((len(angle), 2)), angle=angle)["y"]
    back = -np.arange(-points, 3 * points)  # the shaft turns on: what was behind comes
    assert 1e-3 - y[:, 0] == pytest.approx(runout[back % points], abs=1e-12)
    assert 1e-3 - y[:, 1] == pytest.approx(runout[(back + points // 4) % points], abs=1e-12)


def test_runout_is_continuous_where_a_turn_begins(measure: Any) -> None:
    # A hair beyond its place a probe sees the end of the map, which joins its beginning.
    runout = [1e-6, 2e-6, 3e-6, 4e-6]
    pair = ProximityPair(None, places=[math.pi / 4, 3 * math.pi / 4], runout=runout)
    angles = [math.pi / 4, np.nextafter(math.pi / 4, 1.0), np.nextafter(math.pi / 4, 0.0)]
    y = measure(pair, position=np.zeros((3, 2)), angle=np.array(angles))["y"]
    assert y[:, 0] == pytest.approx(1e-3 - 1e-6, abs=1e-15)


def test_faults_of_one_probe(measure: Any) -> None:
    pair = ProximityPair(Instrument(dropout_value=0.0), faults="each")
    y = measure(pair, position=np.zeros((3, 2)), dropout=[[0, 0], [0, 1], [0, 0]])["y"]
    assert y.tolist() == [[1e-3, 1e-3], [1e-3, 0.0], [1e-3, 1e-3]]


# All of them


def test_instruments_leave_in_an_fmu(tmp_path: Any) -> None:
    def diagram() -> Diagram:
        d = Diagram("instruments", step=1e-3)
        torque = d.add(Sine(80.0, 3.0, unit="N.m"), name="torque")
        shaft = d.add(Sine(40.0, 1.0, unit="rad"), name="shaft")
        meter = d.add(TorqueMeter(presets.TORQUE_METER, seed=1), name="meter")
        encoder = d.add(Encoder(**presets.OPTICAL_ENCODER, method="both"), name="encoder")
        d.connect(torque, meter)
        d.connect(shaft, encoder)
        d.output("voltage", meter)
        d.output("speed", encoder["speed"])
        return d

    path = diagram().export_fmu(tmp_path / "instruments.fmu")
    here = simulate(diagram(), 0.5, record=["meter", "encoder.speed"])
    there = fmpy.simulate_fmu(str(path), stop_time=0.5, output_interval=1e-3)
    assert np.array_equal(there["voltage"], here["meter"])
    assert np.array_equal(there["speed"], here["encoder.speed"])


MISTAKES = [
    (lambda: LoadCell(None, 0, 0), "at least one force or torque"),
    (lambda: LoadCell(None, -1), "`forces` is a whole number from 0"),
    (lambda: LoadCell(None, 2, crosstalk=np.eye(3)), r"shape \(3, 3\), but .* it is 2 × 2"),
    (lambda: Accelerometer(axes=[0.0, 0.0, 0.0]), "none of them zero"),
    (lambda: Accelerometer(axes=np.eye(2)), "rows of x, y and z"),
    (lambda: Accelerometer(gravity=9.81), "`gravity` is a vector"),
    (lambda: ProximityPair(gap=0.0), "`gap` .* above 0"),
    (lambda: ProximityPair(radius=-1.0), "`radius` .* above 0"),
    (lambda: ProximityPair(places=[0.0, math.pi]), "not the same"),
    (lambda: ProximityPair(runout=np.eye(2)), "list of heights"),
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        make()
