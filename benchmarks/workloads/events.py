"""Events within a tick: what a tick costs with them, and what a located event costs.

Each diagram runs with `events="locate"` and with `events="tick"`, in turns, over ticks in which no
event occurs. With ``"tick"`` a block that jumps is evaluated once in a tick and held; with
``"locate"`` it is evaluated in every stage, so that part of the ratio is the price of order 4
across its branches, and the rest is what the search for events costs.

A located event is measured on two oscillators: the same diagram, once with an event in every tick
and once with none. All step with `rk4` at 1 ms. Times are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from table import Row, at_most
from turns import Entrant, take_turns, timed

from biella import Diagram
from biella.blocks import Expression, Gain, Integrator, Relay, Saturation, Sign, Sine, Sum
from workloads.ours import build_pid

STEP = 1e-3
LARGEST_IDLE, LARGEST_EVENT = 1.2, 6.0


def build_relay(band: float) -> Diagram:
    """Make a relay and an integrator: x rises and falls between -band and band."""
    d = Diagram("relay", step=STEP, solver="rk4")
    x = d.add(Integrator(0.0), name="x")
    relay = d.add(Relay(band, -band, high=-1.0, low=1.0), name="relay")
    d.connect(x, relay)
    d.connect(relay, x)
    return d


def build_decay() -> Diagram:
    """Make a gain and an integrator."""
    d = Diagram("decay", step=STEP, solver="rk4")
    x = d.add(Integrator(1.0), name="x")
    gain = d.add(Gain(-1e-3), name="gain")
    d.connect(x, gain)
    d.connect(gain, x)
    return d


def build_switched(speed: float) -> Diagram:
    """Make d²x/dt² = -sign(x) from x = 0: parabolas, one event after every 2 · speed seconds."""
    d = Diagram("switched", step=STEP, solver="rk4")
    v, x = d.add(Integrator(speed), name="v"), d.add(Integrator(0.0), name="x")
    side, force = d.add(Sign(), name="side"), d.add(Gain(-1.0), name="force")
    d.chain(x, side, force, v, x)
    return d


def build_servo() -> Diagram:
    """Make a position loop of 20 blocks: four of them have branches, which are not reached."""
    d = Diagram("servo", step=STEP, solver="rk4")
    reference = d.add(Sine(amplitude=0.1, frequency=0.5), name="reference")
    error, feed, drive, torque = (
        d.add(Sum(signs), name=name)
        for signs, name in (("+-", "error"), ("++", "feed"), ("+-", "drive"), ("+--", "torque"))
    )
    kp, ki, kd, back, damping, spring, inertia, current_gain = (
        d.add(Gain(value), name=name)
        for value, name in (
            (2.0, "kp"), (0.5, "ki"), (50.0, "kd"), (0.05, "back"), (0.1, "damping"),
            (1.0, "spring"), (10.0, "inertia"), (50.0, "resistance"),
        )
    )  # fmt: skip
    integral, current, speed, angle = (
        d.add(Integrator(0.0), name=name) for name in ("integral", "current", "speed", "angle")
    )
    voltage = d.add(Saturation(-1e6, 1e6), name="voltage")
    limit = d.add(Saturation(-1e6, 1e6), name="limit")
    stop = d.add(Expression("where(angle > 1e6, 1e3 * (angle - 1e6), 0)", inputs=["angle"]), "stop")
    brake = d.add(Relay(1e6, 1e5, high=1.0, low=0.0), name="brake")
    lost = d.add(Sum("+--"), name="lost")
    for source, target in [
        (reference, error["u1"]), (angle, error["u2"]), (error, kp), (error, ki), (ki, integral),
        (kp, feed["u1"]), (integral, feed["u2"]), (feed, voltage), (voltage, drive["u1"]),
        (speed, back), (back, drive["u2"]), (drive, current_gain), (current_gain, lost["u1"]),
        (current, kd), (kd, lost["u2"]), (brake, lost["u3"]), (lost, current), (current, limit),
        (limit, torque["u1"]), (speed, damping), (damping, torque["u2"]), (angle, spring),
        (spring, torque["u3"]), (torque, inertia), (inertia, speed), (speed, angle),
        (angle, brake),
    ]:  # fmt: skip
        d.connect(source, target)
    hit = d.add(Sum("+-"), name="hit")
    d.connect(angle, stop)
    d.connect(stop, hit["u1"])
    d.connect(speed, hit["u2"])
    return d


def enter(diagram: Diagram, ticks: int, events: str = "locate") -> Entrant:
    """Return the engine on a diagram, beyond its first ticks."""
    instance = diagram.compile(events=events).instantiate()

    def run() -> tuple[float, float | None]:
        instance.reset()
        return timed(lambda: instance.run(ticks), time.process_time)()

    return Entrant(events, run, ticks * STEP, repeats=5)


def measure(ticks: int, rounds: int) -> list[Row]:
    """Measure all; times of one tick in µs."""
    rows: list[Row] = []

    def compare(title: str, peer: str, one: Entrant, other: Entrant, most: float | None) -> None:
        take_turns([one, other], rounds)
        ours, theirs = (e.best / ticks * 1e6 for e in (one, other))
        rows.append(at_most(title, peer, ours, theirs, "µs/tick", most))

    works: dict[str, Callable[[], Diagram]] = {
        "PID loop, 16 blocks": build_pid,
        "servo, 22 blocks": build_servo,
        "relay, integrator": lambda: build_relay(1e6),
    }
    for title, build in works.items():
        compare(
            f"{title}: no event", 'events="tick"', enter(build(), ticks),
            enter(build(), ticks, "tick"), LARGEST_IDLE,
        )  # fmt: skip
    compare(
        "relay, integrator: no event", "gain, integrator", enter(build_relay(1e6), ticks),
        enter(build_decay(), ticks), None,
    )  # fmt: skip
    compare(
        "relay, integrator: an event in every tick", "tick without",
        enter(build_relay(0.5 * STEP), ticks), enter(build_relay(1e6), ticks), LARGEST_EVENT,
    )  # fmt: skip
    compare(
        "x'' = -sign(x): an event in every tick", "tick without",
        enter(build_switched(0.5 * STEP), ticks), enter(build_switched(1e6), ticks), LARGEST_EVENT,
    )  # fmt: skip
    return rows
