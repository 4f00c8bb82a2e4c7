"""A force at a point of a body, both chosen while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _contract as contract
from ...core._ports import Parameter
from ..plant._parameters import law_parameters
from ..system._laws import Input
from ._element import Element, Output, power

if TYPE_CHECKING:
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables
    from ..system._system import System

INPUTS = ("body", "x", "y", "z", "fx", "fy", "fz")
"""Its inputs: 1 + the index of the body, 0 for none; the point in m in axes of the body, and the
force in N in axes of the world."""

_UNITS = dict.fromkeys("xyz", "m") | dict.fromkeys(("fx", "fy", "fz"), "N")


@dataclass(frozen=True, slots=True, eq=False)
class Push(Element):
    """A force on whichever body its inputs name: F at p_B + R_B r.

    Without a body it adds nothing to the loads of the mechanism, whose numbers then keep their
    bits. The studio adds one to each mechanism of its runs.

    Attributes
    ----------
    system
        The system, whose first body has the marker of its record.
    """

    kernel = contract.MB_PUSH
    is_load = True

    name: str
    system: System

    def input_names(self) -> list[str]:
        """Return the names of its inputs, in the order of `INPUTS`."""
        return [f"{self.name}.{what}" for what in INPUTS]

    def parameters(self) -> Iterator[Parameter]:
        """Yield the defaults of its inputs."""
        for what in INPUTS:
            doc = f"{what} of a push"
            yield from law_parameters(f"{self.name}.{what}", Input(), _UNITS.get(what, "1"), doc)

    @property
    def may_be_stiff(self) -> bool:
        """Return False: its force does not depend on the state."""
        return False

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        return {
            "force": Output(
                contract.PUSH_SHOWN_FORCE, "N", "on the body, in world axes", 3, "laws"
            ),
            "point": Output(
                contract.PUSH_SHOWN_POINT, "m", "where it acts, in world axes", 3, "laws"
            ),
            "power": power(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        first, *_ = [tables.law(f"{self.name}.{what}", Input()) for what in INPUTS]
        marker = tables.body_frame(self.system.bodies[0])
        return [marker, marker, 0, first, 0]

    def reserve(self, shapes: Shapes) -> None:
        """Return nothing: it has no load without its inputs."""

    def push(self, at: LoadState, items: Any) -> None:
        """Add nothing: it has no load without its inputs."""
