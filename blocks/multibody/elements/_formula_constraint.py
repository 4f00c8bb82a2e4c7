"""Constraints that a formula gives: Ψ(x, t) = 0 of coordinates of the mechanism and time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .... import _contract as contract
from ....errors import DiagramError, name_list
from ...core._ports import Parameter, parameter
from ...core.formula._formula import (
    TIME,
    Apply,
    Chain,
    Formula,
    Number,
    Variable,
    fetch_input,
    fetch_parameter,
    fetch_time,
    read_formula,
)
from ...core.formula._formula import Term as FormulaTerm
from ..analysis._jets import Jet, evaluate
from ..system._bodies import Marker
from ..system._parts import Parts
from ..system._reading import read_number, suggest_keywords
from ._element import Term
from ._function_constraint import FunctionConstraint
from ._named_coordinates import find_coordinate, relative_coordinates

if TYPE_CHECKING:
    from ..plant._tables import Tables

_ROUGH = {
    *("select", "clip", "min", "max", "abs", "sign", "floor", "ceil", "round", "floor_divide"),
    *("modulo", "less", "less_equal", "equal", "not_equal", "greater_equal", "greater"),
    *("and", "or", "not", "truth"),
}
"""Operations with jumps or kinks: their constraint would need infinite forces."""


@dataclass(frozen=True, slots=True, eq=False)
class FormulaConstraint(FunctionConstraint):
    """A constraint Ψ(x, t) = 0 of coordinates x of the mechanism and time.

    With the equations of motion M q̈ + Ψ_qᵀ λ = Q the effort on the coordinate x is -λ ∂Ψ/∂x. Its
    output ``force`` is -λ: the force or torque on a coordinate that is in Ψ with the factor 1.
    ``power`` is -λ (Ψ̇ - Ψ_t) = λ Ψ_t, what it puts in because Ψ depends on time, or because laws
    move markers of its coordinates.

    First and second derivatives of Ψ follow from the rules of calculus.

    Attributes
    ----------
    text
        The formula Ψ.
    terms
        The coordinates in it.
    numbers
        Its own parameters, by name; ``name.key`` is their path.
    """

    general = "formula"

    name: str
    text: str
    formula: Formula
    keys: tuple[str, ...]
    coordinates: tuple[Term, ...]
    numbers: Mapping[str, float]

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the coordinates in the formula."""
        return self.coordinates

    def jet(self, coordinates: Sequence[Jet], time: Jet) -> Jet:
        """Return Ψ and its first two derivatives along a motion of coordinates and time."""
        variables: dict[str, Jet] = {key: (v, 0.0, 0.0) for key, v in self.numbers.items()}
        variables |= dict(zip(self.keys, coordinates, strict=True))
        variables[TIME] = time
        try:
            found = evaluate(self.formula.term, variables)
        except (ArithmeticError, ValueError):
            found = (math.nan, math.nan, math.nan)
        if not all(map(math.isfinite, found)):
            at = ", ".join(f"{key} = {jet[0]:g}" for key, jet in variables.items())
            raise DiagramError(
                f"constraint `{self.name}`: `{self.text}` has no finite value or derivative where "
                f"{at}."
            )
        return found

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        for key, value in self.numbers.items():
            yield parameter(f"{self.name}.{key}", value, unit=None, doc=f"in {self.text}")

    def law(self, tables: Tables, records: list[int]) -> int:
        """Return the number of the law of its row, whose coordinates have these records."""
        sources = {key: fetch_parameter(tables.place(f"{self.name}.{key}")) for key in self.numbers}
        sources[TIME] = fetch_time
        own = fetch_input(0)
        for number, key in enumerate(self.keys):
            sources[key] = lambda _, number=number: own(number)  # type: ignore[misc]
        return tables.laws.add_function(self.formula, sources, records)


