"""First loop: the speed of a motor under a sampled PI controller.

A step of the reference at 0.2 s, a load torque at 1 s; every 5 ms the quantised speed is fed back.
"""

from biella import Diagram, simulate
from biella.blocks import (
    DiscreteIntegrator,
    Gain,
    Integrator,
    Quantizer,
    Saturation,
    Scope,
    Step,
    Sum,
    ZeroOrderHold,
)


def diagram() -> Diagram:
    d = Diagram("motor speed", step=1e-3, solver="rk4")
    # Motor: J dω/dt = torque - load - b ω
    net = d.add(Sum("+--"), name="net")
    motor = d.add(Gain(1 / 0.02, unit="rad/s2"), name="motor")
    speed = d.add(Integrator(), name="speed")
    friction = d.add(Gain(0.05, unit="N.m"), name="friction")
    load = d.add(Step(at=1.0, to=0.8, unit="N.m"), name="load")
    # Controller, every 5 ms
    ref = d.add(Step(at=0.2, to=30.0, unit="rad/s"), name="ref")
    sampled = d.add(ZeroOrderHold(period=5e-3), name="sampled")
    encoder = d.add(Quantizer(0.1), name="encoder")
    error = d.add(Sum("+-"), name="error")
    p = d.add(Gain(0.4, unit="N.m"), name="p")
    integral = d.add(DiscreteIntegrator(period=5e-3), name="integral")
    i = d.add(Gain(2.5, unit="N.m"), name="i")
    command = d.add(Sum("++"), name="command")
    drive = d.add(Saturation(-6.0, 6.0), name="drive")

    d.connect(ref, error["u1"])
    d.connect(speed, friction, sampled)
    d.connect(sampled, encoder)
    d.connect(encoder, error["u2"])
    d.connect(error, p, integral)
    d.connect(integral, i)
    d.connect(p, command["u1"])
    d.connect(i, command["u2"])
    d.connect(command, drive)
    d.connect(drive, net["u1"])
    d.connect(load, net["u2"])
    d.connect(friction, net["u3"])
    d.connect(net, motor)
    d.connect(motor, speed)

    d.connect(ref, d.add(Scope(2, title="speed"), name="speeds")["u1"])
    d.connect(speed, "speeds.u2")
    d.connect(drive, d.add(Scope(2, title="torque"), name="torques")["u1"])
    d.connect(load, "torques.u2")
    return d


def main() -> None:
    result = simulate(diagram(), until=2.0)
    print(result)
    result.plot(path="first_loop.png")


if __name__ == "__main__":
    main()
