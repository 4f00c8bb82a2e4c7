"""Methods side by side: time, constraint error, stability and energy error.

For the slider-crank the figures of [O, Table 4.4] stand beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from ....errors import DiagramError
from ...core._vectors import require_choice
from .. import mechanisms
from ..equations._assembly import assemble, consistent_velocity
from ..equations._redundancy import report_redundancy
from ..system._system import System
from ._runs import (
    INDEX_3,
    LIMIT,
    QTZ_INDEPENDENT,
    Coordinates,
    Integrator,
    Projection,
    make_model,
    run,
)

Made = Callable[[], System]


def _slider_crank(pins: Any) -> Made:
    return lambda: mechanisms.slider_crank(pins, drive="as listed")


MECHANISMS: dict[str, dict[bool, Made]] = {
    "slider-crank": {False: _slider_crank("spherical"), True: _slider_crank("revolute")},
    "five-bar": {True: mechanisms.five_bar},
    "mcpherson": {False: mechanisms.mcpherson},
    "pendulum-on-cart": {False: mechanisms.pendulum_on_cart},
    "four-bar": {
        False: mechanisms.four_bar,
        True: lambda: mechanisms.four_bar(planar=False),
    },
}
"""Mechanisms by name, without and with redundant constraints."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table: a method with the correction after each step."""

    label: str
    method: str
    projection: Projection = "none"
    options: dict[str, Any] = field(default_factory=dict)


OLDANI = (
    Entry("BMG", "baumgarte", options={"alpha": 10.0, "beta": 10.0}),
    Entry("ALF", "augmented lagrangian", options={"omega": 200.0}),
    Entry("ALF PRJ", "augmented lagrangian", "position"),
    Entry("ALF PRJ 2", "augmented lagrangian", "both"),
)
"""The lines of [O, Table 4.4]. Its gains are not printed: α = β = 10 stand in a comment of listing
A.1, ω = 200 1/s for ALF is ours."""

OTHERS = (
    Entry("index 1", "kkt"),
    Entry("penalty", "penalty"),
    Entry("index 3", INDEX_3),
    Entry("partition LU", "partitioning lu", "partition"),
    Entry("partition G-J", "partitioning gauss-jordan", "partition"),
    Entry("partition QR", "partitioning qr", "partition"),
    Entry("null space SVD", "null space svd", "both"),
    Entry("null space QR", "null space qr", "both"),
    Entry("U-K SVD", "udwadia-kalaba svd", "both"),
    Entry("U-K Greville", "udwadia-kalaba greville", "both"),
    Entry("U-K Varga", "udwadia-kalaba varga", "both"),
    Entry("U-K Householder", "udwadia-kalaba householder", "both"),
    Entry("U-K Gram-Schmidt", "udwadia-kalaba gram-schmidt", "both"),
    Entry("QTZ", "qtz", "both"),
    Entry("QTZ independent", QTZ_INDEPENDENT, "position"),
)
"""What the thesis does not compare."""

# CPU time in s and largest error of [O, Table 4.4]; None is "unstable".
_Cells = dict[float, tuple[float, float] | None]
_U: _Cells = {1e-4: None, 1e-3: None, 1e-2: None}
PUBLISHED: dict[tuple[str, bool], _Cells] = {
    ("BMG", False): {1e-4: (27.047, 2.453e-3), 1e-3: (2.609, 2.788e-2), 1e-2: None},
    ("BMG", True): _U,
    ("ALF", False): {1e-4: (50.204, 4.202e-4), 1e-3: (4.844, 4.742e-3), 1e-2: None},
    ("ALF", True): {1e-4: (51.750, 4.202e-4), 1e-3: (5.828, 4.742e-3), 1e-2: None},
    ("ALF PRJ", False): {
        1e-4: (53.531, 2.267e-10),
        1e-3: (6.078, 3.192e-9),
        1e-2: (0.734, 2.675e-8),
        1e-1: None,
    },
    ("ALF PRJ", True): {
        1e-4: (61.594, 2.267e-10),
        1e-3: (5.687, 3.192e-9),
        1e-2: (0.781, 2.675e-8),
        1e-1: None,
    },
    ("ALF PRJ 2", False): {
        1e-4: (57.578, 1.857e-10),
        1e-3: (5.843, 1.748e-9),
        1e-2: (0.671, 1.051e-8),
        1e-1: None,
    },
    ("ALF PRJ 2", True): {
        1e-4: (61.000, 1.185e-10),
        1e-3: (6.218, 1.748e-9),
        1e-2: (0.672, 1.051e-8),
        1e-1: None,
    },
}
"""By method and redundancy: by step, CPU time in s and largest error, or None where unstable."""


