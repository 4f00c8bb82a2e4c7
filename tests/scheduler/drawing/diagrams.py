"""Diagrams that the tests of this folder draw."""

from __future__ import annotations

from biella import Diagram, Subsystem
from biella.blocks import Constant, Gain, Integrator, Sum, UnitDelay


def controller() -> Diagram:
    d = Diagram("controller")
    reference, measurement = d.input("reference"), d.input("measurement")
    error = d.add(Sum("+-"), name="error", period=1e-2)
    kp, ki = d.add(Gain(3.0), name="kp"), d.add(Gain(0.1), name="ki")
    memory, total = d.add(UnitDelay(), name="memory"), d.add(Sum("++"), name="total")
    effort = d.add(Sum("++"))
    d.connect(reference, error["u1"])
    d.connect(measurement, error["u2"])
    d.connect(error, kp, ki)
    d.connect(ki, total["u1"])
    d.connect(memory, total["u2"])
    d.connect(total, memory, effort["u2"])
    d.connect(kp, effort["u1"])
    d.output("effort", effort)
    return d


def multirate() -> Diagram:
    d = Diagram("multirate with a subsystem")
    reference = d.input("reference")
    control = d.add(Subsystem(controller()), name="controller")
    forces = d.add(Sum("+--"), name="forces")
    mass = d.add(Gain(5.0), name="inverse mass")
    v, x = d.add(Integrator(), name="v"), d.add(Integrator(), name="x")
    damping, spring = d.add(Gain(0.4), name="damping"), d.add(Gain(100.0), name="stiffness")
    sensor = d.add(UnitDelay(), name="sensor", period=2e-3)
    d.connect(reference, control["reference"])
    d.connect(control["effort"], forces["u1"])
    d.connect(forces, mass)
    d.connect(mass, v)
    d.connect(v, x, damping)
    d.connect(x, spring, sensor)
    d.connect(damping, forces["u2"])
    d.connect(spring, forces["u3"])
    d.connect(sensor, control["measurement"])
    d.output("position", x)
    d.output("measured", sensor)
    return d


def nested() -> Diagram:
    lag = Diagram("lag")
    u, error = lag.input("u"), lag.add(Sum("+-"))
    gain, state = lag.add(Gain(2.0), name="gain"), lag.add(Integrator(), name="state")
    lag.connect(u, error["u1"])
    lag.connect(error, gain)
    lag.connect(gain, state)
    lag.connect(state, error["u2"])
    lag.output("y", state)
    pair = Diagram("pair")
    command, bias = pair.input("command"), pair.input("bias")
    fast, slow = pair.add(Subsystem(lag), name="fast lag"), pair.add(Subsystem(lag), name="slow")
    mix = pair.add(Sum("++"), name="mix")
    pair.connect(command, fast)
    pair.connect(fast, slow)
    pair.connect(slow, mix["u1"])
    pair.connect(bias, mix["u2"])
    pair.output("mixed", mix)
    pair.output("fast", fast)
    d = Diagram("two nested subsystems")
    one, off = d.add(Constant(1.0), name="one"), d.add(Constant(0.0), name="off")
    on = d.input("on", kind="boolean")
    actuator = d.add(Subsystem(pair, enable=True), name="actuator")
    error, z = d.add(Sum("+-"), name="e"), d.add(UnitDelay(), name="z")
    d.connect(one, error["u1"])
    d.connect(error, actuator["command"])
    d.connect(off, actuator["bias"])
    d.connect(on, actuator["enable"])
    d.connect(actuator["mixed"], z)
    d.connect(z, error["u2"])
    d.output("fast", actuator["fast"])
    d.output("mixed", z)
    return d


def oscillator() -> Diagram:
    d = Diagram("oscillator")
    x, v = d.add(Integrator(1.0), name="x"), d.add(Integrator(), name="v")
    k = d.add(Gain(-4.0), name="k")
    d.connect(v, x)
    d.connect(x, k)
    d.connect(k, v)
    d.output("x", x)
    return d
