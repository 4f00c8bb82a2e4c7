"""Card sets for tests: the printed ones, and copies with changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from biella import Diagram, simulate

from ..elements.formula import card_mechanism

DATA = Path(__file__).parent / "data"
SLIDER_CRANK, FIVE_BAR = DATA / "slider_crank", DATA / "five_bar"
START = "Initial Configuration.s3d"


def copy(to: Path, source: Path = SLIDER_CRANK) -> Path:
    """Return a copy of a card set in a new folder, without the sample driver."""
    shutil.copytree(source, to, ignore=shutil.ignore_patterns("driver_example"))
    return to


def change(folder: Path, card: str, old: str, new: str) -> Path:
    """Replace a text that stands in a card; return the folder."""
    path = folder / card
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def run(system, outputs, until, *, step=1e-3, **options):
    """Return the values of outputs by time."""
    d = Diagram("run", step=step)
    d.add(system.block(outputs=list(outputs), **options), name="p")
    result = simulate(d, until)
    return [result[f"p.{name}"] for name in outputs]


def close(folder, sign=1.0):
    """Give a slider-crank the pose of the mechanism described by hand, which is closed.

    `sign` is that of the Euler parameters.
    """
    lines = ["NumDyn3D ver. 7.0a"]
    for number, body in enumerate(card_mechanism.build().bodies, 1):
        angle = np.arctan2(body.rotation[1, 0], body.rotation[0, 0])
        e0, e3 = sign * np.cos(angle / 2), sign * np.sin(angle / 2)
        q = [*body.position, e0, 0.0, 0.0, e3]
        lines += [f"begin({number})", *(f"q{n}={float(x)!r}" for n, x in enumerate(q, 1))]
        lines += [f"end({number})"]
    (folder / START).write_text("\n".join(lines))
    return folder
