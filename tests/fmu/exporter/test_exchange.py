"""FMUs for model exchange: the same motion as co-simulation, whoever integrates it.

References: closed forms, and the engine's own run at a tolerance of 1e-10.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import Diagram, System, simulate
from biella.blocks import Backlash, Gain, Integrator, RateLimiter
from biella.blocks.multibody.mechanisms import slider_crank
from biella.errors import BiellaError, DiagramError
from biella.fmu import Fmu
from biella.scheduler.engine.build import find_system_compiler

from .conftest import EXAMPLES, load
from .exchange_models import (
    CLOSED,
    MODELS,
    make_crank,
    make_driven,
    make_sampled,
    make_stopping,
    make_van_der_pol,
)

pytestmark = pytest.mark.engine

VERSIONS = ("2.0", "3.0")
UNTIL, INTERVAL = 2.0, 0.02
_SANITIZERS = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Export a diagram for both kinds, once for each version."""
    written: dict[tuple[str, str, str], Path] = {}
    folder = tmp_path_factory.mktemp("exchange")

    def export(diagram: Diagram, version: str = "2.0", kind: str = "both") -> Path:
        key = (diagram.name, version, kind)
        if key not in written:
            path = folder / f"{'_'.join(key)}.fmu"
            written[key] = diagram.export_fmu(path, version=version, kind=kind)
        return written[key]

    return export


def run(path: Path, kind: str, **options: Any) -> dict[str, np.ndarray]:
    """Simulate with FMPy; of several rows at one time the last, which is after the event."""
    settings = {"stop_time": UNTIL, "output_interval": INTERVAL, "relative_tolerance": 1e-8}
    rows = fmpy.simulate_fmu(str(path), fmi_type=kind, **{**settings, **options})
    last = {round(float(t) / INTERVAL, 6): n for n, t in enumerate(rows["time"])}
    chosen = [n for place, n in last.items() if place == round(place)]
    return {name: np.asarray(rows[name][chosen].tolist()) for name in rows.dtype.names}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_fmpy_finds_nothing_wrong(write: Write, name: str, version: str) -> None:
    assert validate_fmu(str(write(MODELS[name](), version))) == []
    assert validate_fmu(str(write(MODELS[name](), version, "me"))) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CLOSED)
def test_events_of_cvode_agree_with_closed_forms(write: Write, name: str, version: str) -> None:
    """The solver's error is 1e-8 of each step; a rebound amplifies it by less than ten."""
    found = run(write(MODELS[name](), version), "ModelExchange")
    signal, solution = CLOSED[name]
    expected = [solution(t) for t in found["time"]]
    assert len(found["time"]) == round(UNTIL / INTERVAL) + 1
    np.testing.assert_allclose(found[signal], expected, atol=2e-6 * max(expected))


# Co-simulation runs at steps of 1e-2 s or 1e-3 s with rk4, the delay interpolates between samples
# 1e-2 s apart, and the mechanism amplifies the error of each step of CVode by about 1e4.
TOLERANCES = {"delay": 1e-5, "crank": 1e-3}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_model_exchange_agrees_with_co_simulation(write: Write, name: str, version: str) -> None:
    path = write(MODELS[name](), version)
    exchanged, stepped = run(path, "ModelExchange"), run(path, "CoSimulation")
    assert exchanged.keys() == stepped.keys()
    np.testing.assert_allclose(exchanged["time"], stepped["time"], atol=1e-12)
    for signal in exchanged:
        tolerance = TOLERANCES.get(name, 2e-6)
        np.testing.assert_allclose(exchanged[signal], stepped[signal], atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", ["van der pol", "limits", "loop", "pulse"])
def test_model_exchange_agrees_with_simulate(write: Write, name: str) -> None:
    """Against the engine's own solver under error control, at 1e-11."""
    found = run(write(MODELS[name]()), "ModelExchange", relative_tolerance=1e-10)
    own = simulate(MODELS[name](), UNTIL, step=INTERVAL, solver="dopri5", tolerance=1e-11)
    np.testing.assert_allclose(found["x"], own["x"], atol=2e-7)


def test_a_smaller_tolerance_brings_the_mechanism_nearer(write: Write) -> None:
    own = simulate(make_crank(), UNTIL, step=INTERVAL, solver="dopri5", tolerance=1e-11)
    errors = []
    for tolerance in (1e-6, 1e-8, 1e-10):
        found = run(write(make_crank()), "ModelExchange", relative_tolerance=tolerance)
        errors.append(np.abs(found["main_angle"] - own["main_angle"]).max())
        assert found["closure"].max() < 1e-3
    assert errors[2] < 1e-5
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drifting_mechanism_is_closed_by_events(write: Write, version: str) -> None:
    """Forward Euler opens the loop by itself; an event after a step closes it again."""
    path = write(make_crank(), version)
    options = {"solver": "Euler", "step_size": 1e-3, "record_events": True}
    found = run(path, "ModelExchange", **options)
    assert found["closure"].max() < 1e-3  # of a crank of 0.3 m: the drift that is allowed
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="ModelExchange", stop_time=UNTIL, output_interval=INTERVAL, **options
    )
    assert len(rows) > UNTIL / INTERVAL + 1, "there was no event"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stop_block_terminates_the_simulation(write: Write, version: str) -> None:
    rows = fmpy.simulate_fmu(
        str(write(make_stopping(), version)),
        fmi_type="ModelExchange",
        stop_time=UNTIL,
        output_interval=INTERVAL,
    )
    # x > 0.7531 is judged at ticks: first at 0.754 s.
    assert rows["time"][-1] == pytest.approx(0.754, abs=1e-12)


