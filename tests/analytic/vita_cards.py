"""The slider-crank of Vita's sample cards, with three redundant rows [V 4.2]."""

from biella import System
from biella.blocks.multibody import Body


def make_cards(name: str) -> tuple[System, Body, Body]:
    """Return the mechanism without its loads, its crank and its piston."""
    s = System(name, (0, 0, -9.81))
    crank = s.body(
        "crank",
        mass=0.2,
        inertia=(3.4e-6, 1e-3, 1e-3),
        position=(0.108, -0.0625, 0),
        rotation=(0.9658738845942, 0, 0, -0.259012816399),
    )
    rod = s.body(
        "rod",
        mass=0.4,
        inertia=(6.79e-6, 8e-3, 8e-3),
        position=(0.459, -0.0625, 0),
        rotation=(0.9920095389772, 0, 0, 0.1261628890689),
    )
    piston = s.body("piston", mass=3.22, inertia=(0.0022, 0.00378, 0.00378), position=(0.661, 0, 0))
    z = (0, 0, 1)
    s.revolute("main", s.ground.marker("m", axis=z), crank.marker("m", (-0.125, 0, 0), axis=z))
    s.revolute(
        "pin", crank.marker("p", (0.125, 0, 0), axis=z), rod.marker("p", (-0.25, 0, 0), axis=z)
    )
    s.revolute(
        "wrist", rod.marker("w", (0.25, 0, 0), axis=z), piston.marker("w", (0.04, 0, 0), axis=z)
    )
    s.prismatic("slide", s.ground, piston, at=(0.5, 0, 0), axis=(1, 0, 0))
    return s, crank, piston
