"""Parameters that follow from a block's place in the diagram: seeds, gravity."""

from __future__ import annotations

import hashlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import biella.blocks
from biella import Diagram, DiagramError, Fmu, Subsystem, simulate, sweep
from biella.blocks import (
    ADC,
    DAC,
    Accelerometer,
    Asynchronous,
    Constant,
    Encoder,
    Gain,
    Gyroscope,
    Instrument,
    LoadCell,
    Noise,
    ProximityPair,
    Ramp,
    ScanList,
    Sensor,
    Sum,
    TorqueMeter,
)
from biella.blocks.multibody import Body, System
from biella.blocks.sensors import presets
from biella.scheduler.compile._derived import derive_seed

pytestmark = pytest.mark.engine

NOISY = Instrument(noise=1e-3, random_walk=1e-3)
WITH_SEED: dict[str, Any] = {
    "noise": Noise, "sensor": lambda: Sensor(NOISY), "torque": lambda: TorqueMeter(NOISY),
    "load": lambda: LoadCell(NOISY), "acceleration": lambda: Accelerometer(NOISY),
    "gyro": lambda: Gyroscope(NOISY), "probes": lambda: ProximityPair(NOISY),
    "encoder": lambda: Encoder(64, edge_error=0.2), "adc": lambda: ADC(8, dnl=0.4),
    "scan": lambda: ScanList(1, 1e-3, dnl=0.4), "dac": lambda: DAC(8, dnl=0.4),
}  # fmt: skip


def alone(block: Any, name: str) -> Diagram:
    d = Diagram("alone", step=1e-3)
    added = d.add(block, name=name)
    for port in block.inputs:
        if port.default is None:
            width = port.width if isinstance(port.width, int) else 1
            d.connect(d.add(Constant(np.zeros(width)), name=f"of_{port.name}"), added[port.name])
    return d


@pytest.mark.parametrize("make", WITH_SEED.values(), ids=WITH_SEED)
def test_each_path_has_a_seed_of_its_own(make: Any) -> None:
    seeds = [
        alone(make(), name).compile().instantiate().get(f"{name}.seed") for name in ("a", "b", "a")
    ]
    assert seeds == [derive_seed("a"), derive_seed("b"), derive_seed("a")]
    assert seeds[0] != seeds[1]


def test_no_block_has_a_seed_that_is_not_derived() -> None:
    """A new block with noise joins the list above."""
    with_seed = {
        name
        for name in biella.blocks.__all__
        if inspect.isclass(kind := getattr(biella.blocks, name))
        and "seed" in inspect.signature(kind).parameters
    }
    assert with_seed == {type(make()).__name__ for make in WITH_SEED.values()}


def test_the_seed_is_a_number_for_all_time() -> None:
    # printf meter | sha256sum: the first 8 bytes, little-endian, their upper 53 bits.
    assert derive_seed("meter") == 2747518553507423
    assert 0 <= derive_seed("rig.meter") < 2**53


def two_meters(**more: Any) -> Diagram:
    d = Diagram("two", step=1e-3)
    load = d.add(Constant(0.0, unit="N.m"), name="load")
    for name in ("left", "right"):
        d.connect(load, d.add(TorqueMeter(presets.TORQUE_METER, **more), name=name)["torque"])
        d.add(Noise(**more), name=f"noise_{name}")
    return d


def correlation(result: Any, a: str, b: str) -> float:
    return float(np.corrcoef(result[a], result[b])[0, 1])


def test_two_sensors_have_independent_noise() -> None:
    result = simulate(two_meters(), until=10.0)
    for a, b in (("left.y", "right.y"), ("noise_left", "noise_right"), ("left.y", "noise_left")):
        # The low-pass of 1 kHz leaves neighbors nearly independent: 10⁴ samples, five deviations.
        assert abs(correlation(result, a, b)) < 5 / np.sqrt(1e4)


def test_an_explicit_seed_wins() -> None:
    result = simulate(two_meters(seed=0), until=1.0)
    assert (result["left.y"] == result["right.y"]).all()
    assert (result["noise_left"] == result["noise_right"]).all()


def test_instances_of_a_subsystem_differ_and_a_run_repeats() -> None:
    inner = Diagram("inner")
    inner.output("y", inner.add(Noise(), name="noise"))
    d = Diagram("outer", step=1e-3)
    d.add(Subsystem(inner), name="a")
    d.add(Subsystem(inner), name="b")
    first, again = simulate(d, until=5.0), simulate(d, until=5.0)
    assert abs(correlation(first, "a.noise.y", "b.noise.y")) < 5 / np.sqrt(5e3)
    assert (first["a.noise.y"] == again["a.noise.y"]).all()


def test_asynchronous_models_differ() -> None:
    d = Diagram("outer", step=1e-3)
    d.add(Asynchronous(Noise(width=50), period=1e-3), name="a")
    d.add(Asynchronous(Noise(width=50), period=1e-3), name="b")
    result = simulate(d, until=1.0)
    a, b = (result[f"{name}.y"][2:].ravel() for name in "ab")
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(a.size)


def test_noise_and_random_walk_of_one_sensor_are_independent() -> None:
    """One seed, several streams: noise from a run without a walk, the walk from one without it."""
    streams = {}
    for name, chain in (("noise", Instrument(noise=1.0)), ("walk", Instrument(random_walk=1.0))):
        streams[name] = simulate(alone(Sensor(chain, channels=3), "s"), until=10.0)["s.y"]
    noise, steps = streams["noise"][1:], np.diff(streams["walk"], axis=0)
    together = np.corrcoef(np.hstack([noise, steps]).T) - np.eye(6)
    assert np.abs(together).max() < 5 / np.sqrt(1e4)