class FormulaConstraintMethods(Parts):
    """Adds constraints by formula."""

    @suggest_keywords
    def constraint(
        self,
        name: str,
        formula: str,
        *,
        between: tuple[Marker, Marker] | None = None,
        parameters: Mapping[str, float] | None = None,
    ) -> FormulaConstraint:
        """Demand that a formula of coordinates and of the time `t` is 0; see `FormulaConstraint`.

        It is one equation of the mechanism as those of joints are: assembly, velocities,
        projection, linearization and equilibrium satisfy it, and the report names it where it is
        redundant. With `t` it is a driver of one coordinate or of several:
        ``"slider.x - 2*rod.y - 0.1*sin(3*t)"``.

        Coordinates are those of joints, ``crank.angle``, ``rail.displacement``; the place of a
        body's frame or of a marker in the world, ``slider.x``, ``rod.tip.y`` or
        ``rod.tip.position[1]``; in a plane the angle of a body in the world, ``rod.angle``; and in
        space its Euler parameters, ``rod.e0`` … ``rod.e3``, with the sign of the outputs of that
        name: that of the given rotation with e0 ≥ 0 at the start, and continuous over all turns.

        Parameters
        ----------
        name, formula
            Its name, and Ψ; see `Expression` for the grammar. It must be smooth: `abs`, `min`,
            `where` and the like are refused.
        between
            Two markers: then ``x``, ``y`` and ``z`` are the coordinates of the second in axes of
            the first, in a plane also ``angle``. ``"y - x**2"`` puts the second on a parabola.
        parameters
            Numbers by name, which can be set before a run as ``name.key``.

        Raises
        ------
        DiagramError
            If the formula cannot be read, is not smooth, names something unknown, or contains no
            coordinate that moves.
        """
        self._check_name(name)
        numbers = {
            key: read_number(f"parameter `{key}` of `{name}`", value)
            for key, value in (parameters or {}).items()
        }
        for key in numbers:
            if not key.isidentifier() or key == TIME:
                raise DiagramError(f"parameter `{key}` of `{name}`: give it a name of letters.")
        near = {} if between is None else relative_coordinates(self, name, between)
        both = sorted(set(near) & set(numbers))
        if both:
            raise DiagramError(
                f"parameter `{both[0]}` of `{name}` is also a coordinate of `between`: rename it."
            )
        parsed = read_formula(formula, (TIME, *numbers, *near), dotted=True)
        rough = sorted(set(_operations(parsed.term)) & _ROUGH)
        if rough:
            raise DiagramError(
                f"constraint `{name}` is not smooth: `{parsed.text}` contains `{rough[0]}`, where "
                f"its derivatives jump. A constraint requires two continuous derivatives; a limit "
                f"of a motion is a `stop`, a contact a clearance."
            )
        found: dict[str, Term] = {}
        renamed: dict[tuple[str, int | None], str] = {}
        for variable in parsed.variables():
            if variable.index is None and (variable.name in numbers or variable.name == TIME):
                continue
            if variable.index is not None and variable.name in (*numbers, *near):
                raise parsed.fail(variable.column, f"`{variable.name}` is one number")
            term = near.get(variable.name)
            if term is None:
                term = find_coordinate(self, parsed, variable, bool(near))
            key = variable.name if variable.index is None else f"{variable.name}[{variable.index}]"
            found.setdefault(key, term)
            renamed[variable.name, variable.index] = key
        if not found:
            raise DiagramError(
                f"constraint `{name}`: `{parsed.text}` contains no coordinate of the mechanism."
            )
        if len(found) > contract.MB_TERM_MOST:
            raise DiagramError(
                f"constraint `{name}` has {len(found)} coordinates, at most "
                f"{contract.MB_TERM_MOST} fit."
            )
        still = [
            key
            for key, term in found.items()
            if term.joint.first.body.is_ground and term.joint.second.body.is_ground
        ]
        if still:
            raise DiagramError(
                f"constraint `{name}`: {name_list(f'`{key}`' for key in still)} cannot move. Write "
                f"the number instead."
            )
        own = _rename(parsed.term, renamed)
        made = FormulaConstraint(
            name, parsed.text, Formula(parsed.text, own), tuple(found), tuple(found.values()),
            numbers,
        )  # fmt: skip
        return self._add(made)


def _operations(term: FormulaTerm) -> Iterator[str]:
    match term:
        case Apply(operation, arguments):
            yield operation
        case Chain(operations, arguments):
            yield from operations
        case _:
            return
    for argument in arguments:
        yield from _operations(argument)


def _rename(term: FormulaTerm, names: Mapping[tuple[str, int | None], str]) -> FormulaTerm:
    """Return a formula in which elements of vectors are variables of their own."""
    match term:
        case Variable(name, index, column):
            return Variable(names.get((name, index), name), None, column)
        case Apply(operation, arguments):
            return Apply(operation, tuple(_rename(item, names) for item in arguments))
        case Chain(operations, arguments):
            return Chain(operations, tuple(_rename(item, names) for item in arguments))
        case Number():
            return term