def test_ticks_are_time_events_only_where_something_hits(write: Write) -> None:
    """Of the sampled controller every 50th tick is one, of continuous diagrams none is."""

    def list_events(path: Path) -> list[float]:
        rows = fmpy.simulate_fmu(
            str(path), fmi_type="ModelExchange", stop_time=0.5, output_interval=0.1
        )
        times = [float(t) for t in rows["time"]]
        return [a for a, b in itertools.pairwise(times) if a == b]

    np.testing.assert_allclose(list_events(write(make_sampled())), 0.05 * np.arange(1, 11))
    assert list_events(write(make_van_der_pol())) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_inputs_in_steps_and_jumps(write: Write, version: str) -> None:
    """Of x' = u² - x y, y' = 3·[u > 1] - 2 y + b, the second has a closed form."""
    signals = np.array(
        [(0.0, 0.5, False), (0.7, 0.5, False), (0.7, 1.5, True), (2.0, 1.5, True)],
        dtype=[("time", "f8"), ("u", "f8"), ("on", "?")],
    )
    path = write(make_driven(), version)
    found = run(path, "ModelExchange", input=signals, output=["states.y.x", "x_out"])
    times = found["time"]
    before = 0.25 * np.exp(-2.0 * np.minimum(times, 0.7))
    since = np.maximum(times - 0.7, 0.0)
    expected = 2.0 + (before - 2.0) * np.exp(-2.0 * since)
    np.testing.assert_allclose(
        found["states.y.x"], np.where(times <= 0.7, before, expected), atol=1e-6
    )


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = find_system_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("driver") / "exchange_driver"
    source = Path(__file__).with_name("exchange_driver.c")
    command = [*compiler.command, "-std=gnu11", "-Wall", "-Werror", str(source), "-ldl", "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=300)
    return program


@pytest.mark.parametrize("name", ["ball", "relay", "step", "machine", "chain"])
def test_a_driver_in_c_with_its_own_solver(
    write: Write, driver: Path, tmp_path: Path, name: str
) -> None:
    """Runge–Kutta at 1e-3 s and bisection, no Python: as exact as the closed form allows."""
    path = write(MODELS[name](), kind="me")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    description = fmpy.read_model_description(str(path))
    signal, solution = CLOSED[name]
    reference = next(v.valueReference for v in description.modelVariables if v.name == signal)
    identifier = description.modelExchange.modelIdentifier
    done = subprocess.run(
        [
            str(driver),
            str(tmp_path / "binaries" / "linux64" / f"{identifier}.so"),
            description.guid,
            (tmp_path / "resources").as_uri(),
            str(description.numberOfContinuousStates),
            str(description.numberOfEventIndicators),
            str(UNTIL),
            "1e-3",
            str(reference),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        # Nothing of this process's environment but what a library under sanitizers needs.
        env={name: os.environ[name] for name in _SANITIZERS if name in os.environ},
    )
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.splitlines()
    table = np.array([[float(word) for word in row.split()] for row in rows])
    assert table[-1, 0] == pytest.approx(UNTIL, abs=1e-9)
    expected = [solution(t) for t in table[:, 0]]
    np.testing.assert_allclose(table[:, 1], expected, atol=1e-8)
    # Impacts of the ball within 2 s; turns at 0.5, 1.5 s; the step; the thermostat's changes; the
    # three transitions of the chain, at ticks.
    expected_events = {"ball": 3, "relay": 2, "step": 1, "machine": 3, "chain": 3}
    assert int(last.removeprefix("events ")) == expected_events[name]


def make_internal() -> Diagram:
    d = Diagram("internal")
    plant = slider_crank(planar=True).block(["motor.torque"], ["main.speed"], mode="internal")
    d.add(plant, "plant")
    d.output("speed", plant["main.speed"])
    return d


def make_follower(block: Any) -> Diagram:
    d = Diagram("follower")
    x = d.add(Integrator(1.0), "x")
    d.add(block, "slow")
    d.connect(x, block)
    d.connect(block, d.add(Gain(-1.0), "back"))
    d.connect(d.blocks["back"], x)
    d.output("x_out", x)
    return d


def test_blocks_with_a_solver_of_their_own_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DiagramError, match=r"`plant` .* internal solver; .*mode='continuous'"):
        make_internal().export_fmu(tmp_path / "a.fmu", kind="me")
    foreign = make_van_der_pol().export_fmu(tmp_path / "foreign.fmu")
    d = Diagram("host")
    d.add(Fmu(foreign), "slave")
    d.output("x_out", d.blocks["slave"]["x"])
    with pytest.raises(DiagramError, match="`slave`"):
        d.export_fmu(tmp_path / "a.fmu", kind="both")
    assert not (tmp_path / "a.fmu").exists()


@pytest.mark.parametrize("block", [RateLimiter(0.5), Backlash(0.1)])
def test_blocks_that_follow_a_rate_are_refused_unless_sampled(tmp_path: Path, block: Any) -> None:
    with pytest.raises(DiagramError, match=r"`slow` .* rate of change.*give it a period"):
        make_follower(block).export_fmu(tmp_path / "a.fmu", kind="me")


def test_sampled_followers_agree_with_co_simulation(tmp_path: Path) -> None:
    d = Diagram("follower", step=1e-3)
    x = d.add(Integrator(1.0), "x")
    slow = d.add(RateLimiter(0.5), "slow", period=1e-2)
    back = d.add(Gain(-1.0), "back")
    d.connect(x, slow)
    d.connect(slow, back)
    d.connect(back, x)
    d.output("x_out", x)
    path = d.export_fmu(tmp_path / "a.fmu", kind="both")
    exchanged, stepped = run(path, "ModelExchange"), run(path, "CoSimulation")
    np.testing.assert_allclose(exchanged["x_out"], stepped["x_out"], atol=1e-9)


INTERNAL = {
    "05_co_simulation", "07_clearance_fourbar", "08_lubricated_crank_pin", "31_spatial_clearance",
}  # fmt: skip
"""Examples with mechanisms that advance with an internal solver."""
# Relative to the largest state. Sensors of the pendulum count steps of an encoder: another solver
# gets there a tick sooner or later.
DEVIATIONS = {"10_inverted_pendulum": 1e-2}


@pytest.mark.filterwarnings("ignore::biella.BiellaWarning")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_valid_and_agree_with_co_simulation(
    example: Path, version: str, tmp_path: Path
) -> None:
    diagram = load(example)
    path = tmp_path / "a.fmu"
    options = {"kind": "both", "version": version, "sources": False}
    if example.stem in INTERNAL:
        with pytest.raises(DiagramError, match="internal solver"):
            diagram.export_fmu(path, **options)
        return
    diagram.export_fmu(path, **options)
    assert validate_fmu(str(path)) == []
    names = [
        v.name
        for v in fmpy.read_model_description(str(path)).modelVariables
        if v.name.startswith("states.")
    ]
    found = {
        kind: fmpy.simulate_fmu(
            str(path),
            fmi_type=kind,
            stop_time=0.2,
            output_interval=0.01,
            relative_tolerance=1e-8,
            output=names,
        )[-1]
        for kind in ("ModelExchange", "CoSimulation")
    }
    one, other = (np.array([row[name] for name in names]) for row in found.values())
    tolerance = DEVIATIONS.get(example.stem, 1e-3)
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1e-3, abs(other).max()))


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BiellaError, match=r"kind is 'cs' .*, 'me' .*, or 'both', not 'se'"):
        make_driven().export_fmu(tmp_path / "a.fmu", kind="se")
    system: System = slider_crank(planar=True)
    with pytest.raises(BiellaError, match="kind is"):
        system.export_fmu(tmp_path / "a.fmu", kind="se")


