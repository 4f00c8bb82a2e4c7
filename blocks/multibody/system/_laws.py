"""Laws: numbers that change with time, or with the length and speed of a spring.

Every law gives its value and its first and second time derivatives, all of them exact. A number
stands for a `Constant` and a string for a `Formula` wherever a law is wanted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ...core._ports import Numbers
from ...core.formula._formula import Apply, Chain, Term, read_formula
from ...core.formula._formula import Formula as ParsedFormula
from ..analysis._jets import Jet, evaluate
from ._reading import read_number, read_numbers
from ._rotations import Array, freeze

# Units of a law's own numbers, in terms of `u`, the unit of what the law stands for.
_VALUE = {"unit": "u"}
_SLOPE = {"unit": "u/s"}
_OMEGA = {"unit": "rad/s"}
_PHASE = {"unit": "rad"}


class Read(NamedTuple):
    """A number of an output of the mechanism, such as ``slider.x`` or ``slider.position[0]``."""

    path: str
    element: int | None

    @property
    def text(self) -> str:
        """Return it as it stands in a formula."""
        return self.path if self.element is None else f"{self.path}[{self.element}]"


WHOLE = frozenset(
    ("kinetic_energy", "potential_energy", "weight_energy", "elastic_energy", "contact_energy")
)
"""Outputs of a whole mechanism that formulas may read: their names have no dot."""


class AbstractLaw(ABC):
    """A number as a function of time, and maybe of other variables."""

    @abstractmethod
    def jet(self, t: float) -> Jet:
        """Return the value, its rate and its acceleration at time t."""

    @property
    def variables(self) -> frozenset[str]:
        """Names of what it depends on: ``t``, and in forces ``l`` or ``q``, and ``v``."""
        return frozenset("t")

    @property
    def reads(self) -> tuple[Read, ...]:
        """Outputs of the mechanism that it depends on."""
        return ()

    def value(self, t: float) -> float:
        """Return the value at time t."""
        return self.evaluate(t=t)

    def rate(self, t: float) -> float:
        """Return the first derivative at time t."""
        return self.jet(t)[1]

    def acceleration(self, t: float) -> float:
        """Return the second derivative at time t."""
        return self.jet(t)[2]

    def evaluate(self, **values: float) -> float:
        """Return the value where the variables have `values`, such as ``t=0.1, l=0.5, v=0.0``."""
        return self.jet(values["t"])[0]


@dataclass(frozen=True, slots=True)
class Constant(AbstractLaw):
    """A number: y."""

    number: float = field(metadata=_VALUE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", read_number("a Constant", self.number))

    @property
    def variables(self) -> frozenset[str]:
        """It depends on nothing."""
        return frozenset()

    def jet(self, t: float) -> Jet:
        """Return (y, 0, 0)."""
        return (self.number, 0.0, 0.0)

    def evaluate(self, **values: float) -> float:
        """Return y."""
        return self.number


@dataclass(frozen=True, slots=True)
class Linear(AbstractLaw):
    """A straight line: start + slope t."""

    start: float = field(metadata=_VALUE)
    slope: float = field(metadata=_SLOPE)

    def __post_init__(self) -> None:
        _read_fields(self, "start", "slope")

    def jet(self, t: float) -> Jet:
        """Return (start + slope t, slope, 0)."""
        return (self.start + self.slope * t, self.slope, 0.0)


@dataclass(frozen=True, slots=True)
class Sine(AbstractLaw):
    """A sine: offset + amplitude sin(omega t + phase), omega in rad/s."""

    amplitude: float = field(metadata=_VALUE)
    omega: float = field(metadata=_OMEGA)
    phase: float = field(default=0.0, metadata=_PHASE)
    offset: float = field(default=0.0, metadata=_VALUE)

    def __post_init__(self) -> None:
        _read_fields(self, "amplitude", "omega", "phase", "offset")

    def jet(self, t: float) -> Jet:
        """Return the sine and its derivatives."""
        angle = self.omega * t + self.phase
        swing = self.amplitude * math.sin(angle)
        rate = self.amplitude * self.omega * math.cos(angle)
        return (self.offset + swing, rate, -(self.omega**2) * swing)


@dataclass(frozen=True, slots=True, eq=False)
class Table(AbstractLaw):
    """A function given by points; beyond them the end values hold.

    In piece n, with s = x - points[n]: y = c[n, 0] s³ + c[n, 1] s² + c[n, 2] s + c[n, 3].

    Parameters
    ----------
    points, values
        Rising abscissae, and one value for each.
    interpolation
        ``"linear"``: the rate jumps at each point. ``"cubic"``: a spline with continuous
        acceleration (not-a-knot), as required for a driver or a moving marker.
    of
        The variable: ``"t"``; in springs also the length ``"l"`` and its rate ``"v"``, in elements
        on a joint the coordinate ``"q"`` and its rate ``"v"``.
    """

    points: Numbers
    values: Numbers
    interpolation: str = "linear"
    of: str = "t"
    coefficients: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        points = read_numbers("`points` of a Table", self.points)
        values = read_numbers("`values` of a Table", self.values)
        if points.ndim != 1 or points.size < 2 or points.shape != values.shape:
            raise DiagramError(
                f"a Table has two lists of the same length, at least two points; got shapes "
                f"{points.shape} and {values.shape}."
            )
        falls = np.flatnonzero(np.diff(points) <= 0)
        if falls.size:
            n = int(falls[0])
            raise DiagramError(
                f"`points` of a Table must rise: {points[n + 1]:g} comes after {points[n]:g}."
            )
        if self.interpolation not in ("linear", "cubic"):
            raise DiagramError(
                f"`interpolation` of a Table is 'linear' or 'cubic', got {self.interpolation!r}."
            )
        coefficients = np.zeros((points.size - 1, 4))
        if self.interpolation == "cubic":
            from scipy.interpolate import CubicSpline  # here: it takes longer than all the rest

            coefficients[:] = CubicSpline(points, values).c.T
        else:
            coefficients[:, 2] = np.diff(values) / np.diff(points)
            coefficients[:, 3] = values[:-1]
        object.__setattr__(self, "points", freeze(points))
        object.__setattr__(self, "values", freeze(values))
        object.__setattr__(self, "coefficients", freeze(coefficients))

    @property
    def variables(self) -> frozenset[str]:
        """The one in `of`."""
        return frozenset({self.of})

    def jet(self, t: float) -> Jet:
        """Return the interpolated value and its derivatives; of a point, those that follow it."""
        points, values = np.asarray(self.points), np.asarray(self.values)
        if t < points[0] or t >= points[-1]:
            return (float(values[0 if t < points[0] else -1]), 0.0, 0.0)
        n = int(np.searchsorted(points, t, side="right")) - 1
        s = t - float(points[n])
        a, b, c, d = self.coefficients[n].tolist()
        return (
            ((a * s + b) * s + c) * s + d,
            (3.0 * a * s + 2.0 * b) * s + c,
            6.0 * a * s + 2.0 * b,
        )

    def evaluate(self, **values: float) -> float:
        """Return the value at that of the variable in `of`."""
        return self.jet(values[self.of])[0]


@dataclass(frozen=True, slots=True)
class Formula(AbstractLaw):
    """An expression such as ``"0.03*sin(5*pi*t)"``, read safely; see `Expression` for its grammar.

    Its derivatives follow from the rules of calculus, not from differences. Where a formula jumps,
    such as ``"where(t < 1, 10, 0)"``, a step of the solver ends; ``events="tick"`` integrates
    across the jump.

    Forces, torques and coefficients of springs may also depend on outputs of the mechanism that
    follow from positions and velocities, ``"10*abs(slider.x - 0.661)"``: see `System.outputs`. Of a
    vector one number is read, ``rod.velocity[1]``; names that are not words stand in quotes,
    ``'piston pin.angle'``. The absolute coordinates of a body are ``slider.x``, ``y``, ``z`` and
    its Euler parameters ``e0`` … ``e3``, with continuous signs; their rates ``slider.x_rate`` ….

    Parameters
    ----------
    text
        Of the time ``t``; in springs also of the length ``l`` and its rate ``v``, in elements on a
        joint of the coordinate ``q`` and its rate ``v``; of `parameters` and outputs.
    parameters
        Numbers by name. They are parameters of the mechanism: ``"tire.stiffness.k"``.
    """

    text: str
    parameters: Mapping[str, float] = field(default_factory=dict, hash=False)
    parsed: ParsedFormula = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = ("t", "l", "q", "v", *_read_parameters(self))
        object.__setattr__(self, "parsed", read_formula(self.text, known, dotted=True))
        used = {variable.name for variable in self.parsed.variables()}
        for name in self.parameters:
            if name not in used:
                raise DiagramError(
                    f"the formula `{self.text}` does not use its parameter `{name}`."
                    f"{suggest(name, used)}"
                )
        for variable in self.parsed.variables():
            if variable.index is not None and not self._is_output(variable.name):
                raise self.parsed.fail(variable.column, f"`{variable.name}` is one number")

    def _is_output(self, name: str) -> bool:
        return name not in self.parameters and ("." in name or name in WHOLE)

    @property
    def variables(self) -> frozenset[str]:
        """Those in the text that are neither parameters nor outputs."""
        return frozenset(
            variable.name
            for variable in self.parsed.variables()
            if variable.name not in self.parameters and not self._is_output(variable.name)
        )

    @property
    def reads(self) -> tuple[Read, ...]:
        """Outputs in the text."""
        found = (
            Read(variable.name, variable.index)
            for variable in self.parsed.variables()
            if self._is_output(variable.name)
        )
        return tuple(dict.fromkeys(found))

    def jet(self, t: float) -> Jet:
        """Return the value and its derivatives."""
        return self._evaluate({"t": (t, 1.0, 0.0)})

    def evaluate(self, **values: float) -> float:
        """Return the value."""
        return self._evaluate({name: (value, 0.0, 0.0) for name, value in values.items()})[0]

    def _evaluate(self, variables: dict[str, Jet]) -> Jet:
        unknown = [read.text for read in self.reads if read.text not in variables]
        if unknown:
            raise DiagramError(
                f"the formula `{self.text}` depends on {name_list(f'`{name}`' for name in unknown)}"
                f", which is known to a moving mechanism only."
            )
        variables |= {name: (value, 0.0, 0.0) for name, value in self.parameters.items()}
        try:
            jet = evaluate(self.parsed.term, variables)
        except (ArithmeticError, ValueError):
            jet = (math.nan, math.nan, math.nan)
        if not all(map(math.isfinite, jet)):
            where = ", ".join(f"{name} = {jet[0]:g}" for name, jet in variables.items())
            raise DiagramError(f"the formula `{self.text}` has no finite value where {where}.")
        return jet


@dataclass(frozen=True, slots=True)
class Input(AbstractLaw):
    """A number that comes from outside during the run: an input port.

    Where it moves a marker or drives a joint it has two more ports, for its rate and acceleration:
    ``name_rate`` and ``name_acceleration``, 0 while nothing is connected. Connect all three, from
    something smooth: a place that changes without its rate is followed by jumps at each step, the
    reactions are then those of a body at rest, and the run warns at its end. The initial state is
    found with the value and rate that are connected.

    Parameters
    ----------
    name
        Of the port; without one, the path of the number it stands for, such as ``motor.torque``.
    default
        While nothing is connected. The rate and acceleration of an input are 0 then.
    """

    name: str = ""
    default: float = field(default=0.0, metadata=_VALUE)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DiagramError(f"an Input has a name, got {self.name!r}; its value is `default`.")
        _read_fields(self, "default")

    def jet(self, t: float) -> Jet:
        """Return (default, 0, 0)."""
        return (self.default, 0.0, 0.0)


Lawlike = AbstractLaw | float | str
"""What a user may give: a law, a number, or the text of a formula."""


def as_law(what: str, value: Any, variables: Iterable[str] = ("t",)) -> AbstractLaw:
    """Return `value` as a law of `variables`, or raise a `DiagramError` that calls it `what`."""
    if isinstance(value, str):
        value = Formula(value)
    law = value if isinstance(value, AbstractLaw) else Constant(read_number(what, value))
    allowed = list(variables)
    for name in sorted(law.variables - set(allowed)):
        raise DiagramError(
            f"{what} depends on `{name}`, which is not available.{suggest(name, allowed)} "
            f"It may depend on {name_list(allowed)}."
        )
    return law


def check_motion(what: str, law: AbstractLaw) -> AbstractLaw:
    """Return a law that prescribes motion, or raise a `DiagramError` if it jumps.

    A formula with branches is checked over its first 10 s; later jumps, and those of inputs, are
    detected during the run.
    """
    if law.reads:
        raise DiagramError(
            f"{what} depends on `{law.reads[0].text}`, an output of the mechanism: prescribed "
            f"motion is a law of t. Forces, torques and coefficients of springs may depend on "
            f"outputs."
        )
    jump = _find_jump(law) if isinstance(law, Formula) and _has_branches(law.parsed.term) else None
    if jump is not None:
        raise DiagramError(
            f"{what} jumps by {jump[1]:.4g} at t = {jump[0]:.6g} s: bodies cannot follow, and "
            f"efforts and reactions would not show it. Take a law without jumps, such as a Table "
            f"with interpolation='cubic'."
        )
    return law


_BRANCHES = {
    "select", "floor_divide", "modulo", "less", "less_equal", "equal", "not_equal", "greater_equal",
    "greater", "and", "or", "not", "truth", "sign", "floor", "ceil", "round", "atan2",
}  # fmt: skip
_LOOKED_AT, _LOOKS = 10.0, 2000


def _has_branches(term: Term) -> bool:
    if isinstance(term, Chain):
        return True
    return isinstance(term, Apply) and (
        term.operation in _BRANCHES or any(map(_has_branches, term.arguments))
    )


def _find_jump(law: AbstractLaw) -> tuple[float, float] | None:
    """Return time and size of the first jump that differences show, if any."""
    h = _LOOKED_AT / _LOOKS
    try:
        jets = [law.jet(h * n) for n in range(_LOOKS + 1)]
        for n, (a, b) in enumerate(pairwise(jets)):
            # The trapezium is off by less than this unless the value jumps; see
            # ``blocks/multibody/kernel/steps/jumps.c``.
            off = abs(b[0] - a[0] - 0.5 * h * (a[1] + b[1]))
            if off <= h * abs(b[1] - a[1]) + h * h * abs(b[2] - a[2]) + 1e-9 * abs(b[0]):
                continue
            low, high = h * n, h * (n + 1)
            while (middle := 0.5 * (low + high)) not in (low, high):
                left = abs(law.value(middle) - law.value(low))
                if left > abs(law.value(high) - law.value(middle)):
                    high = middle
                else:
                    low = middle
            size = abs(law.value(high) - law.value(low))
            if size > 1e-9 * (1.0 + abs(b[0])):
                return high, size
    except DiagramError:  # undefined at some time: the run reports it if it gets there
        return None
    return None


def _read_parameters(law: Formula) -> Mapping[str, float]:
    """Check the parameters of a formula, and make them numbers that do not change."""
    numbers = {}
    for name, value in dict(law.parameters).items():
        if not isinstance(name, str) or not name.isidentifier() or name in ("t", "l", "q", "v"):
            raise DiagramError(
                f"a parameter of the formula `{law.text}` has a name that is a word other than t, "
                f"l, q and v; got {name!r}."
            )
        numbers[name] = read_number(f"parameter `{name}` of the formula `{law.text}`", value)
    object.__setattr__(law, "parameters", MappingProxyType(numbers))
    return numbers


def _read_fields(law: AbstractLaw, *names: str) -> None:
    for name in names:
        number = read_number(f"`{name}` of a {type(law).__name__}", getattr(law, name))
        object.__setattr__(law, name, number)
