"""A block that computes slowly, and a diagram around it."""

import time

from biella import Diagram
from biella.blocks import Asynchronous, Gain, Integrator, Port, PythonBlock, Sine

PERIOD = 1e-2


class Planner(PythonBlock):
    """Gives a gain of its input and the mean of all inputs so far, and takes its time."""

    def __init__(self, seconds=0.0, **options):
        super().__init__(
            inputs=[Port("u")],
            outputs=[Port("y"), Port("means", 2)],
            state=[0.0, 0.0],
            **options,
        )
        self.seconds = seconds

    def output(self, t, x, u):
        time.sleep(self.seconds)
        if self.seconds < 0.0 and t > 0.03:
            raise ValueError("no plan")
        return -2.0 * u, [x[0], x[1]]

    def update(self, t, x, u):
        n = x[1] + 1.0
        return [x[0] + (u - x[0]) / n, n]


def loop(planner):
    d = Diagram("slow", step=1e-3)
    reference = d.add(Sine(frequency=3.0), name="ref")
    plan = d.add(Asynchronous(planner, period=PERIOD), name="planner")
    plant = d.add(Integrator(0.0), name="plant")
    old = d.add(Gain(1.0), name="old")
    d.connect(reference, plan)
    d.connect(plan["y"], plant)
    d.connect(plan["age"], old)
    return d
