"""Laws as the engine reads them: records of integers, programs of formulas, and input ports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from .... import _contract
from ....errors import DiagramError
from ...core._ports import Parameter, Port
from ...core._units import Unit, parse_unit
from ...core.formula._formula import fetch_input, fetch_time, write_program
from ..system._laws import AbstractLaw, Constant, Formula, Input, Linear, Sine, Table
from ..system._rotations import Array

_CONSTANT, _LINEAR = _contract.MB_LAW_CONSTANT, _contract.MB_LAW_LINEAR
_SINE, _INPUT = _contract.MB_LAW_SINE, _contract.MB_LAW_INPUT
_TABLE, _FORMULA = _contract.MB_LAW_TABLE, _contract.MB_LAW_FORMULA
_FIRST = {Linear: "start", Sine: "amplitude"}
_OF = {"t": 0, "l": 1, "q": 1, "v": 2}


class LawTable:
    """Collects the laws of one mechanism; ``laws.c`` evaluates them.

    Parameters
    ----------
    numbers
        All numbers of the mechanism by path.
    place
        Where each of them lies among the parameters of the block.
    hide
        Puts further numbers there and returns where.
    wanted
        Paths of constants that are inputs instead.
    """

    def __init__(
        self,
        numbers: Mapping[str, Parameter],
        place: Mapping[str, int],
        hide: Callable[[Sequence[float] | Array], int],
        wanted: Collection[str],
    ) -> None:
        self.records: list[list[int]] = []
        self.words: list[int] = []
        self.ports: list[Port] = []
        self.input_names: list[str] = []
        self.rates: dict[str, str] = {}
        """Of inputs that move something: which input is the rate of which."""
        self.defaults: set[str] = set()
        """Paths of numbers that the ports hold as their defaults."""
        self.constants: list[str] = []
        """Paths of numbers that could be inputs."""
        self._inputs_of: list[list[str]] = []
        self._numbers = numbers
        self._place = place
        self._hide = hide
        self._wanted = wanted

    def add(self, path: str, law: AbstractLaw, *, moves: bool = False, shift: bool = False) -> int:
        """Return the number of a law whose own numbers are at `path`.

        With `moves` it prescribes a place, so that its rate and acceleration count too: an input
        then has two more ports. With `shift` a quarter turn is added to it.
        """
        inputs: list[str] = []
        if isinstance(law, Input):
            unit = self._numbers[f"{path}.default"].unit
            self.defaults.add(f"{path}.default")
            inputs = self._input(law.name or path, law.default, unit, moves)
        elif isinstance(law, Constant) and path in self._wanted:
            inputs = self._input(path, law.number, self._numbers[path].unit, moves)
        if inputs:
            ports = [self.input_names.index(name) for name in inputs]
            record = [_INPUT, *ports, *[-1] * (3 - len(ports))]
        elif isinstance(law, Constant):
            place = self._place[path] if path in self._place else self._hide([law.number])
            if path in self._place and path not in self.constants:
                self.constants.append(path)
            record = [_CONSTANT, place, 0, 0]
        elif isinstance(law, Linear | Sine):
            kind = _LINEAR if isinstance(law, Linear) else _SINE
            record = [kind, self._place[f"{path}.{_FIRST[type(law)]}"], 0, 0]
        elif isinstance(law, Table):
            points, values = np.asarray(law.points), np.asarray(law.values)
            table = np.concatenate([points, law.coefficients.ravel(), values[-1:]])
            record = [_TABLE, self._hide(table), points.size, _OF[law.of]]
        elif isinstance(law, Formula):
            own = fetch_input(0)
            sources = {"t": fetch_time, "l": own, "q": own, "v": lambda _: own(1)}
            program = write_program(law.parsed, sources, (0, 0))
            record = [_FORMULA, len(self.words), len(program), 0]
            self.words += program
        else:
            raise DiagramError(
                f"`{path}` is a {type(law).__name__}, which the engine does not support: use a "
                f"Constant, Linear, Sine, Table, Formula or Input."
            )
        self.records.append([*record, int(shift)])
        self._inputs_of.append(inputs)
        return len(self.records) - 1

    def inputs_of(self, law: int) -> list[str]:
        """Return the input ports of a law."""
        return self._inputs_of[law] if law >= 0 else []

    def _input(self, name: str, default: float, unit: Unit | None, moves: bool) -> list[str]:
        """Return the ports of an input, made where they are missing."""
        ports = [Port(name, unit=unit, default=default)]
        if moves:
            second = parse_unit("s")
            for what in ("rate", "acceleration"):
                unit = None if unit is None else unit / second
                doc = f"{what} of {name}, which moves something"
                ports.append(Port(f"{name}_{what}", unit=unit, default=0.0, doc=doc))
        for port in ports:
            if port.name not in self.input_names:
                self.input_names.append(port.name)
                self.ports.append(port)
                continue
            other = self.ports[self.input_names.index(port.name)]
            if other.unit != port.unit or np.any(other.default != port.default):
                raise DiagramError(
                    f"two inputs are called `{port.name}`, with different units or defaults: "
                    f"give one of them another name."
                )
        names = [port.name for port in ports]
        self.rates.update(pairwise(names))
        return names
