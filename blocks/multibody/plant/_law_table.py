"""Laws as the engine reads them: records of integers, programs of formulas, and input ports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from .... import _contract
from ....errors import DiagramError
from ...core._ports import Parameter, Port
from ...core._units import Unit, parse_unit
from ...core.formula._formula import Formula as Parsed
from ...core.formula._formula import (
    fetch_input,
    fetch_parameter,
    fetch_time,
    write_program,
)
from ..system._laws import AbstractLaw, Constant, Formula, Input, Linear, Read, Sine, Table
from ..system._rotations import Array

_CONSTANT, _LINEAR = _contract.MB_LAW_CONSTANT, _contract.MB_LAW_LINEAR
_SINE, _INPUT = _contract.MB_LAW_SINE, _contract.MB_LAW_INPUT
_TABLE, _FORMULA = _contract.MB_LAW_TABLE, _contract.MB_LAW_FORMULA
_FIRST = {Linear: "start", Sine: "amplitude"}
_OF = {"t": 0, "l": 1, "q": 1, "N": 1, "v": 2}


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
    signals
        Outputs that formulas read, and where the kernel puts their values.
    """

    def __init__(
        self,
        numbers: Mapping[str, Parameter],
        place: Mapping[str, int],
        hide: Callable[[Sequence[float] | Array], int],
        wanted: Collection[str],
        signals: Mapping[Read, int],
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
        self.formulas: list[str] = []
        """Paths and texts of formulas, for messages."""
        self.signal_inputs: dict[Read, set[str]] = {}
        """Inputs with direct feedthrough to the outputs that formulas read."""
        self._inputs_of: list[Sequence[str]] = []
        self._reads_of: list[Sequence[Read]] = []
        self._signals = signals
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
            program = write_program(law.parsed, self._sources(path, law), (0, 0))
            self.formulas.append(f"`{path}` = `{law.text}`")
            record = [_FORMULA, len(self.words), len(program), 0]
            self.words += program
        else:
            raise DiagramError(
                f"`{path}` is a {type(law).__name__}, which the engine does not support: use a "
                f"Constant, Linear, Sine, Table, Formula or Input."
            )
        return self._append([*record, int(shift)], inputs, law.reads)

    def add_function(
        self,
        formula: Parsed,
        sources: Mapping[str, Callable[[int], tuple[int, ...]]],
        terms: list[int],
    ) -> int:
        """Return the number of a formula of coordinates, whose records are `terms`."""
        count = len(terms) // _contract.MB_TERM_FIELDS
        words = [*terms, *write_program(formula, sources, (0, 0))]
        number = self._append([_contract.MB_LAW_FUNCTION, len(self.words), len(words), count, 0])
        self.words += words
        return number

    def add_curve(self, terms: list[int], curve: list[int]) -> int:
        """Return the number of a curve on which the point with these coordinates is held."""
        count = len(terms) // _contract.MB_TERM_FIELDS
        words = [*terms, *curve]
        words += [0] * (count * _contract.MB_TERM_LEAST - len(words))
        number = self._append([_contract.MB_LAW_CURVE, len(self.words), len(words), count, 0])
        self.words += words
        return number

    def _append(
        self, record: list[int], inputs: Sequence[str] = (), reads: Sequence[Read] = ()
    ) -> int:
        """Return the number of a new law, with the inputs and the outputs that it reads."""
        self.records.append(record)
        self._inputs_of.append(inputs)
        self._reads_of.append(reads)
        return len(self.records) - 1

    def inputs_of(self, law: int) -> list[str]:
        """Return the input ports of a law."""
        if law < 0:
            return []
        read = (self.signal_inputs.get(item, set()) for item in self._reads_of[law])
        return [*self._inputs_of[law], *set().union(*read)]

    def _sources(self, path: str, law: Formula) -> dict[str, Callable[[int], tuple[int, ...]]]:
        """Return how the variables, parameters and outputs in a formula are fetched."""
        own = fetch_input(0)
        sources = {"t": fetch_time, "l": own, "q": own, "N": own, "v": lambda _: own(1)}
        for name in law.parameters:
            sources[name] = _fetch_first(fetch_parameter(self._place[f"{path}.{name}"]))
        for read in law.reads:
            sources[read.path] = self._fetch_signal(read.path)
        return sources

    def _fetch_signal(self, path: str) -> Callable[[int], tuple[int, ...]]:
        """Return how an output is fetched, of one number or of several."""
        alone = self._signals.get(Read(path, None))
        if alone is not None:
            return lambda _: fetch_input(1)(alone)
        return lambda index: fetch_input(1)(self._signals[Read(path, index)])

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


def _fetch_first(fetch: Callable[[int], tuple[int, ...]]) -> Callable[[int], tuple[int, ...]]:
    return lambda _: fetch(0)
