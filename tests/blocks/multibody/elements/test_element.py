"""All elements together: their work, and messages for wrong numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson

from biella import DiagramError
from biella.blocks.multibody import Linear, System
from biella.blocks.multibody.plant._initial import coordinate_name

from ..small_systems import ENERGIES, hinged, run

pytestmark = pytest.mark.engine


JOINTS = (
    "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar_joint", "guide",
    "in_plane",
)  # fmt: skip


@st.composite
def chains(draw):
    """A chain of two to four bodies with random joints, springs, bushings, stops and friction.

    Its last body may be tied back to the ground by a rod, which makes it a loop.
    """
    number = st.floats(-1.0, 1.0).map(lambda x: round(x, 2))
    s = System("chain", gravity=tuple(draw(number) * 5 for _ in range(3)))
    bodies, dampers, stops = [s.ground], [], draw(st.booleans())
    for n in range(draw(st.integers(2, 4))):
        place = (0.5 + n, draw(number) * 0.2, draw(number) * 0.2)
        body = s.body(f"b{n}", mass=1.0 + n, inertia=np.diag([0.2, 0.3, 0.4]), position=place)
        kind = draw(st.sampled_from(JOINTS))
        ends = (bodies[-1], body) if draw(st.booleans()) else (body, bodies[-1])
        axis = np.array([draw(number), draw(number), 1.0])
        options = {"at": (float(n), 0, 0), "axis": axis}
        if kind == "universal":
            options["axis"] = (axis, np.cross(axis, (1.0, 0.3, 0.0)))
        elif kind == "spherical":
            del options["axis"]
        joint = getattr(s, kind)(f"j{n}", *ends, **options)
        for k, coordinate in enumerate(joint.coordinates):
            if coordinate.kind == "angle":
                s.torsional_spring(
                    f"s{n}{k}", joint, stiffness=3.0, free_angle=draw(number), coordinate=k
                )
            if stops:
                s.stop(f"e{n}{k}", joint, lower=-0.3, upper=0.4, stiffness=30.0, coordinate=k)
            s.friction(
                f"f{n}{k}", joint, viscous=0.3, coulomb=0.2, smoothing_speed=1.0, coordinate=k
            )
            dampers.append((joint, k))
        bodies.append(body)
    tip = bodies[-1].marker("tip", (0.3, draw(number), 0.1))
    s.spring("spring", s.ground.marker("wall", (3, 2, 1)), tip, stiffness=6.0, free_length=1.0)
    if draw(st.booleans()):
        s.distance("rod", s.ground.marker("post", (2, -2, 1)), tip)
    k = 1.0 + abs(draw(number))
    s.bushing(
        "bushing", bodies[-2].marker("p"), bodies[-1].marker("p", (0.1, 0.2, draw(number))),
        stiffness=[5, 6, 7, k, k, k],
    )  # fmt: skip
    s.force(
        "thrust",
        tip,
        (1.0, draw(number), "sin(5*t)"),
        frame=draw(st.sampled_from(["world", "body"])),
    )
    return s, dampers, stops


@settings(max_examples=25)
@given(chains())
def test_work_of_forces_is_the_change_of_energy(case):
    """E(t) - E(0) = ∫ (thrust · v - friction · speed) dt, for a chain of any joints and forces."""
    s, dampers, stops = case
    speeds = [f"{joint.name}.{coordinate_name(joint, k)}_speed" for joint, k in dampers]
    load = s["thrust"]
    tip = load.marker
    shown = [*ENERGIES, f"{tip.path}.velocity", f"{tip.path}.rotation", *speeds]
    t, (kinetic, potential, velocity, turn, *rates) = run(s, 0.4, shown)
    force = np.column_stack([[law.value(now) for now in t] for law in load.components])
    if load.frame == "body":
        e0, v = turn[:, :1], turn[:, 1:]
        force = force + 2 * np.cross(v, np.cross(v, force) + e0 * force)
    power = (force * velocity).sum(axis=1)
    for rate in rates:
        power -= rate * (0.3 * rate + 0.2 * np.tanh(rate))
    energy = kinetic + potential
    # RK4 leaves some 1e-9; stops begin at a kink inside a step, worth about k v² h² / 2 each time.
    work = simpson(power, x=t)
    assert energy[-1] - energy[0] == pytest.approx(work, abs=2e-4 if stops else 1e-6)


def test_bad_forces_teach() -> None:
    s, hinge = hinged()
    m, g = hinge.second, hinge.first
    with pytest.raises(DiagramError, match=r"a displacement. Coordinates of `hinge`.*0: angle"):
        s.force("f", hinge, 1.0)
    with pytest.raises(DiagramError, match="cannot act on coordinate 3"):
        s.driver("f", hinge, 1.0, coordinate=3)
    with pytest.raises(DiagramError, match="3 numbers in a spatial system"):
        s.force("f", m, (1, 2))
    with pytest.raises(DiagramError, match="'world' or 'body', got 'marker'"):
        s.force("f", m, (1, 2, 3), frame="marker")  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="takes no `frame`"):
        s.force("f", m, 1.0, frame="body")
    with pytest.raises(DiagramError, match=r"depends on `q`.*It may depend on t, l, v"):
        s.spring("f", g, m, stiffness="q")
    with pytest.raises(DiagramError, match="some of x, y, z, such as 'z'; got 'w'"):
        s.spring("f", g, m, components="w")
    with pytest.raises(DiagramError, match="no length is negative"):
        s.spring("f", g, m, free_length=-1)
    with pytest.raises(DiagramError, match="`stiffness` of `f` has 6 numbers"):
        s.bushing("f", g, m, stiffness=(1, 2, 3))
    with pytest.raises(DiagramError, match="`smoothing_speed` of `f` must not be negative"):
        s.friction("f", hinge, coulomb=1, smoothing_speed=-1e-3)
    with pytest.raises(DiagramError, match="`viscous` of `f` must not be negative"):
        s.friction("f", hinge, viscous=-1)
    with pytest.raises(DiagramError, match="must be below the upper one"):
        s.stop("f", hinge, lower=1, upper=0, stiffness=1)
    s.driver("d", hinge, Linear(0, 1))
    with pytest.raises(DiagramError, match="which `d` drives already"):
        s.driver("f", hinge, 1.0)
    with pytest.raises(DiagramError, match=r"Choose with coordinate="):
        slide = s.cylindrical("c", g, m)
        s.friction("f", slide, viscous=1)
    assert not s.elements and len(s.drivers) == 1
    with pytest.raises(DiagramError, match="acts on `hinge`, a joint of another system"):
        System("other").driver("d", hinge, 1.0)
