"""Variables of an FMU: types, ranges, sizes, and values given for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...blocks.core._ports import Kind
from ...blocks.core._units import Unit
from ...errors import FmuError
from ...scheduler.engine._library import contract

REAL, INTEGER, BOOLEAN = contract.HOST_REAL, contract.HOST_INTEGER, contract.HOST_BOOLEAN
STRING = contract.HOST_TYPES  # which the engine does not know
BINARY = STRING + 1
TYPES = {"Real": REAL, "Integer": INTEGER, "Enumeration": INTEGER, "Boolean": BOOLEAN}
TYPES |= {"String": STRING, "Binary": BINARY, "Float64": REAL, "Float32": REAL}
TYPES |= {f"{sign}Int{bits}": INTEGER for sign in ("", "U") for bits in (8, 16, 32, 64)}
"""What a type of FMI is: a real, an integer, a boolean, a string or a binary."""
HOST_TYPES = {
    "Real": contract.HOST_REAL,
    "Integer": contract.HOST_INTEGER,
    "Boolean": contract.HOST_BOOLEAN,
    "String": contract.HOST_STRING,
    "Binary": contract.HOST_BINARY,
    "Float64": contract.HOST_REAL,
    "Float32": contract.HOST_FLOAT32,
    "Int8": contract.HOST_INT8,
    "UInt8": contract.HOST_UINT8,
    "Int16": contract.HOST_INT16,
    "UInt16": contract.HOST_UINT16,
    "Int32": contract.HOST_INTEGER,
    "UInt32": contract.HOST_UINT32,
    "Int64": contract.HOST_INT64,
    "UInt64": contract.HOST_UINT64,
    "Clock": contract.HOST_CLOCK,
}
"""Numbers of the types in a plan; that of an enumeration depends on the version of FMI."""
LARGEST_ARRAY = 1 << 20
"""Number of elements above which an array is not used."""
_LARGEST_EXACT = 1 << 53  # up to which every integer is a double
_RANGES: dict[str, tuple[float, float]] = {"Integer": (-(2**31), 2**31 - 1)}
_RANGES |= {f"Int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)}
_RANGES |= {f"UInt{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)}
# The largest 64-bit integers are not doubles; the doubles below them are.
_RANGES |= {"Int64": (-(2**63), 2**63 - 1024), "UInt64": (0, 2**64 - 2048)}
_RANGES["Enumeration"] = _RANGES["Int64"]
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_KINDS: dict[int, Kind] = {REAL: "real", INTEGER: "integer", BOOLEAN: "boolean"}
_TEXTS: dict[int, Kind] = {STRING: "string", BINARY: "binary"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A variable of the FMU: a scalar, or in FMI 3.0 also an array."""

    name: str
    reference: int
    type: int
    fmi_type: str
    causality: str
    variability: str
    initial: str | None
    start: str | None
    """Of an array: its elements, separated by spaces, or one value for all."""
    unit: Unit | None
    doc: str
    names: tuple[str, ...] = ()
    """Of an enumeration whose values are 1, 2, …: their names. Of a binary: MIME type."""
    shape: tuple[int, ...] = ()
    """Sizes of the dimensions of an array; empty for a scalar."""
    alias: str = ""
    """Name of the variable that this is another name of."""
    clocks: tuple[str, ...] = ()
    """Names of the clocks that activate it."""

    @property
    def kind(self) -> Kind:
        """What a port of it carries."""
        return "enumeration" if self.fmi_type == "Enumeration" else (_KINDS | _TEXTS)[self.type]

    @property
    def is_number(self) -> bool:
        """Whether it is neither a string nor a binary."""
        return self.type in _KINDS

    @property
    def can_be_port(self) -> bool:
        """Whether a signal can hold it: it is a number, or a single string or binary."""
        return self.is_number or (self.type in _TEXTS and self.size == 1)

    @property
    def size(self) -> int:
        """Number of its values."""
        return math.prod(self.shape)

    @property
    def element_names(self) -> list[str]:
        """The names of its values, such as ``matrix[0,1]``; indices begin with 0."""
        if not self.shape:
            return [self.name]
        return [f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(self.shape)]

    def starts(self) -> list[float] | None:
        """Return its start values, None if it has none."""
        return None if self.start is None else self.numbers(self.start)

    def numbers(self, given: Any) -> list[float]:
        """Return values for all elements; raise with the valid values otherwise."""
        if not self.shape:
            return [self.number(given)]
        if isinstance(given, str):
            elements: list[Any] = given.split()
        else:
            array = np.asarray(given, dtype=object)
            if array.ndim > 1 and array.shape != self.shape:
                raise FmuError(
                    f"`{self.name}` is an array of {' × '.join(map(str, self.shape))} values, got "
                    f"{' × '.join(map(str, array.shape))}."
                )
            elements = array.ravel().tolist()
        if len(elements) == 1:  # for all
            elements *= self.size
        if len(elements) != self.size:
            raise FmuError(f"`{self.name}` has {self.size} values, got {len(elements)}.")
        return [self.number(element) for element in elements]

    def number(self, text: Any) -> float:
        """Return a value for the variable as a number; raise with the valid values otherwise."""
        if isinstance(text, str) and self.type == BOOLEAN:
            text = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}.get(text.strip().lower(), text)
        if isinstance(text, str) and text in self.names:
            return float(self.names.index(text) + 1)
        try:
            value = float(text)
        except (TypeError, ValueError, OverflowError):
            raise FmuError(f"`{self.name}` is of type {self.fmi_type}, got {text!r}.") from None
        if self.type != INTEGER:
            return self.check_range(value)
        if not value.is_integer():
            raise FmuError(
                f"`{self.name}` is of type {self.fmi_type}, got {text!r}, which is not an integer."
            )
        if abs(value) >= _LARGEST_EXACT and _whole(text) not in (None, int(value)):
            raise FmuError(
                f"`{self.name}` cannot be {text}: parameters and signals represent integers "
                f"exactly only up to 2^53."
            )
        return self.check_range(value)

    def check_range(self, value: float) -> float:
        """Return `value` if a variable of this type can hold it, else raise an error."""
        if self.fmi_type == "Float32" and _LARGEST_FLOAT32 < abs(value) < np.inf:
            raise FmuError(
                f"`{self.name}` cannot be {value:.17g}: the range of Float32 is -3.4e38 to 3.4e38."
            )
        low, high = _RANGES.get(self.fmi_type, (-np.inf, np.inf))
        if not low <= value <= high and self.type == INTEGER:
            raise FmuError(
                f"`{self.name}` cannot be {value:.17g}: the range of {self.fmi_type} is "
                f"{low:.0f} to {high:.0f}."
            )
        return value

    def texts(self, given: Any, label: str) -> tuple[Any, ...]:
        """Return the values of a string or binary, one for each element."""
        wanted, what = (str, "string") if self.type == STRING else (bytes, "bytes")
        if isinstance(given, bytearray):
            given = bytes(given)
        if not self.shape:
            if not isinstance(given, wanted):
                article = "a string" if what == "string" else "bytes"
                raise FmuError(f"`{self.name}` of {label} must be {article}, got {given!r}.")
            return self._check_ends((given,), label)
        values = (given,) if isinstance(given, wanted) else tuple(given)
        if len(values) == 1:
            values *= self.size
        if len(values) != self.size or not all(isinstance(value, wanted) for value in values):
            raise FmuError(f"`{self.name}` of {label} must be {self.size} × {what}, got {given!r}.")
        return self._check_ends(values, label)

    def _check_ends(self, values: tuple[Any, ...], label: str) -> tuple[Any, ...]:
        """Reject strings that would arrive cut: those of FMI end at their first NUL."""
        for value in values:
            if isinstance(value, str) and "\0" in value:
                raise FmuError(
                    f"`{self.name}` of {label} cannot be {value!r}: a string of FMI ends at its "
                    f"first NUL character. Remove it, or use a binary variable."
                )
        return values


