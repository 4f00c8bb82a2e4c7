"""Two FMUs with a terminal ``shaft``: a plant, and a controller that drives it."""

from __future__ import annotations

from biella import Diagram
from biella.blocks import Gain, Pendulum, Sum

PLANT = {"shaft": {"phi": "angle", "w": "speed", "tau": "torque"}}
CONTROLLER = {"shaft": {"tau": "drive", "phi": "measured", "w": "rate"}}


def plant():
    d = Diagram("plant", step=1e-3)
    torque = d.input("torque", unit="N.m")
    pendulum = d.add(Pendulum(angle=0.2, damping=0.1), name="pendulum")
    d.connect(torque, pendulum)
    d.output("angle", pendulum["angle"])
    d.output("speed", pendulum["speed"])
    return d


def controller():
    d = Diagram("controller", step=1e-3)
    measured, rate = d.input("measured", unit="rad"), d.input("rate", unit="rad/s")
    stiffness, damping = d.add(Gain(-2.0), name="stiffness"), d.add(Gain(-0.3), name="damping")
    total = d.add(Sum("++"), name="total")
    d.connect(measured, stiffness)
    d.connect(rate, damping)
    d.connect(stiffness, total["u1"])
    d.connect(damping, total["u2"])
    d.output("drive", d.chain(total, d.add(Gain(1.0, unit="N.m"), name="drive gain")))
    return d
