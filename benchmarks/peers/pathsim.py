"""The works in PathSim: fixed-step RK4, nothing recorded.

A step costs five evaluations of the diagram, four stages and one for the new point.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from workloads.works import LINE_GAIN, LINE_PAIRS, LINE_START, PID, STEP

from peers.process import Prepare, serve


def prepare_pid(seconds: float) -> Prepare:
    from pathsim import Connection, Simulation
    from pathsim.blocks import Adder, Amplifier, Clip, Integrator, StepSource
    from pathsim.solvers import RK4

    def prepare() -> Callable[[], float]:
        ref = StepSource(1.0, tau=0.0)
        err, lag, pid, force = Adder("+-"), Adder("+-"), Adder("+++"), Adder("+--")
        kp, ki, kd, n = (Amplifier(PID[name]) for name in ("KP", "KI", "KD", "N"))
        damping, stiffness = Amplifier(PID["C"]), Amplifier(PID["K"])
        i, d, v, x = (Integrator(0.0) for _ in range(4))
        sat = Clip(-PID["LIMIT"], PID["LIMIT"])
        simulation = Simulation(
            [ref, err, kp, ki, i, kd, lag, n, d, pid, sat, force, v, x, damping, stiffness],
            [
                Connection(ref, err[0]),
                Connection(x, err[1], stiffness),
                Connection(err, kp, ki, kd),
                Connection(ki, i),
                Connection(kd, lag[0]),
                Connection(d, lag[1]),
                Connection(lag, n),
                Connection(n, d, pid[2]),
                Connection(kp, pid[0]),
                Connection(i, pid[1]),
                Connection(pid, sat),
                Connection(sat, force[0]),
                Connection(damping, force[1]),
                Connection(stiffness, force[2]),
                Connection(force, v),
                Connection(v, x, damping),
            ],
            dt=STEP,
            Solver=RK4,
            log=False,
        )

        def run() -> float:
            simulation.run(seconds)
            return float(x.outputs[0])

        return run

    return prepare


def prepare_line(seconds: float) -> Prepare:
    from pathsim import Connection, Simulation
    from pathsim.blocks import Amplifier, Constant, Integrator
    from pathsim.solvers import RK4

    def prepare() -> Callable[[], float]:
        blocks = [Constant(1.0)]
        for _ in range(LINE_PAIRS):
            blocks += [Amplifier(LINE_GAIN), Integrator(LINE_START)]
        wires = [Connection(one, other) for one, other in pairwise(blocks)]
        simulation = Simulation(blocks, wires, dt=STEP, Solver=RK4, log=False)

        def run() -> float:
            simulation.run(seconds)
            return float(blocks[-1].outputs[0])

        return run

    return prepare


if __name__ == "__main__":
    serve("pathsim", {"pid": prepare_pid, "line": prepare_line})
