"""Buses: named signals that are connected as one wire.

A bus exists only in the diagram. The compiler connects each signal in it directly to the blocks
that read it (`scheduler/compile/_buses.py`), so a bus has no kernel and costs nothing in a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....errors import DiagramError
from ...core._block import AbstractBlock
from ...core._ports import KINDS, Port
from ...core._units import Unit

Shape = Mapping[str, "Shape | None"]
"""Names of the elements of a bus; None for a signal."""

Elements = (
    Mapping[str, "str | Port | BusType | Mapping[str, object] | None"] | Sequence["str | Port"]
)
"""What a bus is made of: names with their types, or a list of names."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BUS = "carries signals under names"


class BusType(Mapping[str, "Port | BusType"]):
    """The type of a bus: a record of named signals, with units, and of other buses.

    It is a read-only mapping from names to ports and types. Types with the same elements in the
    same order are equal. ::

        Pose = BusType({"x": "m", "y": "m", "heading": "rad"})
        Sensors = BusType({
            "speed": "rad/s",
            "mode": Port("mode", kind="enumeration", names=("off", "run")),
            "pose": Pose,
        })

    Parameters
    ----------
    elements
        For each name a unit, a `Port` of the same name for other widths and kinds, another
        `BusType` or mapping for a bus inside the bus, or None for a number without unit. A list
        of names or ports is accepted too.
    """

    def __init__(self, elements: Elements) -> None:
        made = {name: _element(name, what) for name, what in _pairs(elements)}
        if not made:
            raise DiagramError("a bus needs at least one element.")
        self._elements = made

    def __getitem__(self, name: str) -> Port | BusType:
        return self._elements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BusType) and tuple(self.items()) == tuple(other.items())

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return f"BusType({{{', '.join(f'{n!r}: {_show(e)}' for n, e in self.items())}}})"

    @property
    def shape(self) -> Shape:
        """The names alone."""
        return {n: e.shape if isinstance(e, BusType) else None for n, e in self.items()}

    def list_signals(self) -> list[tuple[str, Port]]:
        """Return every signal by its path in the bus, such as ``"pose.x"``, in order."""
        found: list[tuple[str, Port]] = []
        for name, element in self.items():
            if isinstance(element, BusType):
                found += [(f"{name}.{path}", port) for path, port in element.list_signals()]
            else:
                found.append((name, element))
        return found


class _Wiring(AbstractBlock):
    """A block that only groups or separates signals: it is gone when the diagram is flattened."""

    def refuse_period(self) -> str:
        return (
            f"a {type(self).__name__} only connects signals, each of which keeps the rate of its "
            f"source. Sample a signal with a ZeroOrderHold."
        )


class Bus(_Wiring):
    """A bus from signals: one output that carries all inputs under their names.

    ``Bus({"speed": "rad/s", "torque": "N.m"})`` checks the signals against these units,
    ``Bus(["speed", "torque"])`` takes any signals, and other buses, as they are. The signals keep
    their rates and are recorded once, under the names of their sources; a run, a binding and an
    FMU find them also as ``name_of_the_bus.speed``. ::

        sensors = d.add(Bus({"speed": "rad/s", "torque": "N.m"}), "sensors",
                        speed=encoder["speed"], torque=cell)
        d.connect(sensors, controller["sensors"])

    Parameters
    ----------
    elements
        A `BusType`, or what one is made of; or a list of names.
    """

    def __init__(self, elements: BusType | Elements) -> None:
        self.elements: Mapping[str, Port | BusType | None]
        """For each name its type; None where any signal or bus may be connected."""
        if isinstance(elements, Mapping):
            self.elements = elements if isinstance(elements, BusType) else BusType(elements)
        else:
            pairs = _pairs(elements)
            known = BusType(elements)
            self.elements = {name: what and known[name] for name, what in pairs}  # type: ignore[misc]
        super().__init__(
            inputs=[
                element if isinstance(element, Port) else Port(name, doc=_BUS if element else "")
                for name, element in self.elements.items()
            ],
            outputs=[Port("bus", doc=_BUS)],
        )


class BusSelector(_Wiring):
    """Elements of a bus: one output for each, called by its path in the bus.

    ``BusSelector(["speed", "pose.x"])`` has the outputs ``speed`` and ``pose.x``. An element that
    is a bus itself, such as ``"pose"``, is a bus again.

    Parameters
    ----------
    elements
        One path, or a list.
    """

    def __init__(self, elements: str | Sequence[str]) -> None:
        chosen = [elements] if isinstance(elements, str) else list(elements)
        for path in chosen:
            if not isinstance(path, str) or not all(_NAME.match(p) for p in path.split(".")):
                raise DiagramError(
                    f"{path!r} cannot be an element of a bus: name it like 'speed', or 'pose.x' "
                    f"for an element of a bus inside the bus."
                )
        if not chosen:
            raise DiagramError("a BusSelector needs at least one element.")
        super().__init__(inputs=[Port("bus", doc=_BUS)], outputs=[Port(path) for path in chosen])


def _pairs(given: object) -> list[tuple[str, object]]:
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise DiagramError(
            f"the elements of a bus are names and units, {{'speed': 'rad/s'}}, or a list of "
            f"names; got {given!r}."
        )
    pairs = [(one.name, one) if isinstance(one, Port) else (one, None) for one in given]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise DiagramError(f"two elements of the bus are called `{name}`.")
    return list(pairs)


def _element(name: object, what: object) -> Port | BusType:
    if not isinstance(name, str) or not _NAME.match(name):
        raise DiagramError(
            f"{name!r} cannot name an element of a bus: letters a to z, digits and `_`, starting "
            f"with a letter."
        )
    if isinstance(what, Mapping):
        return what if isinstance(what, BusType) else BusType(what)
    if what is None or isinstance(what, str):
        return Port(name, unit=what)
    if not isinstance(what, Port):
        raise DiagramError(
            f"the element `{name}` of a bus is a unit, a Port, a BusType or None, got {what!r}."
        )
    if what.name != name:
        raise DiagramError(f"the element `{name}` of a bus is a port called `{what.name}`.")
    if not isinstance(what.width, int) or what.width < 1 or what.kind not in KINDS:
        raise DiagramError(f"the element `{name}` of a bus needs a fixed width and kind.")
    if what.unit is not None and not isinstance(what.unit, Unit):
        raise DiagramError(f"the element `{name}` of a bus needs a fixed unit, or None.")
    return replace(what, names=tuple(what.names))


def _show(element: Port | BusType) -> str:
    if isinstance(element, BusType):
        return repr(element)
    if element == Port(element.name, unit=element.unit):
        return repr(None if element.unit is None else str(element.unit))
    return repr(element)
