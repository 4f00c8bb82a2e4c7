"""Reports of couplings: errors of steps, their order, created energy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from biella import Diagram, Result, simulate
from biella.blocks import (
    Gain,
    Integrator,
)
from biella.blocks.multibody import Input, Joint, System
from biella.errors import BlockError
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

from ..engine.coupled_masses import (
    DAMPER,
    END,
    METHODS,
    SPRING,
    STATES,
    STIFF,
    exact,
    moved_end,
    two_masses,
)

pytestmark = pytest.mark.engine


def test_too_few_iterations() -> None:
    d = two_masses(step=0.05)
    d.couple(method="fixed-point", iterations=2, tolerance=1e-12)
    with pytest.warns(
        CouplingWarning, match=r"`b`, `a` did not converge to 1e-12 within 2 .* of 20"
    ):
        run = simulate(d, 1.0)
    assert run["coupling.b+a.failures"][-1] > 10
    assert run["coupling.b+a.residual"][5] > 1e-12
    d.couple(method="fixed-point", iterations=2, tolerance=1e-12, failure="error")
    with pytest.raises(BlockError, match=r"did not converge, nor did parts of it: after 24"):
        simulate(d, 1.0)
    d.couple(halvings=0)
    with pytest.raises(BlockError, match=r"did not converge: after 2 iterations"):
        simulate(d, 1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_the_report(method: str, extrapolation: int) -> None:
    """The order is seen in one run, and a run with the suggested step is as exact as asked for."""
    run = simulate(
        two_masses(step=0.02), END, coupling=method, extrapolation=extrapolation, estimate_error=1
    )
    tolerance = 1e-2 if extrapolation == 0 else 1e-3
    report = run.coupling_report(tolerance)
    expected = max(extrapolation + 1, 2 if method in ("fixed-point", "newton") else 1)
    for connection in report.connections:
        assert connection.order == pytest.approx(expected, abs=0.5)
    assert report.suggested_step is not None
    again = END / np.ceil(END / report.suggested_step)
    run = simulate(two_masses(step=again), END, coupling=method, extrapolation=extrapolation)
    some = np.unique(np.linspace(0, run.length - 1, 60).astype(int))
    states = np.array([exact(t) for t in run.t[some]])
    force = SPRING * (states[:, 0] - states[:, 2]) + DAMPER * (states[:, 1] - states[:, 3])
    relative = np.abs(run["on_b"][some] - force).max() / np.abs(force).max()
    assert 0.1 * tolerance < relative < 5 * tolerance


def test_the_report_of_adaptive_communication(tmp_path: Path) -> None:
    run = simulate(
        two_masses(step=0.1), END, extrapolation=1, coupling_tolerance=1e-3, out=tmp_path / "a.h5"
    )
    item = run.coupling_report().couplings[0]
    last = {name: run[f"coupling.b+a.{name}"][-1] for name in ("communication_steps", "rejected")}
    assert last == {name: item[name] for name in last}
    assert item["communication_steps"] > item["steps"] == 40
    assert sum(sum(signal["limiting"]) for signal in item["signals"]) <= item["communication_steps"]
    text = str(run.coupling_report())
    assert text == str(Result.from_hdf5(tmp_path / "a.h5").coupling_report())
    assert re.search(
        r"\d+ communication steps for a tolerance of 0.001, \d+ rejected, \d+ steps of each "
        r"member; above the tolerance in 0 base steps; mostly limited by on_[ab]",
        text,
    )
    assert "estimate_error" not in text
    del item["communication_steps"]  # as in files of earlier versions
    assert "communication" not in str(run.coupling_report())


def test_what_the_report_says() -> None:
    run = simulate(two_masses(step=0.02), END, extrapolation=1, estimate_error=4)
    report = run.coupling_report(1e-4)
    assert report.limiting is report.connections[0]
    text = str(report)
    assert "b + a: jacobi, extrapolation 1, 200 steps" in text
    assert "limits the accuracy; a step of" in text
    assert "on_b → b.push.force.x" in text
    assert "All connections are within" in str(run.coupling_report(0.5))
    iterated = simulate(two_masses(step=0.02), 1.0, coupling="newton").coupling_report()
    assert "iterations each, 0 not converged" in str(iterated)
    assert "run with estimate_error=1" in str(iterated)
    plain = simulate(two_masses(), 0.01).coupling_report()
    assert "No block with an internal solver is coupled" in str(plain)


def energy(run: Any) -> np.ndarray:
    """That of `moved_end`: exact, whatever the blocks hold."""
    x1, v1, x2, v2 = (run[path] for path in STATES)
    return 0.5 * v1**2 + v2**2 + 0.5 * STIFF * (x2 - x1) ** 2


@pytest.mark.filterwarnings("ignore:.*the prescribed motion `ground.end.x` jumps")
@pytest.mark.parametrize("rates", [0, 1, 2])
@pytest.mark.parametrize("estimate", [0, 1], ids=["plain", "as a component"])
def test_energy_that_a_coupling_creates_is_measured(rates: int, estimate: int) -> None:
    """By far the most of it at the force, which is half a step old: against the energy itself.
    Without a rate the other side holds the place too, which is not a matter of power."""
    d = moved_end(rates, step=2e-3)
    with pytest.warns(CouplingWarning, match=r"`a`, `b` created .* J, .*extrapolation=1") as caught:
        run = simulate(d, 5.0, estimate_error=estimate)
    told = re.search(r"created (\S+) J, .* at `a.push` and `b.x`\)", str(caught[0].message))
    assert told is not None
    gained = energy(run)[-1] - energy(run)[0]
    assert float(told[1]) == pytest.approx(gained, rel=0.02 if rates else 0.5)
    if rates:
        assert gained > 0.5  # it has doubled


@pytest.mark.parametrize(
    ("method", "extrapolation"), [("jacobi", 1), ("jacobi", 2), ("newton", 0), ("newton", 1)]
)
def test_couplings_that_keep_the_energy_are_not_warned_of(method: str, extrapolation: int) -> None:
    run = simulate(moved_end(1, step=2e-3), 5.0, coupling=method, extrapolation=extrapolation)
    assert abs(energy(run)[-1] / energy(run)[0] - 1) < 2e-3


def spring_of_blocks(stiffness: float = STIFF, **options: Any) -> Diagram:
    """A mass and a spring made of blocks, whose states the diagram integrates."""
    d = Diagram("spring", **options)
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", cast(Joint, s["slide"]), Input("push"))
    outputs = ["slide.displacement", "slide.speed"]
    plant = d.add(s.block(outputs=outputs, mode="internal", substeps=4), "plant")
    d.connect(plant["slide.speed"], d.add(Integrator(), "stretch"))
    d.connect(d["stretch"], d.add(Gain(-stiffness, unit="N"), "pull"))
    d.connect(d["pull"], plant["push"])
    return d


def test_energy_created_where_a_speed_is_exchanged_with_states_of_the_diagram() -> None:
    d = spring_of_blocks(step=1e-3)
    with pytest.warns(CouplingWarning, match=r"`plant`, `states` created") as caught:
        run = simulate(d, 3.0)
    told = re.search(r"created (\S+) J, .* at `plant.push` and `stretch.u`", str(caught[0].message))
    assert told is not None
    whole = 0.5 * run["plant.slide.speed"] ** 2 + 0.5 * STIFF * run["stretch"] ** 2
    assert float(told[1]) == pytest.approx(whole[-1] - whole[0], rel=0.01)


def test_energy_lost_is_named_too() -> None:
    """A parabola goes beyond the end of a long step in the other direction."""
    d = spring_of_blocks(20.0, step=0.05, extrapolation=2)
    with pytest.warns(CouplingWarning, match=r"`plant`, `states` lost .* smaller step") as caught:
        run = simulate(d, 2.0)
    told = re.search(r"lost (\S+) J, .* at `plant.push` and `stretch.u`", str(caught[0].message))
    assert told is not None
    whole = 0.5 * run["plant.slide.speed"] ** 2 + 10.0 * run["stretch"] ** 2
    assert float(told[1]) == pytest.approx(whole[0] - whole[-1], rel=0.05)


def test_a_coupling_at_rest_is_not_warned_of() -> None:
    """What rounding moves is not energy, whatever the share of it that is created."""
    simulate(moved_end(1, step=2e-3), 2.0, parameters={"a.mass.initial_velocity": (1e-12, 0.0)})
