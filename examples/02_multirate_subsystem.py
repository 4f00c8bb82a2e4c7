"""Multirate and a subsystem: a cascade of two controllers, one inside the other's period.

The inner loop holds the speed of a mass every 1 ms, the outer one its position every 10 ms. The
inner controller is a diagram of its own, used as a block, and is switched on after 0.1 s.
"""

from biella import Diagram, Subsystem, simulate
from biella.blocks import Compare, Gain, Integrator, Saturation, Scope, Step, Sum, Time


def speed_controller() -> Diagram:
    d = Diagram("speed controller")
    error = d.add(Sum("+-"), name="error")
    p = d.add(Gain(80.0, unit="N"), name="p", period=1e-3)
    limit = d.add(Saturation(-20.0, 20.0), name="limit")
    d.connect(d.input("wanted", unit="m/s", default=None), error["u1"])
    d.connect(d.input("measured", unit="m/s", default=None), error["u2"])
    d.connect(error, p)
    d.connect(p, limit)
    d.output("force", limit)
    return d


def diagram() -> Diagram:
    d = Diagram("position cascade", step=1e-3)
    ref = d.add(Step(at=0.3, to=0.5, unit="m"), name="ref")
    outer_error = d.add(Sum("+-"), name="outer_error")
    outer = d.add(Gain(8.0, unit="m/s"), name="outer", period=10e-3)
    inner = d.add(Subsystem(speed_controller(), enable=True, outputs="reset"), name="inner")
    clock = d.add(Time(), name="clock")
    enable = d.add(Compare(">=", 0.1), name="enable")
    mass = d.add(Gain(1 / 2.0, unit="m/s2"), name="mass")
    speed = d.add(Integrator(), name="speed")
    position = d.add(Integrator(), name="position")

    d.connect(ref, outer_error["u1"])
    d.connect(position, outer_error["u2"])
    d.connect(outer_error, outer)
    d.connect(outer, inner["wanted"])
    d.connect(speed, inner["measured"])
    d.connect(clock, enable)
    d.connect(enable, inner["enable"])
    d.connect(inner, mass)
    d.connect(mass, speed)
    d.connect(speed, position)

    places = d.add(Scope(2, title="position"), name="places")
    d.connect(ref, places["u1"])
    d.connect(position, places["u2"])
    speeds = d.add(Scope(2, title="speed, wanted every 10 ms"), name="speeds")
    d.connect(outer, speeds["u1"])
    d.connect(speed, speeds["u2"])
    forces = d.add(Scope(title="force, every 1 ms"), name="forces")
    d.connect(inner, forces)
    return d


def main() -> None:
    d = diagram()
    print(d.compile().report())
    simulate(d, until=1.5).plot(path="multirate.png")
    d.draw("multirate_diagram.png")


if __name__ == "__main__":
    main()
