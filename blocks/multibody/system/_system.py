"""A mechanism as data: bodies, markers, joints, forces and drivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import numpy as np

from ....errors import DiagramError, name_list
from ...core._ports import Matrix, Numbers, Parameter, parameter
from ..elements._table import ElementMethods
from ._bodies import Body, read_inertia, read_mass
from ._joint_methods import JointMethods
from ._reading import read_number, read_rotation, suggest_keywords
from ._rotations import Array, freeze

if TYPE_CHECKING:
    from ..analysis._equilibrium import Equilibrium
    from ..analysis._linear import Linearization, Mode
    from ..analysis._pose import Assembly
    from ..analysis._prescribed import Motion
    from ..analysis._report import MechanismReport
    from ..drawing._figure import SystemFigure
    from ..plant._initial import Initial
    from ..plant._plant import Plant
    from ..plant._signals import Signals
    from ._laws import Lawlike


class System(JointMethods, ElementMethods):
    """A mechanism: rigid bodies that joints tie together and forces move.

    Bodies, markers, joints and elements are made by the methods of this class and of `Body`; they
    are plain data, read by whatever computes with them. Units are SI.

    Parameters
    ----------
    name
        For people.
    gravity
        Acceleration in m/s²; (0, 0, -9.80665), or (0, -9.80665) in a plane, if not given.
    planar
        Whether all moves in the plane x-y and turns about z. Vectors then have two numbers,
        rotations, angular velocities, inertias and torques one.
    """

    @suggest_keywords
    def __init__(self, name: str, gravity: Numbers | None = None, *, planar: bool = False) -> None:
        self.name = name
        self.planar = bool(planar)
        if gravity is None:
            gravity = (0.0, -9.80665) if planar else (0.0, 0.0, -9.80665)
        self.gravity: Array = self._vector("`gravity`", gravity)
        zero, one = freeze(np.zeros(3)), freeze(np.eye(3))
        none = freeze(np.zeros((3, 3)))
        self.ground = Body("ground", self, -1, 0.0, zero, none, zero, one, zero, zero)
        self._parts = {"ground": self.ground}
        self._stiffnesses: dict[str, tuple[float, float]] = {}

    @staticmethod
    @suggest_keywords
    def from_urdf(
        path: str | Path,
        *,
        gravity: Numbers | None = None,
        base: Literal["fixed", "free"] = "fixed",
        positions: Mapping[str, Numbers] | None = None,
        velocities: Mapping[str, Numbers] | None = None,
        stop_stiffness: float | Mapping[str, float] | None = None,
        stop_damping: float | Mapping[str, float] = 0.0,
        smoothing_speed: float = 1e-3,
        allow_nonphysical: bool = False,
    ) -> System:
        """Make the system of a robot that a URDF file describes.

        Links are bodies; those that fixed joints weld to another one are markers on its body. What
        becomes of each element of the file is in docs/guides/multibody.md.

        Parameters
        ----------
        path
            The file. Macros (xacro) must have been expanded.
        gravity
            As of `System`.
        base
            Whether the link that no joint carries is welded to the ground, or flies.
        positions
            Where joints start, by the name in the file; 0 if not given. In rad or m; of a planar
            joint two displacements and the angle; of a floating one, or of a base that flies by the
            name of its link, the place and Euler parameters (x, y, z, e0, e1, e2, e3).
        velocities
            How they start: in rad/s or m/s; of a planar joint three; of a floating one velocity and
            angular velocity, six numbers in axes of the joint's frame on the parent.
        stop_stiffness, stop_damping
            Makes `<limit>` end stops, which it is not if no stiffness is given: one number for all,
            or numbers by joint; in N m/rad and N m s/rad, or N/m and N s/m.
        smoothing_speed
            Of dry friction in `<dynamics>`, in rad/s or m/s; see `friction`.
        allow_nonphysical
            Take principal moments of inertia that no distribution of mass has.

        Raises
        ------
        DiagramError
            With the line of the file: what is not XML or not URDF, links that make no tree, masses
            and inertias that no body has, `<mimic>`.
        """
        from ..urdf._build import Options, build_system

        options = Options(
            base,
            positions or {},
            velocities or {},
            stop_stiffness,
            stop_damping,
            smoothing_speed,
            allow_nonphysical,
        )
        return build_system(System, path, gravity, options)

    def __repr__(self) -> str:
        return (
            f"System({self.name!r}, {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"{len(self.elements)} forces, {len(self.drivers)} drivers)"
        )

    @property
    def mobility(self) -> int:
        """Return 6 (in a plane 3) for each body, less one for each row of joints and constraints.

        It is the number of degrees of freedom if no equation is redundant [V 1.11]. A bearing that
        a constraint holds has two rows.
        """
        rows = sum(len(joint.rows) for joint in self.joints) + len(self.constraints)
        rows += sum(element.row_count for element in self.elements)
        return (3 if self.planar else 6) * len(self.bodies) - rows

    @suggest_keywords
    def body(
        self,
        name: str,
        *,
        mass: float,
        inertia: Matrix,
        com: Numbers | None = None,
        position: Numbers | None = None,
        rotation: Matrix | None = None,
        velocity: Numbers | None = None,
        angular_velocity: Numbers | None = None,
        free: bool = False,
        allow_nonphysical: bool = False,
    ) -> Body:
        """Add a rigid body and return it.

        Parameters
        ----------
        name
            Unique in the system.
        mass
            In kg; 0 only for a body between two joints or more.
        inertia
            About the center of mass in axes of the body, in kg m²: a number, three principal
            moments or a tensor; in a plane J_z. 0 makes it a point mass.
        com
            Center of mass in axes of the body, in m; its origin if not given.
        position, rotation
            Of its frame in the world: m, and a matrix or Euler parameters (e0, e1, e2, e3), in a
            plane an angle in rad.
        velocity, angular_velocity
            Of its frame, in axes of the world: m/s, rad/s.
        free
            Whether it may fly without any joint or spring.
        allow_nonphysical
            Take principal moments that no distribution of mass has.
        """
        self._check_name(name)
        what = f"of body `{name}`"
        turning = self._rotation_vector(f"`angular_velocity` {what}", angular_velocity)
        made = Body(
            name,
            self,
            self._newest_body().index + 1,
            read_mass(name, mass),
            self._vector(f"`com` {what}", com),
            read_inertia(name, inertia, self.planar, allow_nonphysical),
            self._vector(f"`position` {what}", position),
            read_rotation(f"`rotation` {what}", rotation, self.planar),
            self._vector(f"`velocity` {what}", velocity),
            turning,
            bool(free),
        )
        self._parts[name] = made
        return made

    def parameters(self) -> dict[str, Parameter]:
        """Return every number of the system by its path, with its unit.

        Paths are such as ``gravity``, ``crank.mass``, ``crank.pin.position``,
        ``suspension.stiffness``, ``ground.road.z.amplitude``. The orientation of markers, and the
        numbers of tables and formulas, stay as they were given.
        """
        gravity = self.gravity[:2] if self.planar else self.gravity
        found: Iterator[Parameter] = chain(
            [parameter("gravity", gravity, unit="m/s2", doc="acceleration")],
            *(part.parameters() for part in self._parts.values()),
        )
        return {item.name: item for item in found}

    def outputs(self) -> Signals:
        """Return everything that the block of the system can show, by name.

        Print it for a table of names, units, widths (other than 1) and what each one is; names are
        what `block` takes in ``outputs=``. As data it is a dict:
        ``system.outputs()["main.angle"].unit``.

        Raises
        ------
        DiagramError
            If the system is not complete; see `validate`.
        """
        from ..plant._signals import outputs

        return outputs(self)

    def inputs(self) -> Signals:
        """Return the inputs that the block of the system has or can have, by name.

        `Input` laws are inputs always; the others are numbers that `block` makes inputs if they are
        named in its ``inputs=``. Printed it is a table, as data a dict, like `outputs`.

        Raises
        ------
        DiagramError
            If the system is not complete; see `validate`.
        """
        from ..plant._signals import inputs

        return inputs(self)

    def block(
        self,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] | None = None,
        *,
        mode: Literal["continuous", "internal"] = "continuous",
        integrator: Literal["rk4", "implicit"] = "rk4",
        substeps: int = 1,
        spectral_radius: float = 0.8,
        initial: Initial | None = None,
    ) -> Plant:
        """Return the mechanism as a block of a diagram; see `Plant` for the arguments.

        If `outputs` is not given, the block shows the coordinates of every joint with their speeds,
        and position and rotation of every body, as `export_fmu` does; ``outputs=[]`` shows nothing.
        """
        from ..plant._initial import list_motion
        from ..plant._plant import Plant

        return Plant(
            self,
            inputs,
            list_motion(self) if outputs is None else outputs,
            mode=mode,
            integrator=integrator,
            substeps=substeps,
            spectral_radius=spectral_radius,
            initial=initial,
        )

    def export_fmu(
        self,
        path: str | Path,
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        parameters: Sequence[str] | Mapping[str, Numbers | None] | None = None,
        platforms: Sequence[str] | None = None,
        sources: bool = True,
        step: float = 1e-3,
        solver: str = "rk4",
        initial: Initial | None = None,
    ) -> Path:
        """Write the mechanism alone as an FMI 2.0 co-simulation FMU.

        If not told otherwise, constant forces and torques are its inputs, coordinates and poses its
        outputs, and every number is a parameter. See `biella.fmu.export_system`.
        """
        from ....fmu.exporter._mechanism import export_system

        return export_system(
            self,
            path,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            platforms=platforms,
            sources=sources,
            step=step,
            solver=solver,
            initial=initial,
        )

    def draw(
        self,
        path: str | Path | None = None,
        *,
        poses: object = None,
        view: str | Sequence[float] | None = None,
        title: str | None = None,
    ) -> SystemFigure:
        """Draw the mechanism, in the poses that were given; see `drawing._picture.draw`."""
        from ..drawing._picture import draw

        return draw(self, path, poses=poses, view=view, title=title)

    def animate(
        self,
        result: object,
        path: str | Path,
        *,
        traces: Sequence[str] = (),
        fps: float = 25.0,
        speed: float = 1.0,
        view: str | Sequence[float] | None = None,
        title: str | None = None,
        prefix: str | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Path:
        """Show a recorded motion as a GIF, MP4 or PNG; see `drawing._picture.animate`."""
        from ..drawing._picture import animate

        return animate(
            self,
            result,
            path,
            traces=traces,
            fps=fps,
            speed=speed,
            view=view,
            title=title,
            prefix=prefix,
            progress=progress,
        )

    def report(self, t: float = 0.0, *, initial: Initial | None = None) -> MechanismReport:
        """Return degrees of freedom, redundant equations joint by joint, and how it assembles.

        Print it. Taken in the assembled pose at time t; other poses may have another rank.
        `initial` is that of `assemble`.
        """
        from ..analysis._report import report

        return report(self, t, initial)

    def assemble(self, t: float = 0.0, *, initial: Initial | None = None) -> Assembly:
        """Return the state that a run starts with at time t: closed joints, velocities that fit.

        It is the nearest to what the bodies were given, in the metric of mass: first the pose with
        the least ∫ |x - x_given|² dm over all bodies, then the velocities with the least
        ∫ |v - v_given|² dm. It is found by the engine's own routine, so that a run, and an FMU in
        which parameters were changed, start with the same. Only a bearing held by a constraint is
        a hinge here, without the offset of its journal. The result says what was changed, and by
        how much.

        Parameters
        ----------
        t
            In s.
        initial
            Joint coordinates and speeds that are kept, as of `block`.

        Raises
        ------
        DiagramError
            If the joints cannot be closed: it names those that stay open, and by how much. If a
            value of `initial` cannot be had.
        """
        from ..analysis._pose import assemble

        return assemble(self, t, initial)

    def kinematics(self, times: Numbers) -> Motion:
        """Return the motion and all forces of a mechanism whose drivers leave it no freedom.

        Φ(q, t) = 0, Φ_u u = -Φ_t, Φ_u u̇ = γ and Φ_uᵀ λ = Q - M u̇, at each time. The motion is
        followed from the given pose at t = 0. Angles are unwrapped.

        Parameters
        ----------
        times
            In s, rising.

        Raises
        ------
        DiagramError
            If there is freedom left, if drivers contradict each other, or ask for a place that is
            out of reach.
        """
        from ..analysis._prescribed import kinematics

        return kinematics(self, times)

    def inverse_dynamics(self, motion: Mapping[str, Lawlike], times: Numbers) -> Motion:
        """Return the efforts that move joint coordinates in a given way: ``result.efforts``.

        All other forces of the system act too, so that an effort is what must be added to them.

        Parameters
        ----------
        motion
            Laws of t by path of a coordinate, such as ``{"shoulder.angle": "0.3 * sin(2 * t)"}``:
            with the drivers, as many as there are degrees of freedom.
        times
            In s, rising.
        """
        from ..analysis._prescribed import inverse_dynamics

        return inverse_dynamics(self, motion, times)

    def static_efforts(
        self,
        forces: Mapping[str, Numbers] | None = None,
        torques: Mapping[str, Numbers] | None = None,
        *,
        weight: bool = False,
        at: Assembly | None = None,
    ) -> dict[str, float]:
        """Return the efforts on joint coordinates that hold loads on a tree of joints, τ = -Jᵀ F.

        Parameters
        ----------
        forces
            In N, world axes, by marker: ``{"hand.tip": (0, 0, -10)}``.
        torques
            In N m, world axes, by body.
        weight
            Whether bodies weigh too.
        at
            The pose; the assembled one if not given.

        Raises
        ------
        DiagramError
            If joints make a loop, or a body hangs on no joint.
        """
        from ..analysis._prescribed import static_efforts

        return static_efforts(self, forces or {}, torques or {}, weight, at)

    def equilibrium(self, t: float = 0.0, *, tolerance: float = 1e-9) -> Equilibrium:
        """Return the pose, downhill from the given one, in which all forces balance.

        Drivers and moving markers stand still where time t puts them. The result says whether the
        equilibrium is stable; one that is given exactly is kept also if it is not.

        Parameters
        ----------
        t
            In s.
        tolerance
            Of generalized forces, as a part of the largest one at the start.

        Raises
        ------
        DiagramError
            If none is found: it names the body that is pushed the most.
        """
        from ..analysis._equilibrium import equilibrium

        return equilibrium(self, t, tolerance)

    def linearize(
        self,
        at: Equilibrium | Assembly | None = None,
        *,
        coordinates: Sequence[str] | None = None,
    ) -> Linearization:
        """Return M_r p̈ + C_r ṗ + K_r p = r of small motions about a pose or about a motion.

        About a pose at rest drivers and moving markers stand still. About a motion all terms of its
        velocities are in C_r and K_r: gyroscopic, centrifugal, of drivers, of forces. If it is
        steady as seen from the world, such as that of a round rotor that spins, the matrices hold
        for good, else for that instant.

        Parameters
        ----------
        at
            The pose at rest, `equilibrium()` if not given; or `assemble()`, which is a motion if
            the description or drivers give it velocities.
        coordinates
            Paths of joint coordinates to be p, one for each degree of freedom. Without them p are
            orthonormal combinations of the speeds of bodies.
        """
        from ..analysis._linear import linearize

        return linearize(self, at, coordinates)

    def modes(self, at: Equilibrium | Assembly | None = None) -> list[Mode]:
        """Return natural frequencies, damping and shapes about a state; see `linearize`.

        ``modes(s.assemble())`` of a rotor that was given an angular velocity are its whirls.
        """
        return self.linearize(at).modes()

    def largest_stable_step(self) -> float:
        """Return the largest step in s for which RK4 is stable at the start: 2.78 / |λ|.

        λ is the fastest natural motion, growing or not, of the equations as the engine solves
        them, with the loops closed, and once more with compliant contacts of clearances touching
        by 1 % of the clearance. Stops and other forces that act later may need less. With larger
        steps take ``block(mode="internal", integrator="implicit")``.
        """
        from ..analysis._stability import largest_stable_step

        return largest_stable_step(self)

    def validate(self) -> None:
        """Check what can be told only of the whole system.

        Raises
        ------
        DiagramError
            With all problems found: no bodies, bodies that hang on nothing, bodies without mass at
            the end of a chain.
        """
        problems = []
        if not self.bodies:
            problems.append(f"the system `{self.name}` has no bodies: add one with .body(…).")
        graph = nx.Graph()
        graph.add_nodes_from(["ground", *(body.name for body in self.bodies)])
        for joint in self.joints:
            graph.add_edge(joint.first.body.name, joint.second.body.name)
        jointed = Counter(
            end.body.name for joint in self.joints for end in (joint.first, joint.second)
        )
        for element in self.elements:
            if element.ends:
                graph.add_edge(*(end.body.name for end in element.ends))
            problems += element.problems()
        free = {body.name for body in self.bodies if body.free}
        for names in nx.connected_components(graph):
            if "ground" not in names and not names & free:
                ordered = [body.name for body in self.bodies if body.name in names]
                problems.append(
                    f"nothing ties {name_list(f'`{name}`' for name in ordered)} to the ground: add "
                    f"a joint, spring, bushing or bearing, or say free=True for a body that flies."
                )
        for body in self.bodies:
            if body.mass == 0 and jointed[body.name] < 2:
                problems.append(
                    f"body `{body.name}` has no mass and {jointed[body.name]} joints: only a body "
                    f"between two joints or more may be without mass."
                )
            elif jointed[body.name] == 0 and np.linalg.eigvalsh(body.inertia)[0] <= 0:
                problems.append(
                    f"body `{body.name}` has no joint and a principal moment of inertia of 0: "
                    f"nothing says how it turns. Give it inertia about all axes."
                )
        if problems:
            raise DiagramError(problems)

    def _rotation_vector(self, what: str, value: Any) -> Array:
        if value is None or not self.planar:
            return self._vector(what, value)
        return freeze([0.0, 0.0, read_number(f"{what} in a planar system", value)])
