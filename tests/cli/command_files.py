"""Files of diagrams that several tests of the command line use."""

from __future__ import annotations

from biella import cli

LOOP = """
from biella import Diagram
from biella.blocks import Constant, Gain, Integrator, Sum

def diagram():
    d = Diagram("first loop", step=0.01)
    ref = d.add(Constant(1.0), name="ref")
    error = d.add(Sum("+-"), name="error")
    k = d.add(Gain(2.0), name="k")
    x = d.add(Integrator(), name="x")
    d.connect(ref, error["u1"])
    d.connect(x, error["u2"])
    d.connect(error, k)
    d.connect(k, x)
    d.output("x", x)
    return d
"""

SLOW = """
import time
from biella import Diagram
from biella.blocks import PythonBlock

class Slow(PythonBlock):
    def __init__(self):
        super().__init__(outputs=["y"], period=0.01)
    def output(self, t, x, u):
        time.sleep(0.005)
        return t

def diagram():
    d = Diagram("slow", step=0.01)
    d.add(Slow(), name="slow")
    return d
"""


def run(*arguments):
    return cli.main([str(a) for a in arguments])
