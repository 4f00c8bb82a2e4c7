"""A slider-crank from a page of Python: bodies, joints, a motor, a moving picture.

Three bodies in a plane; the loop is closed exactly after every step. The motor is an input of the
block, so that a controller can hold the speed.
"""

from biella import Diagram, simulate
from biella.blocks import Gain, Saturation, Scope, Step, Sum
from biella.blocks.multibody import System

CRANK, ROD = 0.1, 0.3  # m


def mechanism() -> System:
    s = System("slider-crank", planar=True)
    crank = s.body("crank", mass=1.0, inertia=2e-3, position=(CRANK / 2, 0))
    rod = s.body("rod", mass=0.8, inertia=6e-3, position=(CRANK + ROD / 2, 0))
    rod.marker("middle")
    slider = s.body("slider", mass=2.0, inertia=1e-3, position=(CRANK + ROD, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("crank_pin", crank, rod, at=(CRANK, 0))
    s.revolute("wrist_pin", rod, slider, at=(CRANK + ROD, 0))
    s.prismatic("slide", s.ground, slider, at=(CRANK + ROD, 0), axis=(1, 0))
    s.torque("motor", main, 0.0)
    s.friction("bearing", main, viscous=0.02)
    return s


def diagram() -> Diagram:
    d = Diagram("crank speed", step=1e-3)
    outputs = ["main.speed", "slider.position", "closure"]
    outputs += [f"{body}.{what}" for body in ("crank", "rod") for what in ("position", "rotation")]
    plant = d.add(mechanism().block(["motor.torque"], [*outputs, "slider.rotation"]), name="plant")
    ref = d.add(Step(at=0.0, to=20.0, unit="rad/s"), name="ref")
    error = d.add(Sum("+-"), name="error")
    p = d.add(Gain(0.8, unit="N.m"), name="p", period=2e-3)
    drive = d.add(Saturation(-8.0, 8.0), name="drive")
    d.connect(ref, error["u1"])
    d.connect(plant["main.speed"], error["u2"])
    d.connect(error, p)
    d.connect(p, drive)
    d.connect(drive, plant["motor.torque"])
    speeds = d.add(Scope(2, title="speed of the crank"), name="speeds")
    d.connect(ref, speeds["u1"])
    d.connect(plant["main.speed"], speeds["u2"])
    d.connect(drive, d.add(Scope(title="torque of the motor"), name="torque"))
    return d


def main() -> None:
    result = simulate(diagram(), until=1.5, record=["*"])
    print(f"largest closure error: {result['plant.closure'].max():.1e} m")
    result.plot(path="crank_speed.png")
    mechanism().draw("slider_crank.png")
    mechanism().animate(result, "slider_crank.gif", traces=["rod.middle"])


if __name__ == "__main__":
    main()