def test_events_at_ticks_are_time_events(tmp_path: Path) -> None:
    """A diagram whose events are not located changes its modes at ticks in both kinds."""
    d = Diagram("ticks", step=1e-3, events="tick")
    x = d.add(Integrator(0.0, limits=(-0.3, 0.4)), "x")
    from biella.blocks import Sine

    d.connect(d.add(Sine(amplitude=2.0, frequency=0.5), "source"), x)
    d.output("x_out", x)
    path = d.export_fmu(tmp_path / "a.fmu", kind="both")
    exchanged, stepped = run(path, "ModelExchange"), run(path, "CoSimulation")
    np.testing.assert_allclose(exchanged["x_out"], stepped["x_out"], atol=1e-5)


def test_a_mechanism_alone_for_model_exchange(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = slider_crank(planar=True).export_fmu(
            tmp_path / "crank.fmu", outputs=["main.speed", "closure"], kind="me"
        )
    assert validate_fmu(str(path)) == []
    found = run(path, "ModelExchange")
    assert found["closure"].max() < 1e-3
    names = [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
    assert len(names) == len(set(names))
    assert any(name.startswith("states.mechanism.main.angle") for name in names)


def test_states_have_nominal_values_of_their_magnitude(write: Write) -> None:
    description = fmpy.read_model_description(str(write(make_driven())))
    nominals = {v.name: v.nominal for v in description.modelVariables if v.nominal}
    assert {name: float(value) for name, value in nominals.items()} == {
        "states.x.x": 0.5,
        "states.y.x": 0.25,
    }
    assert math.isclose(float(description.defaultExperiment.tolerance), 1e-6)
