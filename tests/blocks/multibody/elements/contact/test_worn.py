"""Shapes that wear: Archard's volume, the planar joint, energy, states, FMUs, sweeps."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from biella import BiellaError, Diagram, DiagramError, simulate, sweep
from biella import _contract as contract
from biella.blocks.multibody import (
    Bore,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    LankaraniNikravesh,
    Marker,
    PinProfile,
    Plane,
    Socket,
    Sphere,
    System,
    Wear,
    contact_statistics,
)
from biella.scheduler.compile.plan._plan import read_arrays
from biella.scheduler.engine._engine import Instance

from ..plan_cells import with_cell

pytestmark = pytest.mark.engine

PLAY, RADIUS, LENGTH, HARDNESS = 1e-3, 0.01, 0.02, 2e9
LOAD, SPIN, STIFFNESS = 100.0, 100.0, 1e7
TOWARD = -1.2345  # rad: between two sections
HOLE = [RADIUS + PLAY] * 90
OWN: dict[str, Any] = {"mode": "internal"}
SHAPES = ("ball", "pin", "hole")
IN_BORE = ("ball", "pin")
coarse = pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real


def wear_of(hole: float, pin: float | None, sections: int = 90) -> Wear:
    return Wear(coefficient=hole, hardness=HARDNESS, length=LENGTH, sections=sections,
                pin_coefficient=pin)  # fmt: skip


def shapes_of(kind: str, pin: Marker, hole: Marker) -> tuple[Any, Any]:
    if kind == "ball":
        return Sphere(pin, RADIUS), Bore(hole, RADIUS + PLAY, 0.1)
    if kind == "pin":
        return Cylinder(pin, RADIUS, LENGTH), Bore(hole, RADIUS + PLAY, 0.1)
    return Sphere(pin, RADIUS), HoleProfile(hole, HOLE)


def law_of(kind: str, **numbers: float) -> HuntCrossley:
    """A pin touches at both ends: together they are as stiff as one place, with n = 1."""
    k = STIFFNESS / 2 if kind == "pin" else STIFFNESS
    return HuntCrossley(stiffness=k, exponent=1.0, **{"damping": 1.0, **numbers})


def pressed(kind: str, wear: Wear, *, turning: float = 0.0, spin: float = SPIN, load: float = LOAD,
            toward: float = TOWARD, flip: bool = False, **law: float) -> System:  # fmt: skip
    """A pin that spins in a hole of the ground, pressed by a force that turns at a rate."""
    planar = kind == "joint"
    s = System("pressed", (0.0, 0.0) if planar else (0.0, 0.0, 0.0), planar=planar)
    at = (PLAY + LOAD / STIFFNESS) * np.array([np.cos(toward), np.sin(toward), 0.0])
    along = turning * np.array([-at[1], at[0], 0.0])
    numbers: dict[str, Any] = {"inertia": 0.01, "position": at[:2], "angular_velocity": spin}
    numbers["velocity"] = along[:2] if planar else along
    if not planar:
        numbers |= {"inertia": (0.01,) * 3, "position": at, "angular_velocity": (0, 0, spin)}
        numbers["free"] = True
    body = s.body("disc", mass=1.0, **numbers)
    angle = f"({turning!r}*t + {toward!r})"
    push = (f"{load!r}*cos{angle}", f"{load!r}*sin{angle}", "0.0")
    s.force("load", body.marker("center"), push[:2] if planar else push)
    hole = s.ground.marker("hole")
    if planar:
        s.clearance_revolute("pin", body.marker("pin"), hole, clearance=PLAY, pin_radius=RADIUS,
                             contact=law_of(kind, **law), wear=wear)  # fmt: skip
    else:
        turn = np.diag([1.0, -1.0, -1.0]) if flip else np.eye(3)
        pin = body.marker("pin", rotation=turn)
        s.contact("pin", *shapes_of(kind, pin, hole), law=law_of(kind, **law), wear=wear)
    return s


WORN = ["wear", "pin_wear", "worn_volume", "pin_worn_volume"]


def run(s: System, until: float, names: list[str], *, step: float = 5e-5) -> dict[str, Any]:
    d = Diagram("wear", step=step)
    d.add(s.block(outputs=[f"pin.{n}" for n in names] + ["disc.position"], **OWN), name="p")
    result = simulate(d, until)
    return {"t": result.t, "place": result["p.disc.position"]} | {
        name: result[f"p.pin.{name}"] for name in names
    }


# -- volumes


@coarse
@pytest.mark.parametrize("kind", ["joint", *SHAPES])
def test_worn_volumes_are_those_of_archard(kind: str) -> None:
    """V = k F v t / H: of the hole and, with a third of its coefficient, of the pin.

    Steps of 50 µs are of first order in what is worn: 2e-3, as of the planar joint.
    """
    found = run(pressed(kind, wear_of(0.6, 0.2)), 0.02, WORN)
    wanted = 0.6 / HARDNESS * LOAD * RADIUS * SPIN * 0.02
    assert found["worn_volume"][-1] == pytest.approx(wanted, rel=2e-3)
    assert found["pin_worn_volume"][-1] / found["worn_volume"][-1] == pytest.approx(
        1 / 3, rel=1e-12
    )
    # Depths add up to the volumes: R Δθ L each.
    for name, volume, radius in (("wear", "worn_volume", RADIUS + PLAY),
                                 ("pin_wear", "pin_worn_volume", RADIUS)):  # fmt: skip
        sum_ = found[name][-1].sum() * radius * 2 * np.pi / 90 * LENGTH
        assert sum_ == pytest.approx(found[volume][-1], rel=1e-12)
    assert (found["wear"] >= 0).all() and (found["pin_wear"] >= 0).all()


@coarse
def test_a_pin_that_turns_wears_evenly_and_its_hole_in_a_bed() -> None:
    """And a load that turns with the pin wears the hole evenly, and the same bed into the pin.

    What the start leaves uneven is less than half of one of the three turns. The pin that goes
    round presses by m e ω² = 10 N more than its load, and slips by (R + e) ω instead of R ω on an
    area that is smaller by as much. Its bed is smoothed by a cubic B-spline, as it is made and as
    it is shown: Δθ²/6 of its curvature e each.
    """
    turn = 6 * np.pi / SPIN
    toward = -18 * 2 * np.pi / 90  # at a section
    hole = run(pressed("ball", wear_of(0.1, 0.1), toward=toward), turn, WORN)
    less = 0.1 * (RADIUS / (RADIUS + PLAY)) ** 2
    turning = pressed("ball", wear_of(0.1, less), toward=toward, turning=SPIN, load=90.0)
    pin = run(turning, turn, WORN)
    for even in (hole["pin_wear"][-1], pin["wear"][-1]):
        assert np.ptp(even) < 0.17 * even.mean()
    bed, other = hole["wear"][-1], pin["pin_wear"][-1]
    # Symmetric to the direction of the load, where the pin does not wear.
    assert bed.argmax() == 90 - 18
    alone = run(pressed("ball", wear_of(0.1, None), toward=toward), 0.02, ["wear"])["wear"][-1]
    np.testing.assert_allclose(np.roll(alone[::-1], 1 - 36), alone, atol=1e-6 * alone.max())
    # The load stays where it began on the pin, at the same angle of its marker.
    assert np.abs(other - bed).max() < PLAY * (2 * np.pi / 90) ** 2 / 3 < 0.15 * bed.max()


@coarse
@pytest.mark.parametrize("kind", ["joint", "ball", "pin", "hole"])
def test_a_pin_turned_by_rounding_wears_like_one_that_is_not(kind: str) -> None:
    """A turn by ±1e-17 rad, as of a marker that is turned by π, moves nothing.

    The pin slides to and fro across its load and does not rotate: its angle keeps its rounding.
    """
    worn = [_slid(kind, turn) for turn in (0.0, 1e-17, -1e-17)]
    assert worn[0]["pin_wear"][-1].max() > 1e-7
    assert (worn[0]["pin_wear"] >= 0).all()
    for other in worn[1:]:
        for name in ("pin_wear", "wear", "place"):
            scale = np.abs(worn[0][name]).max()
            np.testing.assert_allclose(other[name], worn[0][name], atol=1e-9 * scale)


def _slid(kind: str, turn: float) -> dict[str, Any]:
    """A pin that cannot rotate, on a load that swings in its hole, its marker turned a little."""
    planar = kind == "joint"
    s = System("slid", (0.0, 0.0) if planar else (0.0, 0.0, 0.0), planar=planar)
    at = (PLAY + LOAD / STIFFNESS) * np.array([1.0, 0.0, 0.0])
    slow: Any = 1e9 if planar else (1e9,) * 3
    body = s.body("disc", mass=1.0, inertia=slow, position=at[:2] if planar else at,
                  **({} if planar else {"free": True}))  # fmt: skip
    swing = "0.3*sin(400*t)"
    push = (f"{LOAD!r}*cos({swing})", f"{LOAD!r}*sin({swing})", "0.0")
    s.force("load", body.marker("center"), push[:2] if planar else push)
    hole, wear = s.ground.marker("hole"), wear_of(300.0, 300.0)
    if planar:
        pin = body.marker("pin", rotation=turn)
        s.clearance_revolute("pin", pin, hole, clearance=PLAY, pin_radius=RADIUS,
                             contact=law_of(kind), wear=wear)  # fmt: skip
    else:
        c, k = np.cos(turn), np.sin(turn)
        pin = body.marker("pin", rotation=np.array([[c, -k, 0.0], [k, c, 0.0], [0.0, 0.0, 1.0]]))
        s.contact("pin", *shapes_of(kind, pin, hole), law=law_of(kind), wear=wear)
    return run(s, 0.004, WORN)


# -- the planar joint


@coarse
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("pin", [None, 0.4])
def test_in_a_plane_wear_is_that_of_the_planar_joint(kind: str, pin: float | None) -> None:
    """To rounding of a bore; contacts of an outline are narrower by a part of PLAY / RADIUS."""
    names = ["wear", "worn_volume", "slip", "normal_force", "gap"]
    names += ["pin_wear", "pin_worn_volume"] if pin else []
    joint = run(pressed("joint", wear_of(1.4, pin), friction=0.05), 0.02, names)
    shape = run(pressed(kind, wear_of(1.4, pin), friction=0.05), 0.02, names)
    assert joint["wear"][-1].max() > 0.02 * PLAY
    near = 1e-9 if kind in IN_BORE else 0.02
    np.testing.assert_allclose(shape["place"][:, :2], joint["place"][:, :2], atol=near * PLAY)
    for name in names:
        wanted = np.abs(joint[name]).max()
        found = shape[name] if name != "slip" else np.sign(joint[name]) * shape[name]
        if name == "gap" and kind == "pin":
            continue
        np.testing.assert_allclose(found, joint[name], atol=5 * near * wanted, err_msg=name)


@coarse
@pytest.mark.parametrize("kind", SHAPES)
def test_a_pin_whose_axis_points_backwards_wears_alike(kind: str) -> None:
    """Its angle then counts the other way."""
    names = ["wear", "pin_wear"]
    one = run(pressed(kind, wear_of(1.4, 0.4), turning=80.0), 0.02, names)
    other = run(pressed(kind, wear_of(1.4, 0.4), turning=80.0, flip=True), 0.02, names)
    np.testing.assert_allclose(other["wear"][-1], one["wear"][-1], atol=1e-9 * PLAY)
    backwards = np.roll(one["pin_wear"][-1][::-1], 1)
    np.testing.assert_allclose(other["pin_wear"][-1], backwards, atol=1e-9 * PLAY)
    assert np.ptp(backwards) > 1e-3 * PLAY


@coarse
@pytest.mark.parametrize("kind", SHAPES)
def test_statistics_are_those_of_the_planar_joint(kind: str) -> None:
    """A thrown pin, with impacts: time, episodes, forces, depth and roses."""
    rows = []
    for which in ("joint", kind):
        s = pressed(which, wear_of(0.0, None), friction=0.1, damping=0.1)
        d = Diagram("thrown", step=2e-5)
        names = ["contact", "normal_force", "angle", "angle_on_pin", "slip", "gap"]
        names += ["gaps", "normal_forces", "angles", "angles_on_pin", "slips"] * (which == "pin")
        d.add(s.block(outputs=[f"pin.{n}" for n in names], initial={}, **OWN), name="p")
        rows.append(contact_statistics(simulate(d, 0.03), "pin", bins=12))
    joint, shape = rows
    near = 1e-6 if kind in IN_BORE else 0.02
    assert joint.contact_time > 0 and joint.largest_depth > 0
    for what in ("contact_time", "mean_force", "largest_force", "sliding_distance", "sliding_work",
                 "largest_depth", "episodes"):  # fmt: skip
        assert getattr(shape, what) == pytest.approx(getattr(joint, what), rel=near), what
    for around in ("hole", "pin"):
        a, b = getattr(shape, around), getattr(joint, around)
        if kind in IN_BORE:
            np.testing.assert_allclose(a.density, b.density, atol=1e-6)
            np.testing.assert_allclose(a.sliding_work, b.sliding_work, atol=1e-6 * LOAD)


# -- potential


def loose(kind: str, law: Any, flip: bool = False, **wear: float) -> System:
    """A pin and a ring that fly, spin and tumble; nothing but a spring and the contact."""
    s = System("pair", (0.0, 0.0, 0.0))
    pin = s.body(
        "disc", mass=1.0, inertia=(1e-3, 1.3e-3, 0.9e-3), position=(0, -0.5 * PLAY, 0),
        velocity=(0.3, -0.4, 0.02), angular_velocity=(0.8, 0.5, 50.0), free=True,
    )  # fmt: skip
    ring = s.body(
        "ring", mass=2.0, inertia=(4e-3, 3e-3, 5e-3), angular_velocity=(-0.2, 0.1, -20.0), free=True
    )
    peg = ring.marker("peg", (0, -0.2, 0))
    s.spring("pull", pin.marker("center"), peg, stiffness=500.0, free_length=0.05)
    m = pin.marker("m", rotation=np.diag([1.0, -1.0, -1.0]) if flip else np.eye(3))
    h = ring.marker("h")
    angle = 2 * np.pi / 90 * np.arange(90)
    oval = HoleProfile(h, RADIUS + PLAY + 4e-4 * np.cos(2 * angle))
    shapes: dict[str, tuple[Any, Any]] = {
        "ball": (Sphere(m, RADIUS), Bore(h, RADIUS + PLAY, 0.03)),
        "ball at a mouth": (Sphere(m, RADIUS), Bore(h, RADIUS + PLAY, 0.002)),
        "short": (Cylinder(m, RADIUS, 0.03), Bore(h, RADIUS + PLAY, 0.06)),
        "long": (Cylinder(m, RADIUS, 0.06), Bore(h, RADIUS + PLAY, 0.03)),
        "hole": (Sphere(m, RADIUS), oval),
        "outline": (PinProfile(m, RADIUS + 2e-4 * np.cos(3 * angle)), oval),
    }
    numbers: dict[str, Any] = {"coefficient": 30.0, "hardness": HARDNESS, "length": LENGTH,
                               "sections": 45, "pin_coefficient": 15.0}  # fmt: skip
    s.contact("c", *shapes[kind], law=law, wear=Wear(**(numbers | wear)))
    return s


LOOSE = ("ball", "ball at a mouth", "short", "long", "hole", "outline")


@coarse
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("kind", LOOSE)
def test_worn_shapes_keep_energy_and_momentum(kind: str, flip: bool) -> None:
    """Worn first, then without loss: forces and couples of any shape have a potential.

    With 20 µs the steps of RK4 leave 1e-8 of the energy.
    """
    shown = ["kinetic_energy", "potential_energy", "disc.velocity", "ring.velocity", "c.wear",
             "c.pin_wear", "c.contact"]  # fmt: skip
    d = Diagram("pair", step=2e-5)
    s = loose(kind, HuntCrossley(stiffness=1e7), flip)
    d.add(s.block(outputs=shown, **OWN), name="p")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(1200)
        for name in ("wear_coefficient", "pin_wear_coefficient"):
            instance.set(f"p.c.{name}", 0.0)
        energies, momenta, touched = [], [], 0.0
        for _ in range(20):
            instance.run(60)
            instance.evaluate()
            kinetic, potential, disc, ring, wear, pin, touching = (
                np.array(instance.get(f"p.{name}")) for name in shown
            )
            energies.append(kinetic + potential)
            momenta.append(disc + 2 * ring)
            touched += float(touching)
        assert touched > 0
        assert wear.max() > 0.02 * PLAY and pin.max() > 0.01 * PLAY
        assert np.ptp(energies) < 1e-7 * energies[0]
        np.testing.assert_allclose(momenta[-1], momenta[0], atol=1e-12)


@coarse
@pytest.mark.parametrize("kind", ["short", "outline"])
def test_what_worn_shapes_lose_is_their_power_loss(kind: str) -> None:
    shown = ["kinetic_energy", "potential_energy", "power_loss", "c.contact"]
    law = HuntCrossley(stiffness=1e7, damping=2.0, friction=0.1)
    d = Diagram("pair", step=5e-6)
    d.add(loose(kind, law).block(outputs=shown, **OWN), name="p")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(3000)
        for name in ("wear_coefficient", "pin_wear_coefficient"):
            instance.set(f"p.c.{name}", 0.0)
        rows = []
        for _ in range(2000):
            instance.run(1)
            instance.evaluate()
            rows.append([float(instance.get(f"p.{name}")) for name in shown])
    kinetic, potential, loss, touching = np.array(rows[1:]).T
    assert touching.mean() > 0.05
    lost = np.concatenate([[0.0], np.cumsum(0.5 * (loss[1:] + loss[:-1]) * 5e-6)])
    energy = kinetic + potential
    assert lost[-1] > 1e-4 * energy[0]
    assert np.abs(energy + lost - energy[0]).max() < 1e-4 * lost[-1]


# -- state, FMU, sweep


@pytest.mark.parametrize("kind", ["short", "hole"])
def test_a_saved_run_continues_with_the_same_bits(kind: str) -> None:
    law = LankaraniNikravesh(stiffness=1e7, restitution=0.8, friction=0.1)
    d = Diagram("wear", step=1e-5)
    d.add(loose(kind, law).block(outputs=["c.wear"], **OWN), name="p")
    with Instance(d.compile()) as first, Instance(d.compile()) as second:
        first.initialize()
        first.run(800)
        saved = first.save()
        first.run(400)
        second.initialize()
        second.restore(saved)
        second.run(400)
        assert second.save() == first.save()
        first.evaluate()
        assert np.max(first.get("p.c.wear")) > 0


@coarse
def test_an_exported_mechanism_wears_alike(tmp_path: Any) -> None:
    fmpy = pytest.importorskip("fmpy")
    s = pressed("pin", wear_of(1.4, 0.4))
    names = ["pin.worn_volume", "pin.pin_worn_volume", "pin.gap"]
    path = s.export_fmu(tmp_path / "pin.fmu", outputs=names, step=5e-5, sources=False)
    rows = fmpy.simulate_fmu(str(path), stop_time=0.01, output_interval=1e-3, output=names)
    d = Diagram("wear", step=5e-5)
    d.add(s.block(outputs=names), name="p")
    result = simulate(d, 0.01)
    for name in names:
        np.testing.assert_array_equal(rows[name], result[f"p.{name}"][::20])
    assert rows["pin.pin_worn_volume"][-1] > 0


@coarse
def test_sweep_over_the_coefficient_of_wear() -> None:
    """Little wear is proportional to it: the bed shifts the contact by 1e-5 of the radius."""
    d = Diagram("wear", step=5e-5)
    d.add(pressed("ball", wear_of(0.0, 0.0)).block(outputs=["pin.worn_volume"], **OWN), name="p")
    values = [0.0, 1e-3, 2e-3]
    volumes = sweep(
        d, 0.01, {"p.pin.wear_coefficient": values}, lambda r: float(r["p.pin.worn_volume"][-1]),
        progress=False,
    ).array()  # fmt: skip
    assert volumes[0] == 0.0
    assert volumes[2] == pytest.approx(2 * volumes[1], rel=1e-4)
    assert volumes[1] == pytest.approx(1e-3 / HARDNESS * LOAD * RADIUS * SPIN * 0.01, rel=1e-2)


# -- what is refused


def test_shapes_that_cannot_wear_are_refused() -> None:
    s = System("refused", (0, 0, 0))
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)
    ball, law = Sphere(body.marker("m"), RADIUS), HuntCrossley(stiffness=1e6)
    wear = wear_of(1.0, 1.0)
    for other in (Plane(s.ground.marker("plane")), Socket(s.ground.marker("socket"), 0.02)):
        with pytest.raises(
            DiagramError, match=r"which do not wear here: Sphere or Cylinder in a B"
        ):
            s.contact("c", ball, other, law=law, wear=wear)
    bore = Bore(s.ground.marker("bore"), 0.011, 0.1)
    with pytest.raises(DiagramError, match=r"`wear` of `c` is a Wear\(.*got 0.1"):
        s.contact("c", ball, bore, law=law, wear=cast(Any, 0.1))
    s.contact("c", ball, bore, law=law)
    with pytest.raises(DiagramError, match=r"c\.wear"):
        s.block(outputs=["c.wear"])


def test_numbers_of_a_pin_that_wears_are_checked() -> None:
    with pytest.raises(DiagramError, match="`pin_coefficient` of Wear is at least 0"):
        wear_of(1.0, -1.0)
    with pytest.raises(DiagramError, match="`pin_hardness` of Wear is positive, in Pa"):
        Wear(coefficient=1.0, hardness=1e9, length=1.0, pin_coefficient=1.0, pin_hardness=0.0)
    with pytest.raises(DiagramError, match="`pin_hardness` and no `pin_coefficient`"):
        Wear(coefficient=1.0, hardness=1e9, length=1.0, pin_hardness=1e9)
    for kind in ("joint", "ball"):
        d = Diagram("later", step=5e-5)
        d.add(pressed(kind, wear_of(1.0, 1.0)).block(**OWN), name="p")
        with pytest.raises(BiellaError, match="parameter `pin_hardness` of `pin` is 0: it must be"):
            simulate(d, 1e-3, parameters={"p.pin.pin_hardness": 0.0})


@pytest.mark.parametrize("kind", ["joint", "short", "outline"])
def test_hostile_plans_are_refused_or_run(kind: str) -> None:
    """Each integer of the record, changed in many ways, ends in an error or in a run."""
    s = pressed(kind, wear_of(1.0, 1.0)) if kind == "joint" else loose(kind, law_of(kind))
    d = Diagram("hostile", step=1e-5)
    d.add(s.block(outputs=["pin.pin_wear" if kind == "joint" else "c.pin_wear"], **OWN), name="p")
    plan = d.compile()
    integers = read_arrays(plan.sections)["INTS"]
    number, law = contract.MB_WORN, 45 << contract.TOUCH_COUNT_SHIFT
    law += (contract.TOUCH_PIN_BORE if kind == "short" else contract.TOUCH_PIN_HOLE) << (
        contract.TOUCH_PAIR_SHIFT
    )
    if kind == "joint":
        number, law = (
            contract.MB_CONTACT,
            contract.MB_CONTACT_PIN_WEARS + (90 << contract.MB_CONTACT_WEAR_SHIFT),
        )
    starts = [k for k in range(len(integers) - 6)
              if integers[k] == number and integers[k + 4] == law]  # fmt: skip
    odd = (-1, 0, 1, 2, 7, 8, 13, 16, 17, 18, 31, 64, law + 1, law + 2, law + 8, law + 64, law - 64,
           2**30, 2**31 - 1, -(2**31))  # fmt: skip
    refused = 0
    for field in range(6):
        for value in odd:
            try:
                with Instance(with_cell(plan, "INTS", starts[-1] + field, value)) as instance:
                    instance.initialize()
                    instance.run(3)
            except BiellaError:
                refused += 1
    assert refused > 60
