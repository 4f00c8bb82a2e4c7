"""Bad and critical mechanisms teach: what, which joint, by how much, and what to do next."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import pytest

from biella import BiellaWarning, BlockError, Diagram, DiagramError, System, simulate
from biella.blocks import Ramp, ShortBearing
from biella.blocks.multibody import Body, Input, Joint, Table, mechanisms
from biella.scheduler.engine._engine import DIAGNOSTIC_RUN, Instance

from .quadrangle import quadrangle

pytestmark = pytest.mark.engine

ENERGIES = ["kinetic_energy", "potential_energy"]


def equal_crank(longer: float) -> System:
    """Make a slider-crank of equal lengths, 0.5 m, at 30°; its rod is a little longer."""
    rod, angle = 0.5 * (1.0 + longer), np.pi / 6
    turn = -np.arcsin(0.5 * np.sin(angle) / rod)
    pin = 0.5 * np.array([np.cos(angle), np.sin(angle)])
    wrist = pin + rod * np.array([np.cos(turn), np.sin(turn)])
    s = System("equal lengths", (-9.81, 0), planar=True)
    crank = s.body("crank", mass=1, inertia=0.02, position=pin / 2, rotation=angle)
    bar = s.body("rod", mass=1, inertia=0.02, position=(pin + wrist) / 2, rotation=turn)
    piston = s.body("piston", mass=2, inertia=0.01, position=wrist)
    s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("pin", crank, bar, at=pin)
    s.revolute("wrist", bar, piston, at=wrist)
    s.prismatic("slide", s.ground, piston, at=(0, 0), axis=(1, 0))
    return s


def diagram(system: System, *outputs: str, step: float = 1e-3, **options: Any) -> Diagram:
    d = Diagram("mechanism", step=step)
    d.add(system.block(outputs=list(outputs) or ["closure"], **options), name="plant")
    return d


def energy_range(result: Any) -> float:
    return float(np.ptp(result["plant.kinetic_energy"] + result["plant.potential_energy"]))


# -- assembly


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("coupler", [4.0, 3.25])
def test_a_length_set_before_the_run_says_which_joint_stays_open_and_by_how_much(mode, coupler):
    d = diagram(quadrangle(), mode=mode)
    pattern = rf"cannot be assembled at t = 0 s: `top_b` stays open by {coupler - 3:g} m with"
    with pytest.raises(BlockError, match=pattern):
        simulate(d, 0.1, parameters={"plant.coupler.b.location": [coupler, 0.0]})


@pytest.mark.parametrize("coupler", [4.0, 3.25])
def test_the_description_says_the_same(coupler):
    """Its search lets tree joints give a little: it is good to 1 %."""
    with pytest.raises(DiagramError, match=r"`top_b`.*stays open by .* m with the other") as error:
        quadrangle(coupler).block()
    told = float(str(error.value).partition("open by ")[2].split()[0])
    assert told == pytest.approx(coupler - 3.0, rel=0.01)


def test_a_length_that_closes_far_from_the_given_pose_is_found():
    length = {"plant.coupler.b.location": [2.9, 0.0]}
    with pytest.warns(BiellaWarning, match="`right` is moved by"):
        result = simulate(diagram(quadrangle()), 0.1, parameters=length)
    assert result["plant"].max() < 1e-10


def test_angles_are_reported_in_radians():
    """Two hinges on one door whose axes differ by 0.3 rad: the second stays open by that."""

    def door() -> System:
        s = System("door")
        body = s.body("door", mass=1, inertia=0.1)
        s.revolute("low", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
        tilted = s.ground.marker("high", (0, 0, 1), axis=(np.sin(0.3), 0, np.cos(0.3)))
        s.revolute("high", tilted, body.marker("high", (0, 0, 1), axis=(0, 0, 1)))
        return s

    with pytest.raises(DiagramError, match=r"`high`.*stays open by 0.3 rad with the other"):
        door().block()
    s = door()
    s.body("cart", mass=1, inertia=1)
    # What an input puts somewhere is looked at by the engine alone.
    rail = s.prismatic("rail", s.ground, cast(Body, s["cart"]), at=(0, 0, 0), axis=(1, 0, 0))
    s.driver("drive", rail, Input())
    with pytest.raises(BlockError, match=r"`high` stays open by 0.3 rad with the other"):
        simulate(diagram(s), 0.1)


def test_large_mechanisms_are_reported_too():
    """121 bodies: no model is made in Python. Joint `end30` lacks 1 m of 4."""
    d = diagram(mechanisms.four_bar(60))
    with pytest.raises(BlockError, match=r"`end30` stays open by 1 m with the other"):
        simulate(d, 0.1, parameters={"plant.coupler30.end30.location": [3.5, 0.0]})


def test_names_of_any_script_and_length_are_reported():
    s = quadrangle()
    long = "ß" * 200
    s.fixed("x", s.ground, s.body("plate", mass=1, inertia=1), at=(0, 0))
    coupler, plate = cast(Body, s["coupler"]), cast(Body, s["plate"])
    s.revolute(long, coupler.marker("c", (0.5, 0)), plate.marker("p", (0.5, 1)))
    with pytest.raises(BlockError, match=r"`ß{30,}` stays open by") as error:
        simulate(diagram(s), 0.1, parameters={"plant.plate.p.location": [9.0, 0.0]})
    assert "�" not in str(error.value)


def test_an_old_message_never_shows():
    with Instance(diagram(quadrangle()).compile()) as instance:
        instance.set("plant.coupler.b.location", [4.0, 0.0])
        for _ in range(2):
            with pytest.raises(BlockError) as error:
                instance.initialize()
            assert str(error.value).count("stays open") == 1
        instance.set("plant.coupler.b.location", [1.0, 0.0])
        instance.initialize()
        instance.values[instance.plan.parameters["plant.gravity"].slot] = np.nan
        with pytest.raises(BlockError, match="`gravity` is nan: it must be finite") as error:
            instance.initialize()
        assert "stays open" not in str(error.value)


def test_an_fmu_says_it_to_its_logger(tmp_path, run_fmu):
    path = diagram(quadrangle()).export_fmu(tmp_path / "quadrangle.fmu", outputs=["plant.closure"])
    assert [text for status, text in run_fmu(path) if status in (1, 3, 99)] == []
    told = run_fmu(path, **{"plant.coupler.b.location[0]": 4.0})
    errors = [text for status, text in told if status == 3]
    assert "plant: it cannot be assembled at t = 0 s: `top_b` stays open by 1 m" in errors[0]
    assert told[-1] == (99, "stopped")


# -- steps that cannot be closed, and steps that were too coarse


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("longer", [1e-6, -1e-6])
def test_a_run_that_breaks_next_to_a_singular_position_says_where_and_why(mode, longer):
    pattern = (
        r"the step of 0.002 s to t = [\d.]+ s cannot be closed: `wrist` was open by .* m.*"
        r"`wrist` stays open by .* m.*not resolved, the first to t = 0.4\d* s.*"
        r"next to a singular position.*smaller step"
    )
    with pytest.raises(BlockError, match=pattern):
        simulate(diagram(equal_crank(longer), step=2e-3, mode=mode), 3.0)


@pytest.mark.parametrize(("longer", "coarse", "fine"), [(1e-4, 2e-3, 2e-4), (-1e-4, 1e-3, 1e-4)])
def test_energy_lost_next_to_a_singular_position_is_reported(longer, coarse, fine):
    """With the coarse step several joules of 30 appear or vanish; with the fine one 1e-3 do."""
    paths = [*ENERGIES, "converged", "closure"]
    match = r"not resolved in \d+ steps.*t = [\d.]+ s: `wrist` was open by .* m, and closing it"
    with pytest.warns(BiellaWarning, match=match) as told:
        result = simulate(
            diagram(equal_crank(longer), *paths, step=coarse), 2.0, error_estimate=False
        )
    assert len(told) == 1
    assert energy_range(result) > 1.0
    assert result["plant.closure"].max() < 1e-10
    doubted = result.t[result["plant.converged"] == 0.0]
    worst = float(str(told[0].message).partition("led to t = ")[2].split()[0])
    assert np.abs(doubted - worst).min() < 1e-9
    # The joules come and go in those steps, or in those right beside them.
    jumps = np.abs(np.diff(result["plant.kinetic_energy"] + result["plant.potential_energy"]))
    assert np.abs(doubted - result.t[jumps.argmax()]).min() < 5 * coarse

    result = simulate(diagram(equal_crank(longer), *paths, step=fine), 2.0)
    assert energy_range(result) < 1e-2
    assert result["plant.converged"].min() == 1.0


def test_what_was_seen_belongs_to_the_state():
    plan = diagram(equal_crank(1e-4), "converged", step=2e-3).compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(1000)
        second.restore(first.save())
        texts = []
        for instance in (first, second):
            with pytest.warns(BiellaWarning, match=r"not resolved in \d+ steps") as told:
                instance.warn(DIAGNOSTIC_RUN)
            texts.append(str(told[0].message))
            instance.initialize()
            instance.warn(DIAGNOSTIC_RUN)
    assert texts[0] == texts[1]


def test_an_fmu_warns_of_large_steps_when_it_ends(tmp_path, run_fmu):
    path = diagram(equal_crank(1e-4), step=2e-3).export_fmu(
        tmp_path / "crank.fmu", outputs=["plant.closure"]
    )
    warned = [text for status, text in run_fmu(path) if status == 1]
    assert len(warned) == 1
    assert warned[0].startswith("plant: the motion was not resolved in ")


def test_an_fmu_warns_of_thin_films_when_it_ends(tmp_path, run_fmu):
    """Of a film inside a mechanism, and of one that is a block beside it."""
    size = (0.02, 0.01, 4e-5, 1e-5)
    s = System("rotor", (0.0, -9.81), planar=True)
    disc = s.body("disc", mass=5.0, inertia=0.01)
    s.bearing("film", disc.marker("journal"), s.ground.marker("bush"), ShortBearing(*size))
    d = diagram(s, "film.film", step=1e-3, mode="internal", integrator="implicit")
    beside = d.add(ShortBearing(*size), name="beside")
    d.connect(d.add(Ramp([1e-4, 0.0], unit="m"), name="moved"), beside["position"])
    path = d.export_fmu(tmp_path / "film.fmu", outputs=["plant.film.film"])
    warned = sorted(text for status, text in run_fmu(path) if status == 1)
    assert len(warned) == 2
    assert warned[0].startswith("beside: its film was thinner than its `film_limit`, 4e-07 m, ")
    assert warned[1].startswith("plant: the film of `film` was thinner than its `film_limit`, ")


def test_a_driver_that_jumps_is_no_error_of_the_step():
    """Steps end at the points of the table: between them is a ramp, with an impulse at each end."""
    s = quadrangle()
    s.driver(
        "drive", cast(Joint, s["foot_a"]), Table([0, 0.0502, 0.0503, 1], [1.5, 1.5, 1.52, 1.52])
    )
    with pytest.warns(BiellaWarning, match=r"rate .*`drive` jumps by 200 .* to t = 0\.0502 s"):
        result = simulate(diagram(s, "converged", "foot_a.angle"), 0.1)
    assert result["plant.foot_a.angle"][-1] == pytest.approx(1.52, abs=1e-9)
    assert result["plant.converged"].min() == 1.0


def test_rest_in_a_singular_position_gives_no_warning_of_large_steps():
    """Bars that lie flat, held by a driver: what closing does to rounding is not told of.

    There the coupler and the right bar may turn about `foot_b` together, so that its angle is kept.
    """
    s = quadrangle()
    s.driver("drive", cast(Joint, s["foot_a"]), 0.0)
    d = diagram(s, "converged", initial={"foot_b.angle": 0.0})
    assert simulate(d, 0.1)["plant"].min() == 1.0


# -- iterations


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
def test_iterations_of_an_implicit_step_are_those_of_newton():
    """At 20 ms the first kick of McPherson's tire damper is taken in halves."""
    paths = ["iterations", "residual", "converged"]
    options = {"mode": "internal", "integrator": "implicit"}
    plan = diagram(mechanisms.mcpherson(), *paths, step=2e-2, **options).compile()
    result = simulate(plan, 1.0)
    iterations, converged = result["plant.iterations"], result["plant.converged"]
    assert iterations[0] == 0.0
    assert converged[0] == 1.0
    assert set(np.unique(converged)) == {0.0, 1.0}
    assert iterations[1:].min() >= 2.0
    assert iterations.max() <= 24.0
    assert np.all(result["plant.residual"][1:] < 1e-3)
    # They are those of the last step, wherever it was made: part of the saved state.
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(7)
        second.restore(first.save())
        for path in paths:
            assert second.get(f"plant.{path}") == first.get(f"plant.{path}")
        assert second.get("plant.iterations") == iterations[7]


