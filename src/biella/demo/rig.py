"""The rig of the demo: a slider-crank whose crank pin runs in oil, and the loop around it.

The crank pin of the mechanism is open: the film forces on rod and crank are inputs. The mechanism
is exported as an FMU. The diagram wires that FMU to the film, which is a separate block, and to
the instruments and the controller of a test rig.

The demo writes a copy of this file next to its results. Edit the copy: ``python rig.py`` exports
the mechanism again, ``biella simulate rig.py`` runs the diagram.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# As in any file of a user's, so that the copy works.
from biella import Diagram, Fmu, Subsystem, System
from biella.blocks import (
    ADC,
    DAC,
    PID,
    Demux,
    Encoder,
    Expression,
    Gain,
    Product,
    RateLimiter,
    Scaling,
    Selector,
    ShortBearing,
    StateMachine,
    Step,
    Sum,
    TorqueMeter,
    UnitDelay,
)
from biella.blocks.authoring import AbstractBlock
from biella.blocks.multibody import Input
from biella.blocks.sensors import presets

FMU = Path(__file__).with_name("crank.fmu")
STEP = 1e-3  # s: 1 kHz
CRANK, ROD = 0.05, 0.15  # m
CLEARANCE = 80e-6  # m, of the crank pin
RADIUS, LENGTH, VISCOSITY = 0.015, 0.015, 0.2  # m, m, Pa s
ENCODER = presets.OPTICAL_ENCODER | {"method": "both", "window": 4}
WANTED = 30.0  # rad/s
LOAD = -2.0  # N m, from LOAD_AT on
LOAD_AT = 2.0  # s
OVERLOAD = -5.0  # N m more, from OVERLOAD_AT on
OVERLOAD_AT = 4.0  # s
TORQUE_LIMIT = 5.0  # N m, for TOLERATED at most
TOLERATED = 0.2  # s
REDUCED = 15.0  # rad/s
AMPLIFIER = 1.0  # N m for each V

POSES = [
    f"{body}.{what}" for body in ("crank", "rod", "slider") for what in ("position", "rotation")
]
OUTPUTS = [
    "main.angle", "main.speed", "crank.pin.position", "crank.pin.velocity", "rod.big.position",
    "rod.big.velocity", "rod.angular_velocity", "closure", *POSES,
]  # fmt: skip


def mechanism() -> System:
    """Make the slider-crank, its crank pin open."""
    s = System("slider-crank", gravity=(0.0, -9.81), planar=True)
    crank = s.body("crank", mass=3.0, inertia=0.02, position=(0.0, 0.0))
    rod = s.body("rod", mass=0.8, inertia=2e-3, position=(CRANK + ROD / 2, 0.0))
    slider = s.body("slider", mass=1.0, inertia=1e-3, position=(CRANK + ROD, 0.0))
    main = s.revolute("main", s.ground, crank, at=(0.0, 0.0))
    s.revolute("wrist", rod, slider, at=(CRANK + ROD, 0.0))
    s.prismatic("slide", s.ground, slider, at=(CRANK + ROD, 0.0), axis=(1, 0))
    s.friction("losses", main, viscous=0.02)
    bush, journal = crank.marker("pin", (CRANK, 0.0)), rod.marker("big", (-ROD / 2, 0.0))
    rod.marker("middle")
    for name in ("motor", "load"):
        s.torque(name, main, Input())
    for side, marker in (("journal", journal), ("bush", bush)):
        s.force(f"film_on_{side}", marker, (Input(), Input()))
        s.torque(f"drag_on_{side}", marker, Input())
    return s


def export_plant(path: Path = FMU) -> Path:
    """Write the mechanism as an FMU."""
    return mechanism().export_fmu(path, outputs=OUTPUTS, step=STEP)


def supervisor() -> StateMachine:
    """Make the supervisor: it sets the speed and switches the power stage.

    ``start_up`` waits until the encoder has counted, then lets the reference rise; ``run`` holds
    the speed. A torque above the limit for 0.2 s leads to ``overload``, with a reduced speed, and
    the second time to ``safe``: the power stage is off.
    """
    m = StateMachine(
        inputs={"angle": "rad", "speed": "rad/s", "torque": "N.m"},
        outputs={"speed_wanted": "rad/s", "power": None},
        data={"overloads": 0},
        parameters={"limit": TORQUE_LIMIT, "wanted": WANTED, "reduced": REDUCED},
    )
    start_up = m.state("start_up", power=1, speed_wanted=0)
    wait = start_up.state("wait")
    ramp = start_up.state("ramp", speed_wanted="wanted")
    run = m.state("run", speed_wanted="wanted")
    normal, high = run.state("normal"), run.state("high")
    overload = m.state("overload", speed_wanted="reduced", entry={"overloads": "overloads + 1"})
    safe = m.state("safe", power=0, speed_wanted=0)
    m.transition(wait, ramp, when="abs(angle) > 0.001", after=0.1)
    m.transition(start_up, run, when="speed > 0.95*wanted", priority=1)
    m.transition(start_up, safe, after=2.0, priority=2)
    m.transition(normal, high, when="abs(torque) > limit")
    m.transition(high, normal, when="abs(torque) < 0.9*limit", priority=1)
    m.transition(high, safe, when="overloads > 0", after=TOLERATED, priority=2)
    m.transition(high, overload, after=TOLERATED, priority=3)
    m.transition(overload, run, after=0.3)
    return m


def diagram(fmu: Path = FMU) -> Diagram:
    """Return the loop around the FMU.

    ``amplifier`` is a delay of one tick here; on a rig it is the power stage between the converter
    and the motor, and any device can stand in its place.
    """
    d = Diagram("crank on a rig", step=STEP)
    plant = d.add(Fmu(fmu), name="plant")
    _wire_crank_pin(d, plant)
    ramp = d.add(RateLimiter(60.0, initial=0.0), name="reference", period=STEP)
    encoder = d.add(Encoder(**ENCODER, period=STEP), name="encoder")
    pid = d.add(PID(kp=1.0, ki=6.0, limits=(-10, 10), unit="V", period=STEP), name="pid")
    dac = d.add(DAC(16, (-10.0, 10.0), period=STEP), name="dac")
    amplifier = d.add(UnitDelay(), name="amplifier", period=STEP)
    motor = d.add(Gain(AMPLIFIER, unit="N.m"), name="motor")
    meter = d.add(TorqueMeter(presets.TORQUE_METER, seed=1), name="torque_meter")
    adc = d.add(ADC(16, (-10.0, 10.0), period=STEP), name="adc")
    scaling = Scaling(
        np.divide(1.0, presets.TORQUE_METER.gain).item(), unit="N.m", reading_unit="V"
    )
    measured = d.add(scaling, name="measured_torque")
    watch = d.add(supervisor(), name="supervisor", period=STEP)
    for name, signal in (
        ("angle", encoder["angle"]),
        ("speed", encoder["speed"]),
        ("torque", measured),
    ):
        d.connect(signal, watch[name])
    _wire_load(d, plant, encoder)
    d.connect(plant["main.angle"], encoder)
    d.connect(watch["speed_wanted"], ramp)
    d.connect(ramp, pid["reference"])
    d.connect(encoder["speed"], pid["measurement"])
    command = d.add(Product(), name="command", u1=pid, u2=watch["power"])
    d.connect(command, dac)
    d.connect(dac, amplifier)
    d.connect(amplifier, motor)
    d.connect(motor, plant["motor.torque"], meter)
    d.connect(meter, adc)
    d.connect(adc, measured)
    d.output("speed", plant["main.speed"])
    return d


def _wire_load(d: Diagram, plant: AbstractBlock, encoder: AbstractBlock) -> None:
    """Add a brake: it opposes the rotation, with less torque below 5 rad/s."""
    load = d.add(Step(at=LOAD_AT, to=LOAD, unit="N.m"), name="load")
    more = d.add(Step(at=OVERLOAD_AT, to=OVERLOAD, unit="N.m"), name="overload")
    brake = d.add(
        Expression("(load + overload)*clip(speed/5, -1, 1)", unit="N.m"),
        name="brake",
        period=STEP,
        load=load,
        overload=more,
        speed=encoder["speed"],
    )
    d.connect(brake, plant["load.torque"])


def crank_pin() -> Diagram:
    """Return the film between journal and bush: from their motion to what it does to them."""
    d = Diagram("crank pin", step=STEP)
    film = d.add(ShortBearing(RADIUS, LENGTH, CLEARANCE, VISCOSITY), name="film")
    for what, unit in (("position", "m"), ("velocity", "m/s")):
        apart = d.add(Sum("-+"), name=f"relative_{what}")
        plane = d.add(Selector([0, 1]), name=f"journal_{what}")
        d.connect(d.input(f"bush_{what}", unit=unit, width=3, default=None), apart["u1"])
        d.connect(d.input(f"rod_{what}", unit=unit, width=3, default=None), apart["u2"])
        d.connect(apart, plane)
        d.connect(plane, film[what])
    spin = d.add(Selector([2]), name="spin")
    d.connect(d.input("rod_spin", unit="rad/s", width=3, default=None), spin)
    d.connect(spin, film["journal_speed"])
    d.connect(d.input("crank_speed", unit="rad/s", default=None), film["bush_speed"])
    reaction, drag = d.add(Gain(-1.0), name="reaction"), d.add(Gain(-1.0), name="drag")
    d.connect(film["force"], reaction)
    d.connect(film["torque"], drag)
    for side, force, torque in (
        ("journal", film["force"], film["torque"]),
        ("bush", reaction, drag),
    ):
        parts = d.add(Demux(2), name=f"force_on_{side}")
        d.connect(force, parts)
        d.output(f"{side}_x", parts["y1"])
        d.output(f"{side}_y", parts["y2"])
        d.output(f"{side}_torque", torque)
    return d


def _wire_crank_pin(d: Diagram, plant: AbstractBlock) -> None:
    pin = d.add(Subsystem(crank_pin()), name="crank_pin")
    # The film is stiff: one exchange per tick would oscillate. A tolerance of a millionth of the
    # largest force is far below the error of the exchange (see the table) and saves iterations.
    d.couple(plant, method="newton", extrapolation=1, tolerance=1e-6)
    for what in ("position", "velocity"):
        d.connect(plant[f"crank.pin.{what}"], pin[f"bush_{what}"])
        d.connect(plant[f"rod.big.{what}"], pin[f"rod_{what}"])
    d.connect(plant["rod.angular_velocity"], pin["rod_spin"])
    d.connect(plant["main.speed"], pin["crank_speed"])
    for side in ("journal", "bush"):
        for axis in ("x", "y"):
            d.connect(pin[f"{side}_{axis}"], plant[f"film_on_{side}.force.{axis}"])
        d.connect(pin[f"{side}_torque"], plant[f"drag_on_{side}.torque"])


if __name__ == "__main__":
    print(f"wrote {export_plant()}")