def _whole(text: Any) -> int | None:
    """Return an integer as it was given; None if it was given in another form."""
    try:
        return int(text)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Group:
    """Variables that are one port or parameter: one of them, or all elements ``name[i]``."""

    name: str
    scalars: tuple[Scalar, ...]

    @property
    def first(self) -> Scalar:
        """The variable that represents the group."""
        return self.scalars[0]

    @property
    def width(self) -> int:
        """Number of its values."""
        return sum(s.size for s in self.scalars)

    def starts(self) -> list[float] | None:
        """Return the start values, None if one of them has none."""
        values = [s.starts() for s in self.scalars]
        return None if None in values else [v for some in values if some for v in some]


def shape_of(variable: Any, sizes: dict[int, int]) -> tuple[int, ...]:
    """Return the dimensions of a variable of FMPy, where structural parameters have `sizes`.

    Raises
    ------
    FmuError
        If a dimension has no size, or it is not a positive integer.
    """
    shape = []
    for dimension in variable.dimensions or ():
        start = dimension.start
        if start is None and dimension.variable is not None:
            start = sizes.get(dimension.variable.valueReference, dimension.variable.start)
        try:
            size = int(start)
        except (TypeError, ValueError):
            size = -1
        if size < 0:
            raise FmuError(f"`{variable.name}` has a dimension of size {start!r}.")
        shape.append(size)
    return tuple(shape)


def text_places(groups: Sequence[Group]) -> dict[int, int]:
    """Return which of all values of ports are strings or binaries, and which of both."""
    values = [s for group in groups for s in group.scalars for _ in range(s.size)]
    return {n: scalar.type for n, scalar in enumerate(values) if scalar.type in _TEXTS}