def test_an_open_chain_has_nothing_to_iterate():
    s = mechanisms.pendulum_on_cart()
    result = simulate(diagram(s, "iterations", "residual", "converged"), 0.1)
    assert not result["plant.iterations"].any()
    assert not result["plant.residual"].any()
    assert result["plant.converged"].all()


# -- velocities at the start


def test_velocities_that_fit_are_not_reported():
    simulate(diagram(quadrangle(spins=(-1, -1, 0))), 0.01)
    for make in (mechanisms.four_bar, mechanisms.rotor, mechanisms.cardan):
        simulate(diagram(make(), step=5e-4), 0.01)


def test_velocities_that_do_not_fit_are_reported_with_joint_and_size():
    """The right bar stands still, so that `top_b` would part at 1 m/s; both feet hold."""
    match = r"velocities given do not fit its joints: `top_b` would open by 1 m/s\. The run starts"
    with pytest.warns(BiellaWarning, match=match):
        result = simulate(diagram(quadrangle(spins=(-1, 0, 0)), "left.angular_velocity"), 0.01)
    # All bars but the coupler turn alike; momentum about that motion is kept: (I + m) of (2 I + m).
    assembled = quadrangle(spins=(-1, 0, 0)).assemble()["left"].angular_velocity
    assert result["plant"][0] == pytest.approx(assembled, abs=1e-9)


