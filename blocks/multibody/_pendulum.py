"""A pendulum: the smallest plant."""

from __future__ import annotations

from ...errors import DiagramError
from ..core._block import NativeBlock
from ..core._ports import CONTINUOUS, Port, parameter


class Pendulum(NativeBlock):
    """A rigid body that swings about a fixed horizontal axis.

    J dω/dt = τ - m g l sin θ - d ω,  θ measured from hanging straight down.

    Parameters
    ----------
    mass, length
        Mass in kg, and distance of its center from the axis in m.
    inertia
        About the axis in kg m²; without one all mass is in one point, J = m l².
    damping
        Viscous, in N m s/rad.
    gravity
        In m/s².
    angle, speed
        At the start, in rad and rad/s.
    """

    kernel = "pendulum"

    def __init__(
        self,
        mass: float = 1.0,
        length: float = 1.0,
        *,
        inertia: float | None = None,
        damping: float = 0.0,
        gravity: float = 9.81,
        angle: float = 0.0,
        speed: float = 0.0,
    ) -> None:
        inertia = mass * length**2 if inertia is None else inertia
        if not (mass > 0 and length > 0 and inertia >= mass * length**2 * (1 - 1e-9)):
            raise DiagramError(
                f"a pendulum of mass {mass:g} kg at {length:g} m has at least J = m l² = "
                f"{mass * length**2:g} kg m² about its axis; got {inertia:g}."
            )
        super().__init__(
            inputs=[Port("torque", unit="N.m", default=0.0, doc="torque about the axis")],
            outputs=[
                Port("angle", unit="rad", doc="from hanging straight down"),
                Port("speed", unit="rad/s"),
            ],
            parameters=[
                parameter("inertia", inertia, unit="kg.m2", doc="about the axis"),
                parameter("weight_moment", mass * gravity * length, unit="N.m", doc="m g l"),
                parameter("damping", damping, unit="N.m.s/rad", doc="viscous"),
                parameter("initial_angle", angle, unit="rad", doc="at the start", tunable=False),
                parameter("initial_speed", speed, unit="rad/s", doc="at the start", tunable=False),
            ],
            rate=CONTINUOUS,
            feedthrough=False,
            states=2,
        )
