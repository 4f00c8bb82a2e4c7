"""End stops on a joint coordinate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Parameter, parameter
from ..joints._joint import Joint
from ..system._parts import Parts
from ..system._reading import read_not_negative, suggest_keywords
from ._element import Element, Output, energy, power

if TYPE_CHECKING:
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class EndStop(Element):
    """End stops on a joint coordinate q with rate v.

    Beyond `upper` by δ = q - upper > 0 the effort is -max(0, stiffness δ + damping v); below
    `lower` by δ = lower - q > 0 it is +max(0, stiffness δ - damping v). A stop never pulls. An
    infinite limit has no stop.
    """

    kernel = contract.MB_END_STOP

    name: str
    joint: Joint
    coordinate: int
    lower: float
    upper: float
    stiffness: float
    damping: float

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        of = self.joint.coordinates[self.coordinate]
        for name, unit, doc in (
            ("lower", of.unit, "lower limit"),
            ("upper", of.unit, "upper limit"),
            ("stiffness", f"{of.effort_unit}/{of.unit}", "beyond a limit"),
            ("damping", f"{of.effort_unit}.s/{of.unit}", "beyond a limit"),
        ):
            value = getattr(self, name)
            yield parameter(f"{self.name}.{name}", value, unit=unit, doc=doc, finite=False)

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        of = self.joint.coordinates[self.coordinate]
        beyond = "how far the coordinate is beyond a limit; negative below the lower one"
        return {
            of.effort: Output(
                contract.STOP_SHOWN_EFFORT,
                of.effort_unit,
                f"on the coordinate of {self.joint.name}",
            ),
            "deflection": Output(contract.STOP_SHOWN_DEFLECTION, of.unit, beyond),
            "power": power(),
            "energy": energy(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        at = tables.coordinate(self.joint, self.coordinate)
        return [at.q, at.v, tables.place(f"{self.name}.lower"), 0, at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        turns = self.joint.coordinates[self.coordinate].kind == "angle"
        q, v = at.unwrapped(items) if turns else at.value(items), at.rate(items)
        if q > self.upper:
            at.push_scalar(items, -max(0.0, self.stiffness * (q - self.upper) + self.damping * v))
        elif q < self.lower:
            at.push_scalar(items, max(0.0, self.stiffness * (self.lower - q) - self.damping * v))


class StopMethods(Parts):
    """Adds end stops."""

    @suggest_keywords
    def stop(
        self,
        name: str,
        joint: Joint,
        *,
        lower: float = -np.inf,
        upper: float = np.inf,
        stiffness: float,
        damping: float = 0.0,
        coordinate: int | None = None,
    ) -> EndStop:
        """Add end stops to a joint coordinate; see `multibody.EndStop` for their law.

        Parameters
        ----------
        name, joint
            Its name, and the joint on which it acts.
        lower, upper
            Limits in m or rad; infinite for none.
        stiffness, damping
            Beyond a limit, in N/m and N s/m or N m/rad and N m s/rad.
        coordinate
            From 0; the only one of the joint if not given.
        """
        self._check_name(name)
        if not (float(lower) < float(upper)):
            raise DiagramError(
                f"the stops of `{name}` are at lower={lower!r} and upper={upper!r}: the lower one "
                f"must be below the upper one."
            )
        place = self._find_coordinate(name, joint, coordinate)
        hard = read_not_negative(name, "stiffness", stiffness)
        soft = read_not_negative(name, "damping", damping)
        return self._add(EndStop(name, joint, place, float(lower), float(upper), hard, soft))
