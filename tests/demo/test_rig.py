"""The rig of the demo."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Constant
from biella.demo import rig
from biella.demo._run import state_names

pytestmark = pytest.mark.engine


def test_the_speed_is_held_and_the_film_carries(folder):
    """Energy: what the motor gives beyond losses and load is small once the speed is steady."""
    run = simulate(rig.diagram(folder / "crank.fmu"), 4.0, record=["*"])
    turns = (run.t > 3.0) & (run.t < 3.0 + 4 * 2 * np.pi / rig.WANTED)
    assert run["speed"][turns].mean() == pytest.approx(rig.WANTED, rel=5e-3)
    friction = 0.02 * run["speed"][turns]
    film = run["crank_pin.film.power_loss"][turns] / run["speed"][turns]
    given = run["motor"][turns] + rig.LOAD
    assert given.mean() == pytest.approx((friction + film).mean(), rel=0.05)


def test_the_supervisor_switches_off_at_the_second_overload(folder):
    run = simulate(rig.diagram(folder / "crank.fmu"), 5.0, record=["*"])
    states = run["supervisor.state"]
    changes = np.flatnonzero(np.diff(states)) + 1
    names = state_names(rig.supervisor())
    entered = [(names[int(states[k]) - 1], k) for k in changes]
    assert [name for name, _ in entered] == [
        "start_up.ramp", "run.normal", "run.high", "overload", "run.normal", "run.high", "safe",
    ]  # fmt: skip
    ticks = dict(entered)
    first_high = entered[2][1]
    assert run["measured_torque"][first_high] > rig.TORQUE_LIMIT
    assert run["measured_torque"][first_high - 1] <= rig.TORQUE_LIMIT
    tolerated = round(rig.TOLERATED / rig.STEP)
    assert ticks["overload"] - first_high == tolerated
    assert ticks["safe"] - ticks["run.high"] == tolerated
    # Off at the next tick, which is the delay of the power stage; then the brake stops the crank.
    assert not run["motor"][ticks["safe"] + 1 :].any()
    assert abs(run["speed"][-1]) < 1.0


def test_the_rig_does_not_start_without_its_encoder():
    machine = Diagram("no encoder", step=rig.STEP)
    still = machine.add(Constant(0.0), "still")
    machine.add(rig.supervisor(), "supervisor", angle=still, speed=still, torque=still)
    run = simulate(machine, 2.1)
    assert not run["supervisor.speed_wanted"].any()
    np.testing.assert_array_equal(run["supervisor.power"] == 0, run.t > 2.0 - 1e-9)
