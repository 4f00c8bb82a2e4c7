"""A speed loop, and a rig.toml without mistakes that binds its controller."""

from __future__ import annotations

from biella import Diagram
from biella.blocks import PID, Gain, Integrator, Mux, Step


def diagram():
    """A speed loop, and a vector of two beside it."""
    d = Diagram("loop", step=1e-3)
    ref = d.add(Step(at=0.0, to=30.0, unit="rad/s"), name="ref")
    pid = d.add(PID(kp=2.0, ki=1.0, period=1e-3, unit="N.m"), name="pid")
    x = d.add(Integrator(0.0), name="x")
    speed = d.add(Gain(0.2, unit="rad/s"), name="speed")
    d.connect(ref, pid["reference"])
    d.connect(speed, pid["measurement"])
    d.connect(pid["y"], x)
    d.connect(x, speed)
    pair = d.add(Mux(2), name="pair")
    d.connect(speed, pair["u1"])
    d.connect(ref, pair["u2"])
    twice = d.add(Gain(2.0), name="twice")
    d.connect(pair, twice)
    return d


GOOD = """
[run]
clock = "wall"
overrun = "skip"
max_consecutive_overruns = 5

[devices.board]
driver = "loopback"
on_loss = "stop"

[devices.board.receive.torque]
unit = "N*m"
limits = [-40, 40]
safe = 0

[devices.board.receive.spare]

[devices.board.send.speed]
unit = "rad/s"
safe = 0

[devices.board.send.reference]
unit = "rad/s"
safe = 0

[blocks.pid]
device = "board"
inputs = { measurement = "speed", reference = "reference" }
outputs = { y = "torque" }
"""
