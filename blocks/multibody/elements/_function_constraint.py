"""What constraints by formula and by curve share: a function Ψ(x, t) of coordinates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .... import _contract as contract
from ..analysis._jets import Jet
from ..system._laws import AbstractLaw, Constant
from ._element import Constraint, Output, Term, power

if TYPE_CHECKING:
    from ..plant._tables import Tables


class FunctionConstraint(Constraint):
    """A constraint Ψ(x, t) = 0, which gives its values and derivatives as jets."""

    __slots__ = ()

    name: str

    @abstractmethod
    def jet(self, coordinates: Sequence[Jet], time: Jet) -> Jet:
        """Return Ψ and its first two derivatives along a motion of coordinates and time."""

    @abstractmethod
    def law(self, tables: Tables, records: list[int]) -> int:
        """Return the number of the law of its row, whose coordinates have these records."""

    @property
    def right_side(self) -> AbstractLaw:
        """Return 0."""
        return Constant(0.0)

    @property
    def turns(self) -> bool:
        """Return whether Ψ is an angle: not known of a function."""
        return False

    def value(self, coordinates: Sequence[float], t: float) -> float:
        """Return Ψ."""
        return self.jet([(x, 0.0, 0.0) for x in coordinates], (t, 0.0, 0.0))[0]

    def gradient(self, coordinates: Sequence[float], t: float) -> tuple[list[float], float]:
        """Return ∂Ψ/∂x of each coordinate, and ∂Ψ/∂t."""
        count = len(coordinates)
        found = [
            self.jet([(x, float(k == n), 0.0) for k, x in enumerate(coordinates)], (t, 0.0, 0.0))[1]
            for n in range(count)
        ]
        return found, self.jet([(x, 0.0, 0.0) for x in coordinates], (t, 1.0, 0.0))[1]

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        doc = f"multiplier of {self.name}: the effort on x is force times its derivative by x"
        return {
            "force": Output(0, None, doc, 1, "solution", of="effort"),
            "power": power("solution"),
        }

    def row(self, tables: Tables) -> tuple[list[int], list[list[int]]]:
        """Return the integers of its row in the kernel, and the path: the speeds in the row."""
        records: list[int] = []
        paths: dict[int, list[int]] = {}
        for term in self.terms:
            place, path = _find(tables, term)
            records += place
            paths |= {speed: [speed, *rest] for speed, *rest in path}
        law = self.law(tables, records)
        return [contract.MB_ROW_FORMULA, 0, 0, 0, 0, law], list(paths.values())


def _find(tables: Tables, term: Term) -> tuple[list[int], list[list[int]]]:
    """Return the record of a coordinate, and the speeds that move it."""
    at = tables.coordinate(term.joint, term.coordinate)
    known = tables.tree.coordinates.get((term.joint.name, term.coordinate))
    if known is None:
        return [at.q, at.sign], tables.path(term.joint.first, term.joint.second)
    return [known.link, at.sign], [[known.v, known.link, 0, 1]]
