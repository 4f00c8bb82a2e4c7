"""Reports of couplings: errors of steps, their order, created energy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.linalg import expm

from biella import Diagram, Result, simulate
from biella.blocks import (
    Expression,
    Gain,
    Integrator,
)
from biella.blocks.multibody import Input, Joint, System
from biella.errors import BlockError
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

pytestmark = pytest.mark.engine

M, K, C = (1.0, 2.0), (10.0, 15.0), (0.1, 0.2)
SPRING, DAMPER = 20.0, 0.3
END = 4.0
STATES = ("a.slide.displacement", "a.slide.speed", "b.slide.displacement", "b.slide.speed")
METHODS = ("jacobi", "gauss-seidel", "fixed-point", "newton")


def mass(n: int, stiffness: float = 0.0, damping: float = 0.0, **options: Any) -> Any:
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=M[n], inertia=1.0, velocity=(1.0 - n, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    wall, end = s.ground.marker("wall", (-9, 0)), body.marker("end")
    k, c = K[n] + stiffness, C[n] + damping
    s.spring("spring", wall, end, stiffness=k, damping=c, free_length=9.0)
    s.force("push", end, (0.0, 0.0))
    outputs = ["slide.displacement", "slide.speed", "slide.acceleration"]
    steps: dict[str, Any] = {"mode": "internal", "substeps": 4}
    return s.block(["push.force.x"], outputs, **(steps | options))


def law(d: Diagram, name: str, formula: str, plants: dict[str, Any], **numbers: float) -> Any:
    """An Expression of x1, v1, a1 of the first plant and x2, v2, a2 of the second."""
    block = d.add(Expression(formula, parameters=numbers, unit="N"), name)
    quantities = {"x": "slide.displacement", "v": "slide.speed", "a": "slide.acceleration"}
    for port in block.input_index:
        plant = plants["a" if port[1] == "1" else "b"]
        d.connect(plant[quantities[port[0]]], block[port])
    return block


def two_masses(split: str = "displacement", **options: Any) -> Diagram:
    """The spring is the first one's if split at the displacement, else neither's."""
    d = Diagram("two masses", **options)
    first = (SPRING, DAMPER) if split == "displacement" else (0.0, 0.0)
    plants = {"a": d.add(mass(0, *first), "a"), "b": d.add(mass(1), "b")}
    on_a = "k*x2 + c*v2" if split == "displacement" else "k*(x2 - x1) + c*(v2 - v1)"
    numbers = {"k": SPRING, "c": DAMPER}
    d.connect(law(d, "on_a", on_a, plants, **numbers), plants["a"]["push.force.x"])
    on_b = law(d, "on_b", "k*(x1 - x2) + c*(v1 - v2)", plants, **numbers)
    d.connect(on_b, plants["b"]["push.force.x"])
    return d


def exact(t: float, inertance: float = 0.0) -> np.ndarray:
    m = np.diag(M) + inertance * np.array([[1, -1], [-1, 1]])
    k = np.diag(K) + SPRING * np.array([[1, -1], [-1, 1]])
    c = np.diag(C) + DAMPER * np.array([[1, -1], [-1, 1]])
    a = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(m, k), -np.linalg.solve(m, c)]])
    x1, x2, v1, v2 = expm(a * t) @ [0.0, 0.0, 1.0, 0.0]
    return np.array([x1, v1, x2, v2])


def error(d: Diagram, reference: np.ndarray | None = None, **options: Any) -> float:
    run = simulate(d, END, **options)
    return float(
        np.abs(
            [run[p][-1] for p in STATES] - (exact(END) if reference is None else reference)
        ).max()
    )


STIFF = 200.0


def moved_end(rates: int, **options: Any) -> Diagram:
    """Mass a of 1 kg gets the force of a spring that belongs to mass b of 2 kg, whose other end is
    moved as a moves: by its place, and by as many `rates` of it."""
    left = System("left", (0, 0), planar=True)
    body = left.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    left.prismatic("slide", left.ground, body, at=(0, 0), axis=(1, 0))
    left.force("push", cast(Joint, left["slide"]), Input("push"))
    right = System("right", (0, 0), planar=True)
    body = right.body("mass", mass=2.0, inertia=1.0, position=(1.0, 0))
    right.prismatic("slide", right.ground, body, at=(1, 0), axis=(1, 0))
    end = right.ground.marker("end", (0, 0), motion={"x": Input("x")})
    right.spring("spring", end, body.marker("m"), stiffness=STIFF, free_length=1.0)
    d = Diagram("moved end", **options)
    outputs = ["slide.displacement", "slide.speed", "slide.acceleration"]
    for name, system in (("a", left), ("b", right)):
        d.add(system.block(outputs=outputs, mode="internal", substeps=8), name)
    stretch = d.add(Expression("k*(x2 - x1)", parameters={"k": STIFF}, unit="N"), "pull")
    d.connect("a.slide.displacement", stretch["x1"])
    d.connect("b.slide.displacement", stretch["x2"])
    d.connect(stretch, "a.push")
    for path, port in list(zip(outputs, ("x", "x_rate", "x_acceleration"), strict=True))[
        : 1 + rates
    ]:
        d.connect(f"a.{path}", f"b.{port}")
    return d


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
