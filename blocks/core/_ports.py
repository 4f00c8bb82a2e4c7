"""Ports, parameters and rates: the description of a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError
from ._units import Unit, parse_unit

Kind = Literal["real", "integer", "boolean", "enumeration", "string", "binary"]
Numbers = float | Sequence[float] | npt.NDArray[np.floating[Any] | np.integer[Any]]
"""A number; or several, a list or an array."""
Matrix = Numbers | Sequence[Numbers]
"""A number, a vector, or a matrix: an array or a list of its rows."""
KINDS: tuple[Kind, ...] = ("real", "integer", "boolean", "enumeration")
"""Of numbers. A string or a binary is a signal between FMUs only: its value is the number of it."""


class Widths(dict[str, int]):
    """Values of a block's width symbols, such as ``{"n": 3}``, and its sample time in seconds."""

    step: float = 0.0


Width = int | str | Callable[[Widths], int]


@dataclass(frozen=True, slots=True)
class Same:
    """Ports of one block that carry the same label share their unit, or their kind."""

    label: str = "u"


@dataclass(frozen=True, slots=True)
class Derived:
    """A unit computed from the units of input ports, when all of them are known."""

    compute: Callable[..., Unit | None]
    of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """One named port.

    Parameters
    ----------
    name
        Unique among the block's inputs, or among its outputs.
    width
        Number of values; or a symbol, the same for all ports that must agree; or a function of the
        symbols.
    unit
        Fixed (a unit or its name), `Same`, `Derived`, or ``None``: free, anything may be connected.
    kind
        ``"real"``, ``"integer"``, ``"boolean"``, ``"enumeration"``, or `Same`; of FMUs also
        ``"string"`` and ``"binary"``.
    default
        For an input, its value when nothing is connected, or one for each element; ``None`` makes
        a connection obligatory.
    doc
        One line.
    names
        Of an enumeration: the names of its values, from 1 on. Of a binary: its MIME type.
    limits
        Of an output that never leaves a range: its smallest and largest value, each a number or
        the name of a parameter of the block.
    """

    name: str
    width: Width = 1
    unit: Unit | Same | Derived | str | None = None
    kind: Kind | Same = "real"
    default: float | tuple[float, ...] | None = None
    doc: str = ""
    names: tuple[str, ...] = ()
    limits: tuple[float | str, float | str] | None = None

    def default_values(self, width: int) -> list[float]:
        """Return the default of each of `width` elements."""
        if not isinstance(self.default, tuple):
            return [self.default or 0.0] * width
        if len(self.default) != width:
            raise DiagramError(
                f"the default of `{self.name}` has {len(self.default)} values, but the port has "
                f"{width}: give one number for all, or {width}."
            )
        return list(self.default)

    def __post_init__(self) -> None:
        if isinstance(self.unit, str):
            object.__setattr__(self, "unit", parse_unit(self.unit))
        if self.default is not None and not isinstance(self.default, Real):
            object.__setattr__(self, "default", self._read_defaults())

    def _read_defaults(self) -> tuple[float, ...]:
        try:
            values = np.array(self.default, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty((0, 0))
        if isinstance(self.default, str) or values.ndim != 1:
            raise DiagramError(
                f"the default of `{self.name}` must be a number or one for each element, "
                f"got {self.default!r}."
            )
        return tuple(values.tolist())


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number, vector or matrix that may be set after the diagram is compiled.

    Parameters
    ----------
    name, value
        Its name within the block, and its value.
    unit, doc
        Unit and description for users and for FMI.
    tunable
        Whether a change takes effect during a run; otherwise it takes effect at the next start.
    hidden
        Whether the value is internal to the kernel, such as a table or the result of a design.
    derived
        Source from which the compiler derives the value: ``"path"``, a seed from the block's path
        in the top diagram; ``"gravity"``, that of the mechanism that feeds the block's first input.
        `value` is the fallback. Empty: `value` is used as given.
    minimum, maximum
        Range of all values that have a meaning, for FMI; None where there is no limit. A limit that
        is excluded, such as 0 of positive numbers, is given all the same.
    """

    name: str
    value: npt.NDArray[np.float64]
    unit: Unit | None = None
    doc: str = ""
    tunable: bool = True
    hidden: bool = False
    derived: Literal["", "path", "gravity"] = ""
    minimum: float | None = None
    maximum: float | None = None


def parameter(
    name: str,
    value: npt.ArrayLike | Matrix | None,
    *,
    unit: str | Unit | None = None,
    doc: str = "",
    tunable: bool = True,
    hidden: bool = False,
    finite: bool = True,
    derived: Literal["", "path", "gravity"] = "",
    minimum: float | None = None,
    maximum: float | None = None,
) -> Parameter:
    """Make a `Parameter`; raise an error that names it if `value` is not numeric."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DiagramError(f"parameter `{name}` requires numbers, got {value!r}.") from None
    if finite and not np.isfinite(array).all():
        raise DiagramError(f"parameter `{name}` must be finite, got {value!r}.")
    if array.size == 0:
        raise DiagramError(f"parameter `{name}` is empty.")
    array = array.copy()
    array.setflags(write=False)
    known = parse_unit(unit) if isinstance(unit, str) else unit
    return Parameter(name, array, known, doc, tunable, hidden, derived, minimum, maximum)


def number(name: str, value: Any, *, finite: bool = False) -> float:
    """Return one number, with an error that names it if `value` is none."""
    made = parameter(name, value, finite=finite).value
    if made.ndim:
        raise DiagramError(f"`{name}` is one number, got {value!r}.")
    return float(made)


@dataclass(frozen=True, slots=True)
class Rate:
    """When a block runs.

    ``continuous``  at every tick and in the solver's minor steps
    ``constant``    once, and again when a parameter changes
    ``periodic``    at ``offset + n·period`` seconds
    ``every_tick``  at every tick of the base step, held in between
    ``inherited``   as fast as the fastest block that feeds it
    ``sampled``     inherited, but at ticks only: blocks that have memory
    ``switching``   inherited where events are located and continuous states depend on the block,
                    else sampled: discontinuous blocks
    ``timed``       continuous where events are located and continuous states depend on the block,
                    else at every tick: discontinuous functions of time

    Parameters
    ----------
    outputs
        Rate at which the outputs change, inherited by the blocks downstream. Not given: at every
        run of the block. A number n: every n-th run. A function of the step in s: a separate rate.
        A converter, for example, reads its input at every tick and updates its outputs only at
        the end of a scan.
    """

    kind: Literal[
        "continuous",
        "constant",
        "periodic",
        "every_tick",
        "inherited",
        "sampled",
        "switching",
        "timed",
    ]
    period: float = 0.0
    offset: float = 0.0
    outputs: int | Callable[[float], Rate] = 1


CONTINUOUS = Rate("continuous")
CONSTANT = Rate("constant")
EVERY_TICK = Rate("every_tick")
INHERITED = Rate("inherited")
SAMPLED = Rate("sampled")
SWITCHING = Rate("switching")
TIMED = Rate("timed")


def periodic(period: float | None, offset: float = 0.0, otherwise: Rate = INHERITED) -> Rate:
    """Return the rate of a block whose user gave `period` seconds, or `otherwise` if none."""
    offset = number("offset", offset)
    if period is None:
        if offset:
            raise DiagramError(f"an offset of {offset:g} s needs a period.")
        return otherwise
    period = number("period", period)
    if not (np.isfinite(period) and period > 0):
        raise DiagramError(f"a period must be positive seconds, got {period!r}.")
    if not 0 <= offset < period:
        raise DiagramError(f"an offset must be in [0, {period:g}) s, got {offset!r}.")
    return Rate("periodic", period, offset)


def main_output(names: Sequence[str]) -> str | None:
    """Return the output that a block's name alone means: its only one, or that called ``y``."""
    names = list(names)
    return names[0] if len(names) == 1 else "y" if "y" in names else None


@dataclass(frozen=True, slots=True)
class PortRef:
    """A port of a block in a diagram: what ``block["port"]`` gives."""

    block: Any
    name: str = field(default="")
