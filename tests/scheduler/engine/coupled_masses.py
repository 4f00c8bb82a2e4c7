"""Two masses and a spring, as blocks with internal solvers that are coupled."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.linalg import expm

from biella import Diagram, simulate
from biella.blocks import (
    Expression,
)
from biella.blocks.multibody import Input, Joint, System

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


def bonded(step: float) -> Diagram:
    """The first mass gets a force; the second has the spring, and gets the first one's motion."""
    d = Diagram("bond", step=step)
    a = d.add(mass(0), "a")
    s = System("hand", (0, 0), planar=True)
    body = s.body("mass", mass=M[1], inertia=1.0)
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    hand = s.ground.marker("hand", (-1, 0), motion={"x": Input("hand")})
    s.spring("spring", hand, body.marker("end"), stiffness=SPRING, free_length=1.0)
    outputs = ["slide.displacement", "slide.speed", "slide.acceleration"]
    b = d.add(s.block([], outputs, mode="internal", substeps=4), "b")
    d.connect(a["slide.displacement"], b["hand"])
    d.connect(a["slide.speed"], b["hand_rate"])
    d.connect(law(d, "pull", "k*(x2 - x1)", {"a": a, "b": b}, k=SPRING), a["push.force.x"])
    d.power_bond(a["push.force.x"], b["hand_rate"], name="grip")
    return d


def energy(run: Any) -> np.ndarray:
    """That of `moved_end`: exact, whatever the blocks hold."""
    x1, v1, x2, v2 = (run[path] for path in STATES)
    return 0.5 * v1**2 + v2**2 + 0.5 * STIFF * (x2 - x1) ** 2
