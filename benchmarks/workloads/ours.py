"""The works as diagrams of biella, and the two ways to write a Python block."""

from __future__ import annotations

from biella import Diagram
from biella.blocks import (
    Constant,
    Gain,
    Integrator,
    PythonBlock,
    Saturation,
    Step,
    Sum,
    python_block,
)
from workloads.works import LINE_GAIN, LINE_PAIRS, LINE_START, PID, STEP


def build_pid() -> Diagram:
    """Make the PID loop of `workloads/works.py`."""
    d = Diagram("pid loop", step=STEP, solver="rk4")
    ref = d.add(Step(at=0.0, to=1.0), name="ref")
    err = d.add(Sum("+-"), name="err")
    kp = d.add(Gain(PID["KP"]), name="kp")
    ki = d.add(Gain(PID["KI"]), name="ki")
    i = d.add(Integrator(0.0), name="i")
    kd = d.add(Gain(PID["KD"]), name="kd")
    lag = d.add(Sum("+-"), name="lag")
    n = d.add(Gain(PID["N"]), name="n")
    filtered = d.add(Integrator(0.0), name="d")
    pid = d.add(Sum("+++"), name="pid")
    sat = d.add(Saturation(-PID["LIMIT"], PID["LIMIT"]), name="sat")
    force = d.add(Sum("+--"), name="force")
    v = d.add(Integrator(0.0), name="v")
    x = d.add(Integrator(0.0), name="x")
    damping = d.add(Gain(PID["C"]), name="damping")
    stiffness = d.add(Gain(PID["K"]), name="stiffness")
    for source, target in [
        (ref, err["u1"]),
        (x, err["u2"]),
        (err, kp),
        (err, ki),
        (err, kd),
        (ki, i),
        (kd, lag["u1"]),
        (filtered, lag["u2"]),
        (lag, n),
        (n, filtered),
        (kp, pid["u1"]),
        (i, pid["u2"]),
        (n, pid["u3"]),
        (pid, sat),
        (sat, force["u1"]),
        (damping, force["u2"]),
        (stiffness, force["u3"]),
        (force, v),
        (v, x),
        (v, damping),
        (x, stiffness),
    ]:
        d.connect(source, target)
    return d


def build_line(pairs: int = LINE_PAIRS) -> Diagram:
    """Make a line of `pairs` gains and integrators; the last block is called `x`."""
    d = Diagram("line", step=STEP, solver="rk4")
    last = d.add(Constant(1.0), name="one")
    for pair in range(pairs):
        gain = d.add(Gain(LINE_GAIN), name=f"gain{pair}")
        name = "x" if pair == pairs - 1 else f"integrator{pair}"
        integrator = d.add(Integrator(LINE_START), name=name)
        d.connect(last, gain)
        d.connect(gain, integrator)
        last = integrator
    return d


BUILD = {"pid": build_pid, "line": build_line}


class Decay(PythonBlock):
    """y = -u / 2, as a class that counts its calls."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"])
        self.calls = 0

    def output(self, t: float, x: object, u: float) -> float:
        self.calls += 1
        return -0.5 * u


@python_block()
def decay(u: float) -> float:
    """y = -u / 2, as a function."""
    return -0.5 * u
