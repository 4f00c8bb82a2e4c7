"""What the benchmarks compare is the same motion, and what they write is a list of rows."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from biella import simulate

pytestmark = pytest.mark.engine

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# The error of RK4 at 1 ms in 0.3 s is below 1e-10 m in all of them; that of the slider-crank is
# 8e-9 m at any step, because its printed pose, which ours assembles, is open by 1e-8 m. A wrong
# mass, length, sign or initial speed shows from 1e-3 m on.
PLANAR = ["pendulum", "slider_crank", "four_bars_2", "chain_5"]


@pytest.mark.parametrize(
    ("work", "spatial"),
    [*((work, spatial) for work in PLANAR for spatial in (False, True)), ("tumbler", True)],
)
def test_ours_moves_as_the_reference(work, spatial):
    from mechanisms.ours_multibody import Ours
    from mechanisms.plants import plant
    from mechanisms.reduced import reference

    ours = Ours(work, spatial)
    seen = ours.check(0.3)
    assert ours.run(0.3)[1]["points"] == seen["points"]
    expected = reference(work, plant(work), 0.3)
    assert max(math.dist(seen["points"][name], expected[name]) for name in expected) < 2e-8
    assert seen["closure_m"] < 1e-10
    assert seen["energy_drift_J"] < 1e-8
    assert seen["momentum_drift"] < 1e-12


def test_the_reference_of_a_chain_of_one_is_a_rod():
    """A physical pendulum, θ'' = -(3/2) g sin θ, from the bottom at 1 rad/s."""
    from mechanisms.reduced import chain_points

    end = chain_points(1, 0.7)["tip"]
    h, angle, rate = 1e-4, 0.0, 1.0
    for _ in range(7000):  # velocity Verlet, error of order h²
        rate -= h / 2 * 1.5 * 9.81 * math.sin(angle)
        angle += h * rate
        rate -= h / 2 * 1.5 * 9.81 * math.sin(angle)
    assert end[:2] == pytest.approx([math.sin(angle), -math.cos(angle)], abs=1e-7)


def test_the_ring_is_closed_and_hangs_on_its_pin():
    from mechanisms.ours_multibody import build_ring, start_system

    run = start_system(build_ring(7), ["closure", "pin.force"])
    assert run.get("plant.closure") < 1e-12
    run.run(50)
    assert run.get("plant.closure") < 1e-12
    assert np.linalg.norm(run.get("plant.pin.force")) > 1.0


def test_a_meter_sees_gaps_energy_and_momentum():
    from mechanisms.measure import Meter
    from mechanisms.plants import plant

    meter = Meter(plant("tumbler"))
    p, v, w = np.zeros((1, 3)), np.zeros((1, 3)), np.array([[0.1, 2.0, 0.1]])
    meter.see(p, np.eye(3)[None], v, w)
    meter.see(p, np.eye(3)[None], v, 2 * w)
    # ½ ωᵀ J ω = ½ (1 · 0.01 + 2 · 4 + 2.5 · 0.01) = 4.0175 J, then four times that.
    assert meter.drift == pytest.approx(3 * 4.0175)
    assert meter.momentum_drift == pytest.approx(1.0)
    bob = Meter(plant("pendulum"))
    bob.see(np.array([[1.25, 0.0, 0.0]]), np.eye(3)[None], v, 0 * w)
    assert bob.closure == pytest.approx(0.25)


def test_json_is_a_list_of_rows(tmp_path):
    from table import at_most, beside, figure, not_installed, times_faster, within, write_json

    rows = [
        times_faster("work", "peer", 2.0, 6.0, "µs/step", 1),
        at_most("work", "peer", 2.0, 6.0, "ms", 0.1),
        within("work", 2.0, 6.0, "m"),
        beside("work", "peer", 2.0, 0.0, "m"),
        figure("work", 2.0, "s"),
        not_installed("work", "peer", 2.0, "µs/step", "≥ 1× faster", "pip install peer"),
    ]
    write_json(tmp_path / "rows.json", rows)
    read = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    keys = ["work", "peer", "ours", "theirs", "unit", "ratio", "target", "met"]
    assert [list(row) for row in read] == [keys] * len(rows)
    assert [row["ratio"] for row in read] == [3.0, pytest.approx(1 / 3), 1 / 3, None, None, None]
    assert [row["met"] for row in read] == [True, False, True, None, None, None]
    assert read[-1]["peer"] == "peer: pip install peer"


def test_turns_are_taken_one_by_one_and_the_best_counts():
    from turns import Entrant, fit_exponent, ratios, take_turns

    calls = []

    def enter(name, times):
        left = iter(times)

        def run():
            calls.append(name)
            return next(left), None

        return Entrant(name, run, 1.0)

    one, other = enter("a", [2.0, 1.0, 4.0]), enter("b", [6.0, 5.0, 4.0])
    take_turns([one, other], 3)
    assert calls == ["a", "b"] * 3
    assert (one.best, other.best) == (1.0, 4.0)
    assert ratios(other, one) == (1.0, 5.0)
    assert fit_exponent({10: 1.0, 100: 100.0, 1000: 10000.0}) == pytest.approx(2.0)


def test_the_benchmark_of_devices_measures_every_driver():
    """Run from its file: `devices` is also the name of a folder of tests."""
    rows = runpy.run_path(str(BENCHMARKS / "devices.py"))["measure"](50)
    assert [row.work.split(":")[0] for row in rows] == ["UDP", "serial", "text"]
    assert all(row.ours > 0 and row.theirs > 0 for row in rows)


def test_the_machine_that_is_measured_takes_no_transition():
    """10 states and 20 transitions, and the first state to the end."""
    made = runpy.run_path(str(BENCHMARKS / "workloads" / "machines.py"))
    for guards in ("", " and t > 0"):
        machine = made["build_machine"](guards)
        assert len(machine.chart.children) == 10
        assert len(machine.transitions) == 20
        assert set(simulate(made["build_diagram"](machine), 0.1)["machine.state"]) == {1.0}
