"""First loop: the speed of a motor under a sampled PI controller.

A step of the reference at 0.2 s, a load torque at 1 s; every 5 ms the quantized speed is fed back.
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
    speed = d.add(Integrator(), "speed")
    friction = d.add(Gain(0.05, unit="N.m"), "friction", u=speed)
    load = d.add(Step(at=1.0, to=0.8, unit="N.m"), "load")
    net = d.add(Sum("+--"), "net", u2=load, u3=friction)
    motor = d.add(Gain(1 / 0.02, unit="rad/s2"), "motor")
    d.chain(net, motor, speed)
    # Controller, every 5 ms
    ref = d.add(Step(at=0.2, to=30.0, unit="rad/s"), "ref")
    sampled = d.add(ZeroOrderHold(), "sampled", u=speed, period=5e-3)
    encoder = d.add(Quantizer(0.1), "encoder", u=sampled)
    error = d.add(Sum("+-"), "error", u1=ref, u2=encoder)
    p = d.add(Gain(0.4, unit="N.m"), "p", u=error)
    integral = d.add(DiscreteIntegrator(), "integral", u=error, period=5e-3)
    i = d.add(Gain(2.5, unit="N.m"), "i", u=integral)
    command = d.add(Sum("++"), "command", u1=p, u2=i)
    drive = d.add(Saturation(-6.0, 6.0), "drive", u=command)
    d.connect(drive, net["u1"])

    d.add(Scope(2, title="speed"), "speeds", u1=ref, u2=speed)
    d.add(Scope(2, title="torque"), "torques", u1=drive, u2=load)
    return d


def main() -> None:
    result = simulate(diagram(), until=2.0)
    print(result)
    result.plot(path="first_loop.png")


if __name__ == "__main__":
    main()