def test_the_plan_is_the_same_in_another_process() -> None:
    """Python's own hash() of a text differs from process to process."""
    code = (
        "from tests.scheduler.compile.test_derived import two_meters; import hashlib;"
        "print(hashlib.sha256(two_meters().compile().data).hexdigest())"
    )
    root = Path(__file__).parents[3]
    for salt in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={"PYTHONHASHSEED": salt, "PATH": ""},
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        assert out.stdout.strip() == hashlib.sha256(two_meters().compile().data).hexdigest()


def test_an_exported_fmu_has_the_noise_of_the_diagram(tmp_path: Path) -> None:
    path = two_meters().export_fmu(tmp_path / "two.fmu", outputs=["left.y", "right.y"])
    outer = Diagram("outer", step=1e-3)
    outer.add(Fmu(path, period=1e-3), name="other_path")
    inside, outside = simulate(outer, until=0.1), simulate(two_meters(), until=0.1)
    for name in ("left.y", "right.y"):
        assert (inside[f"other_path.{name}"] == outside[name]).all()


def test_a_sweep_keeps_the_noise_unless_it_sweeps_the_seed() -> None:
    """Cases differ by what is swept alone; a Monte Carlo of the noise sweeps the seed."""

    def last(result: Any) -> float:
        return float(result["left.y"][-1])

    def run(grid: Any) -> Any:
        return sweep(two_meters(), 0.1, grid, last, record=["left.y"], workers=1).array()

    gains = run({"right.gain": [0.1, 0.2]})
    assert gains[0] == gains[1]
    assert len(set(run({"left.seed": [1, 2, 3]}))) == 3


# Gravity of an accelerometer


def box_on_a_table(gravity: Any, planar: bool = False) -> System:
    s = System("table", gravity=gravity, planar=planar)
    s.body("box", mass=1.0, inertia=0.1 if planar else (0.1, 0.1, 0.1))
    at, along = ((0, 0), (1, 0)) if planar else ((0, 0, 0), (1, 0, 0))
    s.prismatic("on", s.ground, cast(Body, s["box"]), at=at, axis=along)
    return s


def reading(s: System, through: Any = None, **options: Any) -> Any:
    d = Diagram("rest", step=1e-3)
    plant = d.add(s.block(outputs=["box.acceleration", "box.rotation"]), name="plant")
    sensor = d.add(Accelerometer(**options), name="sensor")
    out: Any = plant["box.acceleration"]
    if through is not None:
        d.connect(out, d.add(through, name="through"))
        out = d["through"]
    d.connect(out, sensor["acceleration"])
    d.connect(plant["box.rotation"], sensor["rotation"])
    return simulate(d, until=1e-2, record=["sensor"])["sensor"][-1]


@pytest.mark.parametrize(
    ("gravity", "planar", "felt"),
    [
        (None, False, (0, 0, 9.80665)),
        (None, True, (0, 9.80665, 0)),
        ((0.0, 0.0, -1.62), False, (0, 0, 1.62)),
        ((0.0, 0.0, 0.0), False, (0, 0, 0)),
    ],
)
def test_at_rest_it_shows_the_gravity_of_its_mechanism(gravity, planar, felt) -> None:
    assert reading(box_on_a_table(gravity, planar)) == pytest.approx(np.array(felt), abs=1e-12)


def test_gravity_is_found_through_blocks_in_between() -> None:
    felt = reading(box_on_a_table(None, True), Gain(1.0))
    assert felt == pytest.approx(np.array([0, 9.80665, 0]), abs=1e-12)


def test_an_explicit_gravity_wins() -> None:
    felt = reading(box_on_a_table(None), gravity=(0, 0, 0))
    assert felt == pytest.approx(np.zeros(3), abs=1e-12)


def test_in_free_fall_it_shows_nothing() -> None:
    s = System("fall")
    s.body("box", mass=1.0, inertia=(0.1, 0.1, 0.1), free=True)
    assert reading(s) == pytest.approx(np.zeros(3), abs=1e-12)


def test_without_a_mechanism_gravity_is_that_of_the_earth() -> None:
    d = alone(Accelerometer(), "sensor")
    felt = simulate(d, until=1e-2)["sensor.y"][-1]
    assert felt == pytest.approx(np.array([0, 0, 9.80665]), abs=1e-12)


def test_mechanisms_of_different_gravity_are_refused() -> None:
    d = Diagram("mixed", step=1e-3)
    difference = d.add(Sum("+-"), name="difference")
    for n, gravity in enumerate((-9.81, -1.62)):
        s = box_on_a_table((0.0, 0.0, gravity))
        plant = d.add(s.block(outputs=["box.acceleration"]), name=f"plant{n}")
        d.connect(plant, difference[difference.inputs[n].name])
    d.connect(difference, d.add(Accelerometer(), name="sensor")["acceleration"])
    with pytest.raises(DiagramError, match=r"different gravity.*`plant0`.*`plant1`"):
        d.compile()


def test_ramps_are_no_mechanism() -> None:
    d = Diagram("ramp", step=1e-3)
    d.connect(d.add(Ramp(np.ones(3)), name="r"), d.add(Accelerometer(), name="s")["acceleration"])
    assert simulate(d, until=0.1)["s.y"][-1, 2] == pytest.approx(9.80665 + 0.1)
