"""The PID loop in bdsim.

bdsim integrates with `scipy.integrate.solve_ivp`, whose methods choose their own step, so it is
given a classical RK4 of fixed step through solve_ivp's own door for foreign methods. Only the end
point is asked for (`dt` = the whole run), so that a step costs four evaluations of the diagram and
no more.
"""

from __future__ import annotations

from collections.abc import Callable

from workloads.works import PID, STEP, ticks

from peers.process import Prepare, serve


def prepare_pid(seconds: float) -> Prepare:
    import bdsim
    import numpy as np
    from scipy.integrate import DenseOutput, OdeSolver

    class Chord(DenseOutput):
        """Straight line through the two ends of a step: it is asked only at an end."""

        def __init__(self, t_old, t, y_old, y):
            super().__init__(t_old, t)
            self.y_old, self.y = y_old, y

        def _call_impl(self, t):
            weight = (np.atleast_1d(t) - self.t_old) / (self.t - self.t_old)
            y = np.outer(self.y_old, 1.0 - weight) + np.outer(self.y, weight)
            return y if np.ndim(t) else y[:, 0]

    class RK4(OdeSolver):
        def __init__(self, fun, t0, y0, t_bound, vectorized, **_):
            super().__init__(fun, t0, y0, t_bound, vectorized)
            self.start, self.tick = t0, 0

        def _step_impl(self):
            f, t, y, h = self.fun, self.t, self.y, STEP
            k1 = f(t, y)
            k2 = f(t + 0.5 * h, y + 0.5 * h * k1)
            k3 = f(t + 0.5 * h, y + 0.5 * h * k2)
            k4 = f(t + h, y + h * k3)
            self.y_old, self.y = y, y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            self.tick += 1
            last = self.tick == ticks(self.t_bound - self.start)
            self.t = self.t_bound if last else self.start + self.tick * h
            return True, None

        def _dense_output_impl(self):
            return Chord(self.t_old, self.t, self.y_old, self.y)

    simulator = bdsim.BDSim(graphics=False, progress=False, quiet=True, banner=False)

    def prepare() -> Callable[[], float]:
        bd = simulator.blockdiagram()
        ref = bd.STEP(T=0.0, off=0.0, on=1.0)
        err, lag, pid, force = bd.SUM("+-"), bd.SUM("+-"), bd.SUM("+++"), bd.SUM("+--")
        kp, ki, kd, n = (bd.GAIN(PID[name]) for name in ("KP", "KI", "KD", "N"))
        damping, stiffness = bd.GAIN(PID["C"]), bd.GAIN(PID["K"])
        i, d, v, x = (bd.INTEGRATOR(0.0, name=name) for name in ("i", "d", "v", "x"))
        sat = bd.CLIP(-PID["LIMIT"], PID["LIMIT"])
        bd.connect(ref, err[0])
        bd.connect(x, err[1], stiffness)
        bd.connect(err, kp, ki, kd)
        bd.connect(ki, i)
        bd.connect(kd, lag[0])
        bd.connect(d, lag[1])
        bd.connect(lag, n)
        bd.connect(n, d, pid[2])
        bd.connect(kp, pid[0])
        bd.connect(i, pid[1])
        bd.connect(pid, sat)
        bd.connect(sat, force[0])
        bd.connect(damping, force[1])
        bd.connect(stiffness, force[2])
        bd.connect(force, v)
        bd.connect(v, x, damping)
        bd.compile()

        def run() -> float:
            result = simulator.run(bd, T=seconds, dt=seconds, solver_args={"method": RK4})
            position = next(k for k, name in enumerate(result.xnames) if name.startswith("x"))
            return float(result.x[-1, position])

        return run

    return prepare


if __name__ == "__main__":
    serve("bdsim", {"pid": prepare_pid})
