"""Command files for tests: the two mechanisms, and small models made of a few commands."""

from __future__ import annotations

from pathlib import Path

from biella import Diagram, simulate
from biella.blocks.multibody import read_adams

HERE = Path(__file__).parent
SLIDER_CRANK, MCPHERSON = HERE / "slider_crank.cmd", HERE / "mcpherson.cmd"
ELEMENTS = HERE / "elements.cmd"

UNITS = "defaults units length=mm mass=kg force=newton time=second angle=deg\n"
START = UNITS + "model create model_name=m\n"

BAR = """\
part create rigid_body name_and_position part_name=.m.bar location=100, 0, 0
marker create marker_name=.m.bar.cm location=0, 0, 0 relative_to=.m.bar
marker create marker_name=.m.bar.end location=-100, 0, 0 relative_to=.m.bar
part create rigid_body mass_properties part_name=.m.bar mass=2 center_of_mass_marker=.m.bar.cm &
   ixx=1000 iyy=2000 izz=2500
marker create marker_name=.m.ground.base location=0, 0, 0
"""
"""A bar of 2 kg at x = 0.1 m, with a marker at its center and one at the origin."""

HINGE = (
    "constraint create joint revolute joint_name=.m.hinge i_marker_name=.m.bar.end "
    "j_marker_name=.m.ground.base\n"
)


def write(folder: Path, *texts: str, start: str = START) -> Path:
    """Write a model of a few commands; return its path."""
    path = folder / "model.cmd"
    path.write_text(start + "".join(text.rstrip("\n") + "\n" for text in texts), encoding="utf-8")
    return path


def build(folder: Path, *texts: str, start: str = START):
    """Return the system of a model of a few commands."""
    return read_adams(write(folder, *texts, start=start)).system


def run(system, outputs, until, *, step=1e-3):
    """Return the values of outputs by time."""
    d = Diagram("run", step=step, solver="rk4")
    d.add(system.block(outputs=list(outputs)), name="p")
    result = simulate(d, until, progress=False, error_estimate=False)
    return {name: result[f"p.{name}"] for name in outputs}
