"""The diagram that tests of devices bind: an integrator, and a gain that brings it back."""

from biella import Diagram
from biella.blocks import Gain, Integrator


def loop(start=1.0):
    """Return x' = k = -2 x from x = `start`; either block may be a device."""
    d = Diagram("loop", step=1e-3)
    x = d.add(Integrator(start), name="x")
    k = d.add(Gain(-2.0), name="k")
    d.connect(x, k)
    d.connect(k, x)
    return d
