"""A user's own formula as a native block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....errors import DiagramError, name_list, suggest
from ...core._block import NativeBlock
from ...core._ports import (
    CONSTANT,
    CONTINUOUS,
    INHERITED,
    KINDS,
    SWITCHING,
    TIMED,
    Kind,
    Numbers,
    Parameter,
    Port,
    Rate,
    Same,
    parameter,
)
from ...core.formula._formula import (
    FUNCTIONS,
    TIME,
    Formula,
    as_kind,
    fetch_input,
    fetch_parameter,
    fetch_time,
    read_formula,
    write_program,
)

Formulas = str | Sequence[str] | Mapping[str, str | Sequence[str]]


class Expression(NativeBlock):
    """A formula over inputs, parameters and time: y = f(t, u, p).

    It is read, never evaluated by Python, and runs in the engine like any other native block::

        Expression("k*sin(theta) - d*omega", parameters={"k": 2.0, "d": 0.1})

    has the inputs ``theta`` and ``omega`` and the output ``y``. A name that is not a
    parameter, function or constant is an input; ``t`` is the time in seconds.

    A formula has numbers, ``True``, ``False``, ``pi`` and ``e`` (unless a parameter or one of
    `inputs` is called so); ``+ - * / ** // %``; comparisons, also ``a < b < c``; ``and``, ``or``,
    ``not``; ``a if c else b``; and ``u[2]``, an element of a vector. Its functions are sin cos tan
    asin acos atan atan2 sinh cosh tanh exp log log10 sqrt abs sign min max floor ceil round hypot,
    ``clip(x, low, high)``, ``mod(a, b)``, ``pow(a, b)`` and ``where(condition, a, b)``.

    - Comparisons, ``and``, ``or`` and ``not`` give 0 or 1; anything but 0 counts as true.
    - ``a // b`` is the floor of the quotient and ``a % b`` has the sign of b, as in Python.
      ``round`` takes halves to the even neighbor.
    - Both sides of ``a if c else b``, and of ``and`` and ``or``, are computed. That is safe: in
      ``1/x if x != 0 else 0`` the infinity of the side that is not taken does not leak. One that
      reaches an output stops the run.

    Parameters
    ----------
    formula
        A formula, for the output ``y``; a list of formulas, for a vector; or a dict of these by
        the name of the output.
    inputs
        Names of the input ports, or ports with their width, unit and kind; by default the names
        in the order in which they appear, as wide as their indices ask for.
    parameters
        Numbers or vectors by name. They may be set after the diagram is compiled.
    unit
        Unit of the output, or a dict by output; without one none is given. Inputs take any unit and
        kind.
    kind
        Of the output, or a dict by output. A boolean is made 0 or 1, an integer is rounded, and
        both change at ticks only.
    """

    kernel = "expression"
    can_be_sampled = True

    def __init__(
        self,
        formula: Formulas,
        *,
        inputs: Sequence[str | Port] | None = None,
        parameters: Mapping[str, Numbers] | None = None,
        unit: str | Mapping[str, str] | None = None,
        kind: Kind | Mapping[str, Kind] = "real",
    ) -> None:
        constants = [
            parameter(name, value, doc="of the formula")
            for name, value in (parameters or {}).items()
        ]
        given = None if inputs is None else [_port(port) for port in inputs]
        _check_names([p.name for p in constants], [p.name for p in given or ()])
        declared = {p.name for p in [*constants, *(given or ())]}
        formulas = {
            name: [read_formula(text, declared) for text in texts]
            for name, texts in _by_output(formula).items()
        }
        everything = [f for vector in formulas.values() for f in vector]
        ports = _find_inputs(everything, constants, given)
        _check_use(everything, constants, ports)

        outputs = [
            Port(name, len(vector), _of(unit, name, formulas, "unit"), _kind(kind, name, formulas))
            for name, vector in formulas.items()
        ]
        sources = _sources(ports, constants)
        program: list[int] = []
        for n, port in enumerate(outputs):
            for element, one in enumerate(formulas[port.name]):
                program += write_program(as_kind(one, str(port.kind)), sources, (n, element))
        used = {
            name: {v.name for f in vector for v in f.variables()}
            for name, vector in formulas.items()
        }
        numbers = {port.name: n for n, port in enumerate(ports)}
        self._read = [
            [
                sorted(
                    {(numbers[v.name], v.index or 0) for v in f.variables() if v.name in numbers}
                )
                for f in formulas[port.name]
            ]
            for port in outputs
        ]
        self.formula = formula
        super().__init__(
            inputs=ports,
            outputs=outputs,
            parameters=constants,
            rate=_rate(used, ports, outputs),
            feedthrough=[
                (name, port.name)
                for name, names in used.items()
                for port in ports
                if port.name in names
            ],
            integers=program,
        )

    def find_read_elements(
        self, output: int, element: int, widths: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the elements that stand in the formula."""
        return self._read[output][element]


