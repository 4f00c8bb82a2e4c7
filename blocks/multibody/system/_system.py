"""A mechanism as data: bodies, markers, joints, forces and drivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx
import numpy as np

from ....errors import DiagramError, name_list
from ...core._exports import Experiment, Terminals
from ...core._ports import Matrix, Numbers, Parameter, parameter
from ..elements._table import ElementMethods
from ..elements.formula._read_problems import list_read_problems
from ..joints._table import JointMethods
from ._bodies import Body, read_inertia, read_mass
from ._reading import read_number, read_rotation, suggest_keywords
from ._rotations import Array, freeze
from ._visuals import Visual

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
    """A mechanism: rigid bodies connected by joints and loaded by forces.

    Bodies, markers, joints and elements are made by the methods of this class and of `Body`; they
    are plain data. Units are SI.

    Parameters
    ----------
    name
        Name of the system, used in messages and pictures.
    gravity
        Acceleration in m/s²; by default (0, 0, -9.80665), or (0, -9.80665) if planar.
    planar
        Whether the motion is planar, in x-y with rotations about z. Vectors then have two
        components; rotations, angular velocities, inertias and torques are scalars.
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
        self._visuals: dict[str, list[Visual]] = {}

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
        """Create a system from the URDF description of a robot.

        Links become bodies; links that a fixed joint connects to another link become markers on its
        body. The treatment of each element of the file is described in docs/guides/multibody.md.

        Parameters
        ----------
        path
            The file. Macros (xacro) must have been expanded.
        gravity
            As in `System`.
        base
            Whether the root link is fixed to the ground or free.
        positions
            Initial joint positions, by the name in the file; 0 if not given. In rad or m; for a
            planar joint two displacements and the angle; for a floating joint, or for a free base
            by the name of its link, position and Euler parameters (x, y, z, e0, e1, e2, e3).
        velocities
            Initial joint velocities in rad/s or m/s; three values for a planar joint; for a
            floating joint velocity and angular velocity, six values in axes of the joint's frame
            on the parent.
        stop_stiffness, stop_damping
            Stiffness and damping of the end stops at `<limit>`; without a stiffness there are no
            stops. One value for all, or values by joint; in N m/rad and N m s/rad, or N/m and
            N s/m.
        smoothing_speed
            Of dry friction in `<dynamics>`, in rad/s or m/s; see `friction`.
        allow_nonphysical
            Accept principal moments of inertia that no mass distribution has.

        Raises
        ------
        DiagramError
            With the line of the file: if it is not XML or not URDF, if the links do not form a
            tree, for nonphysical masses and inertias, and for `<mimic>`.
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

    @staticmethod
    @suggest_keywords
    def from_s3d(
        folder: str | Path,
        *,
        mass_center: Literal["legacy", "physical"] | None = None,
        allow_nonphysical: bool = False,
    ) -> System:
        """Create a system from a folder of NumDyn3D cards, files ``*.s3d``.

        The treatment of each card is described in docs/guides/multibody.md. `read_s3d` also
        returns the time range and the solver settings.

        Parameters
        ----------
        folder
            With the cards General, Connection, Inertial and Initial Configuration, and optionally
            Force, SPDamp, Driving Pos and QRTol.
        mass_center
            ``"legacy"``: the mass center of each body is the origin of its frame, as in the
            original program, which ignores the key `CoM`. ``"physical"``: it is `CoM`, and the
            inertia is about it. If not given, ``"legacy"``, with a warning where `CoM` is not 0.
        allow_nonphysical
            Accept principal moments of inertia that no mass distribution has.

        Raises
        ------
        DiagramError
            With file and line of everything that is not valid or cannot be expressed.
        """
        from ..cards._read import read_cards

        return read_cards(System, folder, mass_center, allow_nonphysical).system

    @staticmethod
    @suggest_keywords
    def from_adams(path: str | Path, *, allow_nonphysical: bool = False) -> System:
        """Create a system from an Adams View command file, ``model.cmd``.

        Parts, markers, joints, motions, springs, bushings, forces, torques and gravity are read, in
        the units of the file; what changes the motion and is not read is an error. The treatment of
        each command is described in docs/guides/multibody.md. `read_adams` also returns the design
        variables and the commands that were ignored.

        Parameters
        ----------
        path
            The file, with one model, as Adams View exports it or written by hand.
        allow_nonphysical
            Accept principal moments of inertia that no mass distribution has.

        Raises
        ------
        DiagramError
            With file and line of everything that is not valid or cannot be expressed.
        """
        from ..adams._build import build_model

        return build_model(System, path, allow_nonphysical).system

    def __repr__(self) -> str:
        return (
            f"System({self.name!r}, {len(self.bodies)} bodies, {len(self.joints)} joints, "
            f"{len(self.elements)} forces, {len(self.drivers)} drivers)"
        )

    def _repr_html_(self) -> str:
        from ..drawing._notebook import show_system

        return show_system(self)

    @property
    def mobility(self) -> int:
        """Return 6 (3 if planar) per body, minus one per row of joints and constraints.

        It is the number of degrees of freedom if no equation is redundant [V 1.11]. A bearing held
        by a constraint has two rows.
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
            About the center of mass in axes of the body, in kg m²: a scalar, three principal
            moments or a tensor; J_z if planar. 0 makes it a point mass.
        com
            Center of mass in axes of the body, in m; its origin if not given.
        position, rotation
            Of its frame in the world: m, and a matrix or Euler parameters (e0, e1, e2, e3), or an
            angle in rad if planar.
        velocity, angular_velocity
            Of its frame, in axes of the world: m/s, rad/s.
        free
            Whether it may move without any joint or spring.
        allow_nonphysical
            Accept principal moments that no mass distribution has.
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
        """Return every parameter of the system by its path, with its unit.

        Examples of paths are ``gravity``, ``crank.mass``, ``crank.pin.position``,
        ``suspension.stiffness``, ``ground.road.z.amplitude``. The orientation of markers, the
        values in tables and numbers in the text of formulas are not parameters.
        """
        gravity = self.gravity[:2] if self.planar else self.gravity
        found: Iterator[Parameter] = chain(
            [parameter("gravity", gravity, unit="m/s2", doc="acceleration")],
            *(part.parameters() for part in self._parts.values()),
        )
        return {item.name: item for item in found}

    def outputs(self) -> Signals:
        """Return all available outputs of the block of the system, by name.

        Printed, it is a table of names, units, widths (other than 1) and descriptions. The names
        are valid in ``outputs=`` of `block`. As data it is a dict:
        ``system.outputs()["main.angle"].unit``.

        Raises
        ------
        DiagramError
            If the system is not complete; see `validate`.
        """
        from ..plant._signals import outputs

        return outputs(self)

    def inputs(self) -> Signals:
        """Return the actual and the available inputs of the block of the system, by name.

        `Input` laws are always inputs; the others are parameters that become inputs if they are
        named in ``inputs=`` of `block`. Printed, it is a table; as data it is a dict, like
        `outputs`.

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

        By default the outputs are the coordinates and speeds of every joint, and the position and
        rotation of every body, as in `export_fmu`; with ``outputs=[]`` there are no outputs.
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
        version: str = "2.0",
        kind: str = "cs",
        about: Mapping[str, str] | None = None,
        local: Sequence[str] = (),
        limits: Mapping[str, tuple[float | None, float | None]] | None = None,
        nominal: Mapping[str, float] | None = None,
        types: Mapping[str, str] | None = None,
        terminals: Terminals = True,
        reference: Experiment | Sequence[Experiment] | None = None,
    ) -> Path:
        """Write the mechanism alone as an FMU of FMI 2.0 or 3.0.

        By default the inputs are the constant forces and torques, the outputs are the joint
        coordinates and the poses, and every value is a parameter. See `biella.fmu.export_system`.
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
            version=version,
            kind=kind,
            about=about,
            local=local,
            limits=limits,
            nominal=nominal,
            types=types,
            terminals=terminals,
            reference=reference,
        )

    @suggest_keywords
    def to_s3d(
        self,
        folder: str | Path,
        *,
        start: float = 0.0,
        end: float = 1.0,
        intervals: int = 1000,
        settings: Mapping[str, float] | None = None,
        mass_center: Literal["legacy", "physical"] = "legacy",
    ) -> Path:
        """Write the system as a folder of NumDyn3D cards, and return the folder.

        Gravity becomes one force on each body; parameters of formulas become numbers; a planar
        system is written in space.

        Parameters
        ----------
        folder
            Created if it does not exist; cards of the same name are replaced.
        start, end, intervals
            Of the card General: time range in s and number of output intervals.
        settings
            Of the card QRTol, such as ``{"tolODE": 1e-7}``; without them the card is not written.
        mass_center
            ``"legacy"``: frames are moved to the mass centers of their bodies, as the original
            program requires. ``"physical"``: they stay, and `CoM` is written for
            ``from_s3d(…, mass_center="physical")``.

        Raises
        ------
        DiagramError
            With everything that cards cannot express.
        """
        from ..cards._write import write_cards

        return write_cards(self, folder, start, end, intervals, settings, mass_center)

    def draw(
        self,
        path: str | Path | None = None,
        *,
        poses: object = None,
        view: str | Sequence[float] | None = None,
        title: str | None = None,
    ) -> SystemFigure:
        """Draw the mechanism with the names of its parts.

        Planar motion is drawn in its plane, with axes in m. Other mechanisms are viewed obliquely
        from above, with the world axes and a scale. Labels without free space are omitted.

        Parameters
        ----------
        path
            File of the picture: ``.png``, ``.svg`` or ``.pdf``. Equal systems have equal files.
        poses
            ``(times, positions, quaternions)``, or a result with recorded poses: the first pose is
            drawn. By default the poses in the description of the bodies.
        view
            ``"xy"``, ``"xz"``, ``"yz"``, ``"zx"``, or a direction (x, y, z) to the eye; by default
            chosen from the motion.
        title
            Replaces the name of the system; ``""`` for none.

        Raises
        ------
        DiagramError
            If the system has nothing to draw, `poses` or `view` is invalid, or `path` has another
            extension.
        """
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
        """Write a recorded motion as an animation, and return its path.

        Parameters
        ----------
        result
            Result of a run with recorded poses, or ``(times, positions, quaternions)``. A result
            must have the signals ``<prefix>.<body>.position`` and ``<prefix>.<body>.rotation`` of
            every body.
        path
            ``.gif``; ``.mp4``, which requires the program ffmpeg; or ``.png``, one picture with
            several poses, earlier ones paler.
        traces
            Markers whose paths are drawn, such as ``("rod.tip",)``.
        fps
            Frames per second. A GIF is timed in hundredths of a second: 100, 50, 33.3, 25, 20 ….
        speed
            Seconds of motion per second of animation: 0.1 is slow motion.
        view, title
            As in `draw`.
        prefix
            Path of the block with the mechanism; found if the result has only one.
        progress
            Called after each frame with the number of frames written and their total.

        Raises
        ------
        DiagramError
            If the result has no motion, a trace is not a marker, or the file cannot be written.
        """
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
        """Return degrees of freedom, redundant equations of each joint, and the assembly result.

        The printed report is a summary. The rank is that of the assembled pose at time t; it may
        differ in other poses. `initial` is that of `assemble`.
        """
        from ..analysis._report import report

        return report(self, t, initial)

    def assemble(self, t: float = 0.0, *, initial: Initial | None = None) -> Assembly:
        """Return the initial state of a run at time t: closed joints and consistent velocities.

        It is the state nearest to the given one in the mass metric: first the pose that minimizes
        ∫ |x - x_given|² dm over all bodies, then the velocities that minimize ∫ |v - v_given|² dm.
        The engine computes it, so that a run, and an FMU with changed parameters, use the same
        algorithm. One exception: a bearing held by a constraint is treated as a hinge, without the
        offset of its journal. The result lists the changes and their sizes.

        Parameters
        ----------
        t
            In s.
        initial
            Prescribed joint coordinates and speeds, as in `block`.

        Raises
        ------
        DiagramError
            If the joints cannot be closed; the message lists the open joints and their gaps. If a
            value of `initial` cannot be reached.
        """
        from ..analysis._pose import assemble

        return assemble(self, t, initial)

    def kinematics(self, times: Numbers) -> Motion:
        """Return the motion and all forces of a mechanism that is fully driven.

        Φ(q, t) = 0, Φ_u u = -Φ_t, Φ_u u̇ = γ and Φ_uᵀ λ = Q - M u̇, at each time. The motion is
        tracked from the given pose at t = 0. Angles are unwrapped.

        Parameters
        ----------
        times
            In s, increasing.

        Raises
        ------
        DiagramError
            If degrees of freedom remain, if drivers contradict each other, or if they prescribe a
            pose out of reach.
        """
        from ..analysis._prescribed import kinematics

        return kinematics(self, times)

    def inverse_dynamics(self, motion: Mapping[str, Lawlike], times: Numbers) -> Motion:
        """Return the efforts that move joint coordinates in a given way: ``result.efforts``.

        All other forces of the system act too: the efforts are those required in addition.

        Parameters
        ----------
        motion
            Laws of t by path of a coordinate, such as ``{"shoulder.angle": "0.3 * sin(2 * t)"}``:
            with the drivers, as many as there are degrees of freedom.
        times
            In s, increasing.
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
        """Return the joint efforts that balance static loads on a tree of joints, τ = -Jᵀ F.

        Parameters
        ----------
        forces
            In N, world axes, by marker: ``{"hand.tip": (0, 0, -10)}``.
        torques
            In N m, world axes, by body.
        weight
            Whether to include the weight of the bodies.
        at
            The pose; the assembled one if not given.

        Raises
        ------
        DiagramError
            If joints form a loop, or a body has no joint.
        """
        from ..analysis._prescribed import static_efforts

        return static_efforts(self, forces or {}, torques or {}, weight, at)

    def equilibrium(self, t: float = 0.0, *, tolerance: float = 1e-9) -> Equilibrium:
        """Return the static equilibrium found by descent from the given pose.

        Drivers and moving markers are frozen at time t. The result reports whether the equilibrium
        is stable; one that is given exactly is returned even if it is unstable.

        Parameters
        ----------
        t
            In s.
        tolerance
            Of generalized forces, relative to the largest one at the start.

        Raises
        ------
        DiagramError
            If none is found; the message names the body with the largest unbalanced force.
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

        About a pose at rest, drivers and moving markers are frozen. About a motion, C_r and K_r
        contain all velocity-dependent terms: gyroscopic, centrifugal, of drivers, of forces. If the
        motion is steady in world axes, such as that of a spinning axisymmetric rotor, the matrices
        are constant; otherwise they hold for that instant.

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

        For a rotor with a given angular velocity, ``modes(s.assemble())`` are its whirl modes.
        """
        return self.linearize(at).modes()

    def largest_stable_step(self) -> float:
        """Return the largest step in s for which RK4 is stable at the start: 2.78 / |λ|.

        λ is the eigenvalue of largest magnitude of the equations as the engine solves them, with
        the loops closed; it is also evaluated with compliant contacts of clearances closed by 1 %
        of the clearance. Stops and other forces that act later may need a smaller step. For larger
        steps use ``block(mode="internal", integrator="implicit")``.
        """
        from ..analysis._stability import largest_stable_step

        return largest_stable_step(self)

    @property
    def visuals(self) -> Mapping[str, Sequence[Visual]]:
        """Return the shapes of bodies for pictures, by name of the body; `from_urdf` reads them."""
        return MappingProxyType(self._visuals)

    def _add_visual(self, body: Body, visual: Visual) -> None:
        self._visuals.setdefault(body.name, []).append(visual)

    def validate(self) -> None:
        """Check the consistency of the whole system.

        Raises
        ------
        DiagramError
            With all problems found: no bodies, unconnected bodies, bodies without mass at the end
            of a chain.
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
        problems += list_read_problems(self)
        for item in self.general_constraints:
            for term in item.terms:
                graph.add_edge(term.joint.first.body.name, term.joint.second.body.name)
        free = {body.name for body in self.bodies if body.free}
        for names in nx.connected_components(graph):
            if "ground" not in names and not names & free:
                ordered = [body.name for body in self.bodies if body.name in names]
                problems.append(
                    f"nothing ties {name_list(f'`{name}`' for name in ordered)} to the ground: add "
                    f"a joint, spring, bushing or bearing, or set free=True for a free body."
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
                    f"its rotation is undetermined. Give it inertia about all axes."
                )
        if problems:
            raise DiagramError(problems)

    def _rotation_vector(self, what: str, value: Any) -> Array:
        if value is None or not self.planar:
            return self._vector(what, value)
        return freeze([0.0, 0.0, read_number(f"{what} in a planar system", value)])