def test_velocities_given_at_run_time_are_reported(tmp_path, run_fmu):
    d = diagram(quadrangle(), mode="internal")
    for at, told in (("left", "top_b"), ("right", "top_b"), ("coupler", "top_b")):
        name = f"plant.{at}.initial_angular_velocity"
        with pytest.warns(BiellaWarning, match=rf"`{told}` would open by 1 m/s"):
            simulate(d, 0.01, parameters={name: -1.0})
    with pytest.warns(BiellaWarning, match=r"`foot_b` would open by 0.7 m/s"):
        simulate(d, 0.01, parameters={"plant.right.initial_velocity": [0.7, 0.0]})
    told = run_fmu(
        d.export_fmu(tmp_path / "quadrangle.fmu", outputs=["plant.closure"]),
        **{"plant.left.initial_angular_velocity": -1.0},
    )
    warned = [text for status, text in told if status == 1]
    assert warned[0].startswith("plant: the velocities given do not fit its joints: `top_b`")


def test_a_driver_sets_in_motion_what_was_given_at_rest():
    """Also beside something that was given in motion; a speed other than the driver's is told."""
    for given, told in ((0.0, False), (0.5, False), (0.2, True)):
        s = quadrangle(spins=(given, given, 0.0))
        s.driver("drive", cast(Joint, s["foot_a"]), f"{np.pi / 2!r} + 0.5 * t")
        top = s.body("top", mass=1, inertia=1, position=(5, 0), angular_velocity=3)
        s.revolute("spin", s.ground, top, at=(5, 0))
        match = r"`drive` would open by 0.3 rad/s\."
        with pytest.warns(BiellaWarning, match=match) if told else nullcontext():
            simulate(diagram(s), 0.01)


# -- the name at the top


def test_system_is_at_the_top_level():
    code = (
        "import biella, biella.blocks.multibody as m; assert biella.System is m.System;"
        "from biella import *; System"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