def _by_output(formula: Formulas) -> dict[str, list[str]]:
    named = formula if isinstance(formula, Mapping) else {"y": formula}
    result = {
        name: [texts] if isinstance(texts, str) or not isinstance(texts, Sequence) else list(texts)
        for name, texts in named.items()
    }
    if not result or not all(result.values()):
        raise DiagramError("an Expression needs at least one formula for each output.")
    return result


def _port(port: str | Port) -> Port:
    port = _free(port) if isinstance(port, str) else port
    if not isinstance(port, Port) or not isinstance(port.width, int) or port.width < 1:
        raise DiagramError(
            f"an input of an Expression is a name, or a Port of fixed width: {port!r}."
        )
    return port


def _free(name: str, width: int = 1) -> Port:
    """Return a port that takes any unit and any kind."""
    return Port(name, width, kind=Same(name))


def _check_names(parameters: list[str], inputs: list[str]) -> None:
    for name in [*parameters, *inputs]:
        if not (isinstance(name, str) and name.isidentifier()) or name in FUNCTIONS or name == TIME:
            meaning = (
                " is the time" if name == TIME else " is a function" if name in FUNCTIONS else ""
            )
            raise DiagramError(
                f"{name!r}{meaning or ' cannot stand in a formula'}: give the input or parameter "
                f"another name, of letters, digits and `_`."
            )
    for name in parameters:
        if name in inputs:
            raise DiagramError(f"`{name}` is both an input and a parameter.")


def _find_inputs(
    formulas: list[Formula], parameters: list[Parameter], given: list[Port] | None
) -> list[Port]:
    """Return the input ports: `given`, or what the formulas name, in order."""
    known = {p.name for p in parameters} | {TIME}
    widths: dict[str, int] = {}
    for formula in formulas:
        for variable in formula.variables():
            if variable.name in known:
                continue
            if given is None:
                before = widths.get(variable.name, 1)
                widths[variable.name] = max(before, (variable.index or 0) + 1)
            elif variable.name not in (names := [port.name for port in given]):
                raise formula.fail(
                    variable.column,
                    f"`{variable.name}` is neither an input nor a parameter."
                    f"{suggest(variable.name, [*names, *known])} Inputs: {name_list(names)}. "
                    f"Parameters: {name_list(p.name for p in parameters)}",
                )
    return [_free(name, width) for name, width in widths.items()] if given is None else given


def _check_use(formulas: list[Formula], parameters: list[Parameter], ports: list[Port]) -> None:
    """Vectors are used by element, elements exist, and every parameter is used."""
    widths = {port.name: port.width for port in ports if isinstance(port.width, int)}
    widths |= {p.name: p.value.size for p in parameters}
    unused = [p.name for p in parameters]
    for formula in formulas:
        for variable in formula.variables():
            if variable.name in unused:
                unused.remove(variable.name)
            width = widths.get(variable.name, 1)
            if variable.index is None and width > 1:
                raise formula.fail(
                    variable.column,
                    f"`{variable.name}` has {width} elements: say which, `{variable.name}[0]`",
                )
            if variable.index is not None and variable.index >= width:
                raise formula.fail(
                    variable.column,
                    f"`{variable.name}` has {width} elements, numbered from 0: there is no "
                    f"`{variable.name}[{variable.index}]`",
                )
    if unused:
        names = [port.name for port in ports]
        raise DiagramError(
            f"the parameter `{unused[0]}` is not in the formula.{suggest(unused[0], names)} "
            f"Inputs: {name_list(names)}."
        )


def _sources(
    ports: list[Port], parameters: list[Parameter]
) -> dict[str, Callable[[int], tuple[int, ...]]]:
    sources = {port.name: fetch_input(n) for n, port in enumerate(ports)}
    first = 0
    for constant in parameters:
        sources[constant.name] = fetch_parameter(first)
        first += constant.value.size
    return {**sources, TIME: fetch_time}


def _of(given: Any, name: str, outputs: Mapping[str, object], what: str) -> Any:
    """Return the value for one output: the same for all, or by name."""
    if not isinstance(given, Mapping):
        return given
    for key in given:
        if key not in outputs:
            raise DiagramError(
                f"{what} names `{key}`, which is not an output.{suggest(key, outputs)} "
                f"Outputs: {name_list(outputs)}."
            )
    return given.get(name)


def _kind(given: Any, name: str, outputs: Mapping[str, object]) -> Kind:
    kind = _of(given, name, outputs, "kind") or "real"
    if kind not in KINDS:
        raise DiagramError(f"kind is one of {', '.join(KINDS)}, not {kind!r}.")
    return kind


def _rate(used: Mapping[str, set[str]], ports: list[Port], outputs: list[Port]) -> Rate:
    jumps = any(port.kind != "real" for port in outputs)
    if any(TIME in names for names in used.values()):
        return TIMED if jumps else CONTINUOUS
    if not ports:
        return CONSTANT
    return SWITCHING if jumps else INHERITED
