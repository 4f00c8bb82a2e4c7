"""Archard's wear of a hole and of the pin in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ._numbers import check, check_positive

FEWEST_SECTIONS, MOST_SECTIONS = contract.MB_WEAR_FEWEST, contract.MB_WEAR_MOST


@dataclass(frozen=True, kw_only=True)
class Wear:
    """Archard's wear of hole and pin: volume loss coefficient N |slip| / hardness, in m³/s.

    The wear depth is stored at equally spaced angles of the hole, and of the pin if that wears
    too. The pin touches the worn hole, so that the gap, the contact direction and all forces depend
    on wear. Contacts are about two sections wide, and their pressure is distributed over these.

    Wear per second is small and proportional to the coefficient. To simulate many hours in a few
    turns, multiply the coefficient, but keep the depth per turn small.

    Parameters
    ----------
    coefficient
        Archard's k of the hole, dimensionless: 1e-7 for well lubricated steel, 1e-4 for dry steel.
    hardness
        Of the hole, in Pa: 2e9 for steel. Where only the hole is given, that of the softer surface.
    length
        Contact length of the pin in its hole, in m.
    sections
        Number of sections of the hole, and of the pin, 36 to 3600.
    pin_coefficient
        k of the pin. By default the pin does not wear.
    pin_hardness
        Of the pin, in Pa; by default that of the hole.
    """

    coefficient: float
    hardness: float
    length: float
    sections: int = 180
    pin_coefficient: float | None = None
    pin_hardness: float | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        check("Wear", "coefficient", self.coefficient, 0.0)
        check_positive("Wear", "hardness", self.hardness, "Pa")
        check_positive("Wear", "length", self.length, "m")
        if (
            not isinstance(self.sections, int)
            or not FEWEST_SECTIONS <= self.sections <= MOST_SECTIONS
        ):
            raise DiagramError(
                f"`sections` of Wear is a whole number from 36 to 3600, got {self.sections!r}."
            )
        if self.pin_coefficient is not None:
            check("Wear", "pin_coefficient", self.pin_coefficient, 0.0)
        if self.pin_hardness is None:
            return
        check_positive("Wear", "pin_hardness", self.pin_hardness, "Pa")
        if self.pin_coefficient is None:
            raise DiagramError(
                "Wear has a `pin_hardness` and no `pin_coefficient`: give both if the pin wears."
            )

    def parameters(self, name: str, *, pin: bool, hidden: bool = False) -> Iterator[Parameter]:
        """Yield its parameters by path: ``name.wear_coefficient`` …, those of the pin on demand."""
        numbers = [
            ("wear_coefficient", self.coefficient, None, "Archard's"),
            ("hardness", self.hardness, "Pa", "of the softer surface"),
            ("length", self.length, "m", "of the pin in its hole"),
        ]
        if pin:
            harder = self.hardness if self.pin_hardness is None else self.pin_hardness
            numbers[1] = ("hardness", self.hardness, "Pa", "of the hole")
            numbers += [
                (
                    "pin_wear_coefficient",
                    self.pin_coefficient or 0.0,
                    None,
                    "Archard's, of the pin",
                ),
                ("pin_hardness", harder, "Pa", "of the pin"),
            ]
        for what, value, unit, doc in numbers:
            yield parameter(
                f"{name}.{what}", value, unit=unit, doc=doc, hidden=hidden, tunable=not hidden
            )