_HEADINGS = ("method", "redundant", "step s", "CPU s", "largest |Φ|", "energy error J")
_LEGEND = (
    "BMG: Baumgarte's stabilization. ALF: augmented Lagrangian; PRJ: positions are projected on "
    "the constraints after each step, PRJ 2: velocities too. |Φ|: how far the constraints are from "
    "holding. Energy error: the largest change of kinetic energy plus that of gravity, less the "
    "work of all other forces and of drivers; 0 for an exact solution. Stable: |Φ| stays below "
    f"{LIMIT:g}; whether the motion is right, the energy error shows."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One run: what it was, what came out, and what was published for it.

    `error` is the largest |Φ|, `drift` the energy error in J; see `Run`.
    """

    method: str
    redundant: bool
    step: float
    cpu: float
    error: float
    drift: float
    stable: bool
    reason: str
    published: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """All runs of a comparison; its text is a table."""

    title: str
    lines: tuple[Line, ...]

    def table(self) -> Table:
        """Return the table for a terminal."""
        table = Table(title=self.title, caption=_LEGEND, caption_justify="left")
        published = any(line.published for line in self.lines)
        for name in (*_HEADINGS, "outcome"):
            table.add_column(name, justify="right" if name.endswith(("s", "J", "|")) else "left")
        if published:
            table.add_column("published: CPU s, error", justify="right")
        for line in self.lines:
            cells = [line.method, "yes" if line.redundant else "no", f"{line.step:g}"]
            cells += [f"{line.cpu:.3f}", f"{line.error:.3e}", f"{line.drift:.2e}"]
            cells += ["stable" if line.stable else f"fails at {line.reason}"]
            table.add_row(*cells, *([line.published] if published else []))
        return table

    def __str__(self) -> str:
        console = Console(width=180)
        with console.capture() as capture:
            console.print(self.table())
        return capture.get()


def compare(
    mechanism: str | System = "slider-crank",
    *,
    steps: Sequence[float] = (1e-2, 1e-3),
    until: float = 5.0,
    every: bool = False,
    methods: Sequence[str] = (),
    coordinates: Coordinates = "natural",
    integrator: Integrator = "position-first",
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Run a mechanism by every method and step, without and with redundant constraints.

    Parameters
    ----------
    mechanism
        A key of `MECHANISMS`, or a system.
    steps, until
        In s. [O] has 1e-4 too, which takes a minute for each line.
    every
        Also the methods that [O] does not compare.
    methods
        Labels of the methods to run, such as ``("ALF PRJ", "QTZ")``; instead of `every`.
    coordinates
        Of spatial mechanisms: ``"natural"`` or ``"euler"``.
    integrator
        Of all methods but index 3; [O] calls its own semi-implicit and does not write it out. With
        the position first all projected runs are stable, as published.
    progress
        Called with the name of each run before it starts.
    """
    if isinstance(mechanism, System):
        own, title = mechanism, mechanism.name
        model = make_model(own, coordinates)
        q = assemble(model)
        v, _ = consistent_velocity(model, 0.0, q)
        over = report_redundancy(model, 0.0, q, v).redundant > 0
        cases: dict[bool, Made] = {over: lambda: own}
    else:
        require_choice("mechanism", mechanism, tuple(MECHANISMS))
        cases, title = MECHANISMS[mechanism], mechanism
    entries = {entry.label: entry for entry in (*OLDANI, *OTHERS)}
    for label in methods:
        require_choice("a method", label, tuple(entries))
    chosen = [entries[label] for label in methods] or [*OLDANI, *(OTHERS if every else ())]
    if not steps:
        raise DiagramError("a comparison needs at least one step.")
    lines = []
    for entry in chosen:
        for redundant, make in cases.items():
            for step in steps:
                if progress is not None:
                    progress(f"{entry.label}, {'redundant, ' if redundant else ''}{step:g} s")
                done = run(
                    make(),
                    entry.method,
                    step=step,
                    until=until,
                    coordinates=coordinates,
                    integrator=integrator,
                    projection=entry.projection,
                    options=entry.options,
                )
                cells = PUBLISHED.get((entry.label, redundant), {})
                published = ""
                if mechanism == "slider-crank" and step in cells:
                    cell = cells[step]
                    published = "unstable" if cell is None else f"{cell[0]:.3f}  {cell[1]:.3e}"
                lines.append(
                    Line(
                        entry.label,
                        redundant,
                        step,
                        done.cpu,
                        done.error,
                        done.drift,
                        done.stable,
                        done.reason.split(":")[0],
                        published,
                    )
                )
    kind = "planar" if cases[lines[-1].redundant]().planar else coordinates
    return Comparison(
        f"{title}, {until:g} s of motion, {kind} coordinates, {integrator}", tuple(lines)
    )
