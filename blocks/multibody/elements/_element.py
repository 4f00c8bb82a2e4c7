"""Base class of the elements of a mechanism: the operations called by the rest of the package.

An element is a frozen dataclass in a separate file, with the method of `System` that creates it,
and a file of the same name in C. `table` lists all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ...core._ports import Kind, Parameter
from ..joints._joint import Joint
from ..system._bodies import Marker
from ..system._laws import AbstractLaw
from ..system._rotations import Array

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..drawing._strokes import Stroke
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True)
class Output:
    """An available output of an element.

    Attributes
    ----------
    number
        Index of the quantity in the C file of the element; unused for power, energy and effort.
    unit, doc, width, kind
        As in `Port`.
    follows
        Inputs with direct feedthrough to it. ``"motion"``: those that move its markers. ``"laws"``:
        those of its laws too. ``"solution"``: all, because it needs accelerations.
    of
        Where the kernel finds it: a quantity of the ``"element"``, its ``"power"`` or ``"energy"``,
        or the ``"effort"`` of its constraint.
    """

    number: int
    unit: str | None
    doc: str
    width: int = 1
    follows: Literal["motion", "laws", "solution"] = "motion"
    kind: Kind = "real"
    of: Literal["element", "power", "energy", "effort"] = "element"


def power(follows: Literal["laws", "solution"] = "laws") -> Output:
    """Return the output for the power of an element."""
    return Output(0, "W", "rate of the work done on the bodies", follows=follows, of="power")


def energy() -> Output:
    """Return the output for the energy of an element."""
    return Output(0, "J", "stored energy", of="energy")


class AbstractElement:
    """What all parts between bodies have; `Element` acts by force, `Constraint` by an equation.

    Class attributes
    ----------------
    kernel
        Its number in ``elements/table.c``.
    is_load
        Whether drawings show it in the color of loads.
    """

    __slots__ = ()

    kernel: ClassVar[int]
    is_load: ClassVar[bool] = False
    name: str

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        raise NotImplementedError

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        raise NotImplementedError

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        raise NotImplementedError

    @property
    def type_number(self) -> int:
        """Return its index in ``elements/table.c``."""
        return self.kernel

    def laws(self) -> Iterator[tuple[str, AbstractLaw]]:
        """Yield its laws by path."""
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, AbstractLaw):
                yield f"{self.name}.{item.name}", value

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return its symbol."""
        return []

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them, None if it has no label."""
        return None


class Element(AbstractElement):
    """What acts on bodies by a force."""

    __slots__ = ()

    @property
    def ends(self) -> tuple[Marker, Marker] | None:
        """Return the two markers that it ties softly together, None if it ties none."""
        return None

    @property
    def acts_on(self) -> Joint | None:
        """Return the joint whose coordinate it acts on; the tree has that cheaper than a loop."""
        return None

    @property
    def row_count(self) -> int:
        """Return how many constraint equations it has."""
        return 0

    @property
    def is_contact(self) -> bool:
        """Return whether it has impacts, which are over in a few steps."""
        return False

    @property
    def is_rigid(self) -> bool:
        """Return whether its contact has no compliance: rows that hold at times."""
        return False

    @property
    def rigid_closures(self) -> int:
        """Return how many closures the rows of its rigid contact are."""
        return int(self.is_rigid)

    def rigid_rows(
        self, tables: Tables, number: int
    ) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        """Yield the rows and the path of each of these, for its number among the forces."""
        return iter(())

    @property
    def sticks(self) -> bool:
        """Return whether it may hold a joint at rest."""
        return False

    @property
    def follows_reaction_of(self) -> Joint | None:
        """Return the joint whose reaction its force follows from."""
        return None

    @property
    def may_be_stiff(self) -> bool:
        """Return whether it may make a motion too fast for a step."""
        return True

    @property
    def play(self) -> float | None:
        """Return the distance in m over which its force is nowhere near linear."""
        return None

    def tie(self, depth: float) -> Element:
        """Return a linear element that is like its contact at a depth, as a part of its play."""
        return self

    def problems(self) -> list[str]:
        """Return its problems in the context of the whole system."""
        return []

    def doubt(self) -> str:
        """Return a warning of results that are not to be trusted, or nothing."""
        return ""

    def measure(self, at: LoadState, items: Any, what: str) -> Any:
        """Return an output at a state, for formulas that read it; None if it is not known there."""
        return None

    # -- in the reference formulations's equations

    def reserve(self, shapes: Shapes) -> Any:
        """Return the points and scalars that its load reads, see `push`."""
        return None

    def push(self, at: LoadState, items: Any) -> None:
        """Add its generalized force at a state, with the items from `reserve`."""
        raise NotImplementedError

    def draw_mount(self, at: Array, away: Array, line: Array, k: float) -> list[Stroke]:
        """Return the symbol of the support at an end on the ground.

        `away` points to where there is room, `line` along the element; `k` is the size of symbols.
        """
        return []


@dataclass(frozen=True, slots=True)
class Term:
    """A joint coordinate in an equation, with its factor."""

    joint: Joint
    coordinate: int
    factor: float


class Constraint(AbstractElement):
    """An equation between joint coordinates and time: Φ = Σ factor · x - law(t) = 0.

    With the equations of motion M q̈ + Φ_qᵀ λ = Q the effort on the coordinate x is -factor · λ.

    Class attributes
    ----------------
    driven
        Whether a law of time prescribes it: `System.drivers`. Others are `System.couplings`.
    general
        What it is instead of such a sum: a ``"formula"`` of the terms, or ``"rolling"``.
    """

    __slots__ = ()

    driven: ClassVar[bool] = False
    general: ClassVar[str] = ""

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the coordinates in the equation; the unit of Φ is that of the last one."""
        raise NotImplementedError

    @property
    def right_side(self) -> AbstractLaw:
        """Return the law that the sum of the terms follows."""
        raise NotImplementedError

    @property
    def turns(self) -> bool:
        """Return whether Φ is an angle."""
        last = self.terms[-1]
        return last.joint.coordinates[last.coordinate].kind == "angle"

    def row(self, tables: Tables) -> tuple[list[int], list[list[int]]]:
        """Return the integers of its row in the kernel, and the path: the speeds in the row."""
        raise NotImplementedError
