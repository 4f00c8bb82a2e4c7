"""A diagram to show."""

from biella import Diagram
from biella.blocks import Gain, Integrator, Sine, Sum
from biella.blocks.multibody import System


def make_loop():
    d = Diagram("loop", step=1e-3)
    error = d.add(Sum("+-"), "error", u1=d.add(Sine(frequency=2.0), "ref"))
    x = d.add(Integrator(), "x", u=d.add(Gain(8.0), "k", u=error))
    d.connect(x, error["u2"])
    return d


def make_sled():
    system = System("sled", gravity=(0.0, 0.0), planar=True)
    sled = system.body("sled", mass=2.0, inertia=0.1)
    system.prismatic("rail", system.ground, sled, at=(0.0, 0.0), axis=(1, 0))
    d = Diagram("sled", step=1e-3)
    d.add(system.block(outputs=["sled.velocity"]), name="plant")
    return d
